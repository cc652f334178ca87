#pragma once
// Labels of maps that are read by rows: masks and targets that need not be in memory.
//
// A step asks for the labels of a slab's rows when it is about to compute their loss, as it asks a RowSource for rows of the image, and
// again in passes that compute the loss a second time; labels are therefore the same whenever they are asked for during one step.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/row_request.hpp>
#include <lrcnn/shape/shape.hpp>
#include <any>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
namespace lrcnn {
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
  /// Whether labels stay the same as long as this object lives. Then what a loss has found in a pass over all of them, its total(), is
  /// kept and holds for later steps, too. Otherwise each step passes over them once more.
  virtual bool constant() const { return false; }

 protected:
  LabelRows() = default;
  LabelRows(const LabelRows&) = default;
  LabelRows& operator=(const LabelRows&) = default;

 private:
  friend class LabelWindow;
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
  mutable Total total_{};   ///< of the loss that was here last
};
}   // namespace lrcnn
