#pragma once
// Rows of a batch that a run will ask for: what sources of images and of labels are told, so that they can decode ahead.
#include <lrcnn/core/types.hpp>
namespace lrcnn {
/// Rows of some images of a batch.
struct RowRequest {
  Range images{}, rows{};
  friend bool operator==(const RowRequest&, const RowRequest&) = default;
};
}   // namespace lrcnn
