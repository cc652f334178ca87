// What a tensor of another program can have wrong, and what is said about it. A tensor that is refused goes back.
#include "interop/dlpack_producer.hpp"
#include "support/error_of.hpp"
#include <doctest/doctest.h>
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// The error of a tensor that was changed before it is given away.
template <class Change>
std::string of_tensor(Change change) {
  Producer producer(std::vector<float>(2 * 3 * 4 * 5), {2, 3, 4, 5}, {60, 20, 5, 1});
  change(producer);
  const std::string text = error_of<DataError>([&] { DlpackTensor tensor(producer.give()); });
  CHECK((producer.given == 1 && producer.returned == 1));
  return text;
}
/// The error of f, which is given a tensor.
template <class E, class F>
std::string of_use(const std::vector<E>& elements, std::vector<std::int64_t> shape, F f, DLDevice device = dlpack::cpu,
                   std::vector<std::int64_t> strides = {}) {
  Producer producer(elements, std::move(shape), std::move(strides));
  producer.tensor.device = device;
  const std::string text = error_of<DataError>([&] { f(DlpackTensor(producer.give())); });
  CHECK((producer.given == 1 && producer.returned == 1));
  return text;
}
const std::vector<float> zeros(120);
const auto as_source = [](DlpackTensor tensor) { DlpackSource<float>{std::move(tensor)}; };
const auto as_device_source = [](DlpackTensor tensor) { DlpackDeviceSource(std::move(tensor), 1); };
const auto as_images = [](DlpackTensor tensor) { DlpackLabels::of_images(std::move(tensor), 1); };
const auto as_pixels = [](DlpackTensor tensor) { DlpackLabels::of_pixels(std::move(tensor)); };
const auto as_targets = [](DlpackTensor tensor) { DlpackLabels::of_targets(std::move(tensor)); };
constexpr DLDevice first{kDLCUDA, 0}, second{kDLCUDA, 1};
}   // namespace
TEST_CASE("errors of any tensor") {
  CHECK(error_of<DataError>([] { DlpackTensor tensor(static_cast<DLManagedTensor*>(nullptr)); }) ==
        "lrcnn: no tensor is given, but a null pointer; DLPack's struct comes from the capsule of another program; give what "
        "PyCapsule_GetPointer returns, and look whether it failed");
  CHECK(error_of<DataError>([] {
          DlpackTensor tensor(static_cast<dlpack::DLManagedTensorVersioned*>(nullptr));
        }).starts_with("lrcnn: no tensor is given, but a null pointer;"));
  CHECK(of_tensor([](Producer& p) { p.tensor.ndim = -1; }) ==
        "lrcnn: a tensor of -1 dimensions has a list of extents; a tensor has an extent for each dimension; look whether the struct is still "
        "the producer's: its deleter may have been called");
  CHECK(of_tensor([](Producer& p) { p.tensor.shape = nullptr; }) ==
        "lrcnn: a tensor of 4 dimensions has no list of extents; a tensor has an extent for each dimension; look whether the struct is still "
        "the producer's: its deleter may have been called");
  CHECK(of_tensor([](Producer& p) { p.shape[1] = -3; }) ==
        "lrcnn: a tensor [2,-3,4,5] of float32 on the CPU has a negative extent; an extent counts elements; look at the tensor's shape");
  CHECK(of_tensor([](Producer& p) { p.tensor.dtype.lanes = 4; }) ==
        "lrcnn: a tensor [2,3,4,5] of vectors of 4 float32 on the CPU is given; an element is one number of whole bytes; convert the tensor to "
        "float32, or labels to int32");
  CHECK(of_tensor([](Producer& p) {
          p.tensor.dtype = {kDLInt, 4, 1};
        }) ==
        "lrcnn: a tensor [2,3,4,5] of int4 on the CPU is given; an element is one number of whole bytes; convert the tensor to float32, or "
        "labels to int32");
  const Index huge = Index{1} << 40;
  CHECK(of_tensor([](Producer& p) {
          p.shape = {huge, huge, 4, 5}, p.tensor.shape = p.shape.data(), p.tensor.strides = nullptr;
        }) ==
        "lrcnn: a tensor [1099511627776,1099511627776,4,5] of float32 on the CPU has more bytes than there are addresses; an address has 64 "
        "bits; look at the tensor's shape and strides");
  // No more elements than an index counts, but more bytes.
  CHECK(of_tensor([](Producer& p) {
          p.shape = {huge, huge >> 18, 1, 1}, p.tensor.shape = p.shape.data(), p.tensor.strides = nullptr;
        }).find("has more bytes than there are addresses") != std::string::npos);
  CHECK(of_tensor([](Producer& p) { p.strides[0] = std::numeric_limits<Index>::max() / 2, p.strides[1] = -p.strides[0]; }) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on the CPU with its strides reaches over more bytes than there are addresses; an address has 64 "
        "bits; look at the tensor's shape and strides");
  CHECK(of_tensor([](Producer& p) { p.strides[3] = std::numeric_limits<Index>::min(); }).find("reaches over more bytes") != std::string::npos);
  CHECK(of_tensor([](Producer& p) { p.tensor.data = nullptr; }) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on the CPU has no data; a tensor that is not empty lies in memory; give a tensor that has been "
        "computed and that nobody has freed");
  Producer later(zeros, {2, 3, 4, 5});
  CHECK(error_of<DataError>([&] { DlpackTensor tensor(later.give_versioned(0, 2)); }) ==
        "lrcnn: a tensor of DLPack 2.0 is given; lrcnn knows version 1 of the versioned struct; ask the other program for it: "
        "__dlpack__(max_version=(1, 0))");
  CHECK(later.out() == 0);
}
TEST_CASE("errors of batches on the host") {
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_source, second) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on CUDA device 1 is given as images; the host reads the rows of a DlpackSource; use "
        "DlpackDeviceSource with a backend on that device, or copy the tensor to the CPU");
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_source, {kDLMetal, 0}) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on device 0 of DLPack's type 8 is given as images; the host reads the rows of a DlpackSource; "
        "copy the tensor to the CPU");
  CHECK(of_use(zeros, {6, 20}, as_source) ==
        "lrcnn: a tensor [6,20] of float32 on the CPU is given as images; images are [N,C,H,W], and one image [C,H,W]; add or remove "
        "dimensions, as with reshape");
  CHECK(of_use(zeros, {0, 3, 4, 5}, as_source) ==
        "lrcnn: a tensor [0,3,4,5] of float32 on the CPU is given as images; a batch has at least one image, channel, row and column; leave "
        "empty batches out");
  CHECK(of_use(std::vector<std::int64_t>(120), {2, 3, 4, 5}, as_source) ==
        "lrcnn: a tensor [2,3,4,5] of int64 on the CPU is given as images; elements are float32, float64, float16, bfloat16 or uint8; convert "
        "the tensor, as with tensor.float()");
  CHECK(of_use(zeros, {2, 3, 4, 5}, [](DlpackTensor tensor) { DlpackSource<float>(std::move(tensor), Normalization{}); }) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on the CPU is given with a normalisation; a normalisation is of bytes; normalise the tensor's "
        "numbers before, or give a tensor of uint8");
  CHECK(of_use(zeros, {2, 3, 4, 5},
               [](DlpackTensor tensor) {
                 std::vector<float> rows(2 * 3 * 2 * 5);
                 DlpackSource<float>(std::move(tensor)).read(1, dense_view(rows.data(), 2, 3, {3, 5}, 5));
               }) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on the CPU is asked for images 1 to 2, rows 3 to 4 of 3 channels and 5 columns; what is "
        "read lies within the batch; give the network the batch's shape");
  // Memory that the host reads, whoever has taken it.
  for (const DLDeviceType type : {kDLCUDAHost, kDLCUDAManaged, kDLROCMHost}) CHECK(of_use(zeros, {2, 3, 4, 5}, as_source, {type, 0}) == "no error");
}
TEST_CASE("errors of batches on a device") {
  const std::string begin = "lrcnn: a tensor [2,3,4,5] of float32 on ", given = " is given as images to a backend on CUDA device 1; ";
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_device_source) ==
        begin + "the CPU" + given + "a DlpackDeviceSource lies in that device's memory; use DlpackSource, whose rows are sent there");
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_device_source, {kDLCUDAHost, 0}) ==
        begin + "CUDA's pinned memory" + given + "a DlpackDeviceSource lies in that device's memory; use DlpackSource, whose rows are sent there");
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_device_source, {kDLROCM, 0}) ==
        begin + "ROCm device 0" + given + "a DlpackDeviceSource lies in that device's memory; copy the tensor");
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_device_source, first) ==
        begin + "CUDA device 0" + given +
            "a DlpackDeviceSource lies in that device's memory; copy the tensor, or make the backend with DeviceOptions{.device = 0}");
  CHECK(of_use(zeros, {24, 5}, as_device_source, second) == "lrcnn: a tensor [24,5] of float32 on CUDA device 1" + given +
                                                                "images are [N,C,H,W], and one image [C,H,W]; add or remove dimensions, as with "
                                                                "reshape");
  CHECK(of_use(std::vector<double>(120), {2, 3, 4, 5}, as_device_source, second) ==
        "lrcnn: a tensor [2,3,4,5] of float64 on CUDA device 1" + given + "the device reads float32; convert the tensor, as with tensor.float()");
  CHECK(of_use(zeros, {2, 3, 0, 5}, as_device_source, second) ==
        "lrcnn: a tensor [2,3,0,5] of float32 on CUDA device 1" + given +
            "a batch has at least one image, channel, row and column; leave empty batches out");
  const auto strided = [&](std::vector<std::int64_t> strides) { return of_use(zeros, {2, 3, 4, 5}, as_device_source, second, std::move(strides)); };
  CHECK(strided({60, 20, 1, 4}) == begin + "CUDA device 1" + given +
                                       "of strides [60,20,1,4] the device cannot read: images are NCHW or channels last, without gaps; copy the "
                                       "tensor first, as with tensor.contiguous()");
  CHECK(strided({0, 20, 5, 1}).find("of strides [0,20,5,1] the device cannot read") != std::string::npos);
  CHECK(strided({60, 20, 5, -1}).find("of strides [60,20,5,-1] the device cannot read") != std::string::npos);
  CHECK(strided({60, 20, 5, 1}) == "no error");
  CHECK(strided({60, 1, 15, 3}) == "no error");
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_device_source, {kDLCUDAManaged, 0}) == "no error");
}
TEST_CASE("errors of labels") {
  const std::vector<std::int32_t> classes(24);
  CHECK(of_use(classes, {4, 6}, as_images) ==
        "lrcnn: a tensor [4,6] of int32 on the CPU is given as classes of images; their extents are [N]; add or remove dimensions, as with reshape");
  CHECK(of_use(classes, {24}, as_pixels) ==
        "lrcnn: a tensor [24] of int32 on the CPU is given as classes of pixels; their extents are [N,H,W], [N,1,H,W] or [H,W]; add or remove "
        "dimensions, as with reshape");
  CHECK(of_use(classes, {1, 4, 2, 3}, as_pixels) ==
        "lrcnn: a tensor [1,4,2,3] of int32 on the CPU is given as classes of pixels; classes of pixels have one channel; give the class's "
        "number, as argmax over channels does");
  CHECK(of_use(zeros, {6, 20}, as_targets) ==
        "lrcnn: a tensor [6,20] of float32 on the CPU is given as targets; their extents are [N,C,H,W] or [C,H,W]; add or remove dimensions, as "
        "with reshape");
  CHECK(of_use(std::vector<std::int32_t>{}, {0}, as_images) ==
        "lrcnn: a tensor [0] of int32 on the CPU is given as classes of images; a batch has at least one image and pixel; leave empty batches out");
  CHECK(of_use(zeros, {120}, as_images) ==
        "lrcnn: a tensor [120] of float32 on the CPU is given as classes of images; classes are int32, or int8, int16, int64, uint8 or bool; "
        "convert the tensor, as with tensor.int()");
  CHECK(of_use(std::vector<std::int32_t>(120), {2, 3, 4, 5}, as_targets) ==
        "lrcnn: a tensor [2,3,4,5] of int32 on the CPU is given as images; elements are float32, float64, float16, bfloat16 or uint8; convert "
        "the tensor, as with tensor.float()");
  CHECK(of_use(std::vector<std::int64_t>{0, 1, 2, Index{1} << 31}, {4}, as_images) ==
        "lrcnn: a tensor [4] of int64 on the CPU is given as classes of images; class 2147483648, element 3 of them, does not fit into 32 bits; "
        "number classes from 0 on");
  const std::string place =
      "labels lie on the host, or as int32 without gaps in the memory of the device that runs the step, here CUDA device 1; "
      "copy them to the CPU, or to that device as int32";
  CHECK(of_use(classes, {24}, as_images, first) == "lrcnn: a tensor [24] of int32 on CUDA device 0 is given as classes of images; " + place);
  CHECK(of_use(std::vector<std::int64_t>(24), {24}, as_images, second) ==
        "lrcnn: a tensor [24] of int64 on CUDA device 1 is given as classes of images; " + place);
  CHECK(of_use(classes, {12}, as_images, second, {2}) == "lrcnn: a tensor [12] of int32 on CUDA device 1 is given as classes of images; " + place);
  CHECK(of_use(classes, {24}, as_images, second) == "no error");
  CHECK(of_use(classes, {4, 6}, as_pixels, second) ==
        "lrcnn: a tensor [4,6] of int32 on CUDA device 1 is given as classes of pixels; the host reads them; copy them to the CPU");
  CHECK(of_use(zeros, {2, 3, 4, 5}, as_targets, second) ==
        "lrcnn: a tensor [2,3,4,5] of float32 on CUDA device 1 is given as targets; the host reads them; copy them to the CPU");
}
TEST_CASE("types of elements have the names that other programs give them") {
  CHECK(dlpack::dtype_text({kDLUInt, 16, 1}) == "uint16");
  CHECK(dlpack::dtype_text({kDLBfloat, 16, 1}) == "bfloat16");
  CHECK(dlpack::dtype_text({kDLComplex, 64, 1}) == "complex64");
  CHECK(dlpack::dtype_text({dlpack::code_bool, 8, 1}) == "bool");
  CHECK(dlpack::dtype_text({17, 4, 1}) == "type 17 of 4 bits");
}
