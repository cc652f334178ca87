#pragma once
// A batch of images in a tensor of another program, in the memory of a CUDA device: the device reads it where it lies.
#include <lrcnn/backend/cudnn/source.hpp>
#include <lrcnn/interop/dlpack_tensor.hpp>
namespace lrcnn {
/// Images in a tensor [N,C,H,W] or [C,H,W] of float32 on a CUDA device, or in CUDA's managed memory: planes without gaps (NCHW), or
/// channels last. A backend on the device copies rows from there; on the host, reading is an error.
/// The producer's work on the tensor must be done, or be ahead of the backend's on its stream (DeviceOptions::stream): in Python,
/// tensor.__dlpack__(stream=...) is told the number of the stream that the backend works on. Otherwise the backend's order_behind() is told the
/// producer's stream. A source that goes gives the tensor back: after start_step() not before wait(), or after order_before() of that stream.
class DlpackDeviceSource final : public cudnn::DeviceSource {
 public:
  /// `device`: the CUDA ordinal of the backend's device.
  /// Errors:  DataError if the tensor is elsewhere, has other dimensions, elements or strides, or is empty
  explicit DlpackDeviceSource(DlpackTensor tensor, int device = 0) : DeviceSource(view_of(tensor, device)), tensor_(std::move(tensor)) {}

 private:
  static View<const float> view_of(const DlpackTensor& tensor, int device) {
    const auto refuse = [&](const std::string& rule, const std::string& change) {
      throw DataError(error_text(tensor.describe() + " is given as images to a backend on CUDA device " + std::to_string(device), rule, change));
    };
    const bool managed = tensor.device().device_type == kDLCUDAManaged;
    if (!managed && tensor.device().device_type != kDLCUDA)
      refuse("a DlpackDeviceSource lies in that device's memory",
             tensor.on_host() ? "use DlpackSource, whose rows are sent there" : "copy the tensor");
    if (!managed && tensor.device().device_id != device)
      refuse("a DlpackDeviceSource lies in that device's memory",
             "copy the tensor, or make the backend with DeviceOptions{.device = " + std::to_string(tensor.device().device_id) + "}");
    if (tensor.ndim() != 3 && tensor.ndim() != 4) refuse("images are [N,C,H,W], and one image [C,H,W]", "add or remove dimensions, as with reshape");
    if (!tensor.holds<float>()) refuse("the device reads float32", "convert the tensor, as with tensor.float()");
    if (tensor.elements() == 0) refuse("a batch has at least one image, channel, row and column", "leave empty batches out");
    const Index first = tensor.ndim() - 3, n = first == 1 ? tensor.extent(0) : 1;
    const Index c = tensor.extent(first), h = tensor.extent(first + 1), w = tensor.extent(first + 2);
    const Index per_image = n == 1 ? c * h * w : tensor.stride(0);
    const auto strides_are = [&](Index of_c, Index of_h, Index of_w) {   // where there is more than one to step to
      return (c == 1 || tensor.stride(first) == of_c) && (h == 1 || tensor.stride(first + 1) == of_h) && (w == 1 || tensor.stride(first + 2) == of_w);
    };
    const auto* data = reinterpret_cast<const float*>(tensor.data());
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0 && per_image >= c * h * w) {
      if (strides_are(1, w * c, c)) return {data, n, c, 0, h, w, c, per_image, h * w * c};
      if (strides_are(h * w, w, 1)) return {data, n, c, 0, h, w, 1, per_image, h * w};
    }
    refuse("of strides " + tensor.strides_text() + " the device cannot read: images are NCHW or channels last, without gaps",
           "copy the tensor first, as with tensor.contiguous()");
    return {};
  }
  DlpackTensor tensor_;
};
}   // namespace lrcnn
