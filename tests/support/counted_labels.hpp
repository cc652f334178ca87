#pragma once
// Labels in memory that are given by rows: they note what is asked of them, may change from step to step, and fail when a test wishes.
#include <lrcnn/layer/labels.hpp>
#include <algorithm>
#include <functional>
#include <vector>
namespace lrcnn::testing {
class CountedLabels final : public LabelRows {
 public:
  explicit CountedLabels(const Labels& labels, bool constant = true)
      : labels_(labels), constant_(constant), shape_{labels.size(), labels.channels(), labels.height(), labels.width()} {}
  LabelKind kind() const override { return labels_.kind(); }
  Shape shape() const override { return shape_; }
  bool constant() const override { return constant_; }
  void classes(Index image, Range rows, std::span<std::int32_t> out) const override {
    read(1, image, rows, out, [&](Index, Index row) { return labels_.classes(image, row); });
  }
  void values(Index image, Range rows, std::span<float> out) const override {
    read(shape_.c, image, rows, out, [&](Index channel, Index row) { return labels_.values(image, channel, row); });
  }
  void expect(std::span<const RowRequest> requests) const override { expected.insert(expected.end(), requests.begin(), requests.end()); }
  std::function<void(Index image, Range rows)> before{};   ///< rows are given; may throw
  mutable std::vector<RowRequest> was_read{}, expected{};
  mutable Index pixels = 0;   ///< read so far
  Index most_rows() const {
    Index most = 0;
    for (const RowRequest& r : was_read) most = std::max(most, r.rows.size());
    return most;
  }
  void forget() const { was_read.clear(), expected.clear(), pixels = 0; }

 private:
  template <class E, class F>
  void read(Index channels, Index image, Range rows, std::span<E> out, F row_of) const {
    if (static_cast<Index>(out.size()) != channels * rows.size() * shape_.w || rows.empty() || !Range{0, shape_.h}.contains(rows) || image < 0 ||
        image >= shape_.n)
      throw DataError("rows that are not there, or memory of another size");
    std::fill(out.begin(), out.end(), static_cast<E>(-77));   // half-written memory shows
    if (before) before(image, rows);
    was_read.push_back({{image, image + 1}, rows}), pixels += rows.size() * shape_.w;
    for (Index channel = 0; channel < channels; ++channel)
      for (Index row = rows.begin; row < rows.end; ++row)
        std::copy_n(row_of(channel, row), shape_.w, out.begin() + (channel * rows.size() + row - rows.begin) * shape_.w);
  }
  Labels labels_;
  bool constant_;
  Shape shape_;
};
}   // namespace lrcnn::testing
