#pragma once
// Labels of maps that are read by rows: masks and targets that need not be in memory.
//
// A step asks for the labels of a slab's rows when it is about to compute their loss, as it asks a RowSource for rows of the image, and
// again in passes that compute the loss a second time; labels are therefore the same whenever they are asked for during one step.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/row_request.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/layer/class_counts.hpp>
#include <lrcnn/shape/shape.hpp>
#include <any>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
namespace lrcnn {
namespace detail {
struct ClassCounter;
}
enum class LabelKind : std::uint8_t { images, pixels, targets };
/// The labels of a batch, by rows: one class for each pixel (a mask), or a number for each pixel and channel (targets). Used by one thread
/// at a time.
class LabelRows {
 public:
  virtual ~LabelRows() = default;
  /// pixels or targets: which of the two functions below is asked.
  virtual LabelKind kind() const = 0;
  /// [N,1,height,width] of masks, [N,channels,height,width] of targets.
  virtual Shape shape() const = 0;
  /// Writes the classes of some rows of an image.
  /// Shapes:  out [rows][width]
  /// Errors:  DataError if they cannot be had; the step has changed nothing then
  virtual void classes(Index, Range, std::span<std::int32_t>) const { refuse("classes"); }
  /// Writes the targets of some rows of an image.
  /// Shapes:  out [channels][rows][width]
  /// Errors:  as classes()
  virtual void values(Index, Range, std::span<float>) const { refuse("values"); }
  /// Says which rows will be asked for and in which order, as RowSource::expect(). Advice; the default does nothing.
  virtual void expect(std::span<const RowRequest>) const {}
  /// Whether labels stay the same as long as this object lives. Then what a pass over all of them has found is kept: the pixels of each class,
  /// which class_balance() or the total() of a loss has counted, and that total. So one pass serves both, and all later steps. Otherwise
  /// each step passes over them once more.
  virtual bool constant() const { return false; }

 protected:
  LabelRows() = default;
  LabelRows(const LabelRows&) = default;
  LabelRows& operator=(const LabelRows&) = default;

 private:
  friend class LabelWindow;
  friend struct detail::ClassCounter;
  /// Pixels that do not count, and images with pixels that do.
  struct Others {
    Index ignored = 0, images = 0;
  };
  /// The classes of the first `images` images, with one label that does not count.
  struct Counts {
    Index images = 0;
    std::optional<std::int32_t> ignore{};
    ClassBalance found{};
  };
  std::optional<Others> known_counts(Index images, std::optional<std::int32_t> ignore, std::span<Index> counts) const {
    const std::vector<Index>& known = counts_.found.counts;
    if (known.empty() || counts_.images != images || counts_.ignore != ignore || known.size() != counts.size()) return std::nullopt;
    std::copy(known.begin(), known.end(), counts.begin());
    return Others{counts_.found.ignored, counts_.found.images};
  }
  void keep_counts(Index images, std::optional<std::int32_t> ignore, std::span<const Index> counts, const Others& others) const {
    if (constant()) counts_ = {images, ignore, {{counts.begin(), counts.end()}, others.ignored, others.images}};
  }
  /// A loss, and what it has found.
  struct Total {
    std::any loss{};
    Shape output{};
    double value = 0;
  };
  template <class L>
  static constexpr bool keeps = std::copyable<L>&& std::equality_comparable<L>;
  template <class L>
  std::optional<double> known_total(const L& loss, const Shape& output) const {
    if constexpr (keeps<L>)
      if (const L* known = std::any_cast<L>(&total_.loss); known && constant() && *known == loss && total_.output == output) return total_.value;
    return std::nullopt;
  }
  template <class L>
  void keep_total(const L& loss, const Shape& output, double value) const {
    if constexpr (keeps<L>) total_ = {loss, output, value};
  }
  [[noreturn]] void refuse(const char* function) const {
    throw DataError(error_text("labels by rows of " + to_string(shape()) + " have no function " + function + "()",
                               "labels whose kind() is pixels give classes(), and those whose kind() is targets give values()",
                               "define the function, or return the other kind"));
  }
  mutable Counts counts_{};   ///< of the last pass that counted classes
  mutable Total total_{};     ///< of the loss that was here last
};
}   // namespace lrcnn
