#pragma once
// Labels in a tensor of another program: used where they lie if they are as Labels wants them, else converted.
#include <lrcnn/interop/dlpack_source.hpp>
#include <lrcnn/layer/labels.hpp>
namespace lrcnn {
/// Labels of a batch in a tensor. Dense int32 classes and dense float32 targets on the host are not copied; nor are dense int32 classes of
/// images in a device's memory. All others are converted once, here. labels() are good as long as this object, or a copy of it, is.
/// Pre: what makes the tensor is done before the host reads it, here and in every step, also where its memory is pinned or managed.
class DlpackLabels {
 public:
  /// One class for each image.
  /// Shapes:  tensor [N] of int8, int16, int32, int64, uint8 or bool
  /// Errors:  DataError if dimensions or elements are others, if a class does not fit into 32 bits, or if the tensor is in the memory of a
  ///          device and not dense int32 on CUDA device `device`, that of the backend
  static DlpackLabels of_images(DlpackTensor tensor, int device = 0) {
    DlpackLabels made(std::move(tensor), "classes of images", {1}, "[N]");
    const DlpackTensor& t = made.tensor_;
    if (t.on_host()) {
      made.labels_ = std::span<const std::int32_t>(made.classes(), static_cast<std::size_t>(t.elements()));
      return made;
    }
    if (t.device().device_type != kDLCUDA || t.device().device_id != device || !t.holds<std::int32_t>() || !t.dense())
      made.refuse("labels lie on the host, or as int32 without gaps in the memory of the device that runs the step, here CUDA device " +
                      std::to_string(device),
                  "copy them to the CPU, or to that device as int32");
    made.labels_ = Labels::on_device(reinterpret_cast<const std::int32_t*>(t.data()), t.elements());
    return made;
  }
  /// One class for each pixel.
  /// Shapes:  tensor [N,H,W], [N,1,H,W], or [H,W] for one image, of the same types
  /// Errors:  as of_images(); DataError if it is in the memory of a device
  static DlpackLabels of_pixels(DlpackTensor tensor) {
    DlpackLabels made(std::move(tensor), "classes of pixels", {2, 3, 4}, "[N,H,W], [N,1,H,W] or [H,W]");
    const DlpackTensor& t = made.tensor_;
    made.require_host();
    if (t.ndim() == 4 && t.extent(1) != 1) made.refuse("classes of pixels have one channel", "give the class's number, as argmax over channels does");
    const std::int32_t* classes = made.classes();
    made.labels_ = Labels::of_pixels({classes, static_cast<std::size_t>(t.elements())}, t.extent(t.ndim() - 2), t.extent(t.ndim() - 1));
    return made;
  }
  /// A number for each pixel and channel.
  /// Shapes:  tensor [N,C,H,W], or [C,H,W] for one image, of float32, or what DlpackSource reads
  /// Errors:  DataError as of DlpackSource, or if it is in the memory of a device
  static DlpackLabels of_targets(DlpackTensor tensor) {
    DlpackLabels made(std::move(tensor), "targets", {3, 4}, "[N,C,H,W] or [C,H,W]");
    const DlpackTensor& t = made.tensor_;
    made.require_host();
    const Index c = t.extent(t.ndim() - 3), h = t.extent(t.ndim() - 2), w = t.extent(t.ndim() - 1);
    const float* values = made.in_place<float>();
    if (!values) {
      const DlpackSource<float> source(t);
      auto copy = std::make_shared<std::vector<float>>(static_cast<std::size_t>(t.elements()));
      source.read(0, dense_view(copy->data(), source.shape().n, c, {0, h}, w));
      values = copy->data();
      made.copy_ = std::move(copy);
    }
    made.labels_ = Labels::of_targets({values, static_cast<std::size_t>(t.elements())}, c, h, w);
    return made;
  }
  const Labels& labels() const { return labels_; }
  operator const Labels&() const { return labels_; }
  /// Whether the labels are a copy, which takes 4 bytes for each.
  bool copied() const { return copy_ != nullptr; }

 private:
  DlpackLabels(DlpackTensor tensor, std::string what, std::initializer_list<Index> dimensions, const char* shapes)
      : tensor_(std::move(tensor)), what_(std::move(what)) {
    if (std::find(dimensions.begin(), dimensions.end(), tensor_.ndim()) == dimensions.end())
      refuse("their extents are " + std::string(shapes), "add or remove dimensions, as with reshape");
    if (tensor_.elements() == 0) refuse("a batch has at least one image and pixel", "leave empty batches out");
  }
  [[noreturn]] void refuse(const std::string& rule, const std::string& change) const {
    throw DataError(error_text(tensor_.describe() + " is given as " + what_, rule, change));
  }
  void require_host() const {
    if (!tensor_.on_host()) refuse("the host reads them", "copy them to the CPU");
  }
  /// The elements where they lie, if they are dense E.
  template <class E>
  const E* in_place() const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(tensor_.data()) % alignof(E) == 0;
    return aligned && tensor_.holds<E>() && tensor_.dense() ? reinterpret_cast<const E*>(tensor_.data()) : nullptr;
  }
  /// All classes as dense int32.
  const std::int32_t* classes() {
    if (const std::int32_t* there = in_place<std::int32_t>()) return there;
    auto copy = std::make_shared<std::vector<std::int32_t>>();
    copy->reserve(static_cast<std::size_t>(tensor_.elements()));
    const bool known = dlpack::for_dtype<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, bool>(
        tensor_, [&]<class E>(std::type_identity<E>) { convert<E>(*copy, tensor_.data(), 0); });
    if (!known) refuse("classes are int32, or int8, int16, int64, uint8 or bool", "convert the tensor, as with tensor.int()");
    const std::int32_t* result = copy->data();
    copy_ = std::move(copy);
    return result;
  }
  /// Appends the elements from dimension d on, in row-major order.
  template <class E>
  void convert(std::vector<std::int32_t>& to, const std::byte* from, Index d) const {
    for (Index i = 0; i < tensor_.extent(d); ++i, from += tensor_.byte_step(d)) {
      if (d + 1 < tensor_.ndim()) {
        convert<E>(to, from, d + 1);
        continue;
      }
      const auto value = static_cast<std::int64_t>(dlpack::element_at<std::conditional_t<std::is_same_v<E, bool>, std::uint8_t, E>>(from));
      if (value != static_cast<std::int32_t>(value))
        refuse("class " + std::to_string(value) + ", element " + std::to_string(to.size()) + " of them, does not fit into 32 bits",
               "number classes from 0 on");
      to.push_back(static_cast<std::int32_t>(value));
    }
  }
  DlpackTensor tensor_;
  std::string what_;
  std::shared_ptr<const void> copy_{};
  Labels labels_{};
};
}   // namespace lrcnn
