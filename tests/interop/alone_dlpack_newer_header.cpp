// A program whose dlpack.h is of DLPack 1 or later: it declares the versioned struct itself, and lrcnn takes that one. The names are that
// header's; the order and types of the members are what programs agree on.
#include <dlpack/dlpack.h>
#if !defined(DLPACK_MAJOR_VERSION)
#define DLPACK_MAJOR_VERSION 1
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
#endif
#include "interop/dlpack_producer.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
static_assert(std::is_same_v<dlpack::DLManagedTensorVersioned, ::DLManagedTensorVersioned>);
TEST_CASE("the versioned struct of the header goes in and out") {
  Producer producer(std::vector<float>{1, 2, 3, 4, 5, 6}, {1, 2, 3});
  {
    ::DLManagedTensorVersioned* given = producer.give_versioned(dlpack::flag_read_only);
    const DlpackTensor tensor(given);
    CHECK(tensor.read_only());
    const DlpackSource<float> source(tensor);
    std::vector<float> rows(6);
    source.read(0, dense_view(rows.data(), 1, 1, {0, 2}, 3));
    CHECK(rows == std::vector<float>{1, 2, 3, 4, 5, 6});
    ::DLManagedTensorVersioned* made = to_versioned_dlpack(dense_copy(View<const float>(dense_view(rows.data() + 3, 1, 1, {1, 2}, 3))));
    CHECK((made->version.major == 1 && made->flags == dlpack::flag_copied));
    CHECK(static_cast<const float*>(made->dl_tensor.data)[2] == 6);
    made->deleter(made);
  }
  CHECK(producer.out() == 0);
}
