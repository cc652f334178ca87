// Tensors for another program: where they lie, what keeps them, and that they come in again as they went out.
#include "interop/dlpack_producer.hpp"
#include "support/error_of.hpp"
#include <doctest/doctest.h>
#include <lrcnn/lrcnn.hpp>
#include <numeric>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
std::vector<float> read_all(const RowSource<float>& source) {
  const Shape s = source.shape();
  std::vector<float> values(static_cast<std::size_t>(s.count()));
  source.read(0, dense_view(values.data(), s.n, s.c, {0, s.h}, s.w));
  return values;
}
/// Elements of a view in the order of its indices.
template <class T>
std::vector<std::remove_const_t<T>> in_order(const View<T>& v) {
  std::vector<std::remove_const_t<T>> values;
  for (Index i = 0; i < v.n; ++i)
    for (Index c = 0; c < v.c; ++c)
      for (Index y = v.row0; y < v.row0 + v.rows; ++y)
        for (Index x = 0; x < v.w; ++x) values.push_back(v(i, c, y, x));
  return values;
}
}   // namespace
TEST_CASE("what goes out comes in again: all layouts that strides can say, without a copy; blocks of channels as one") {
  for (const Index c : {1, 3, 8})
    for (const Index block : {1, 3, 8, 16}) {
      INFO("channels ", c, ", block ", block);
      const auto memory = std::make_shared<std::vector<float>>(static_cast<std::size_t>(stored_elements(2, c, 5, 7, block)));
      std::iota(memory->begin(), memory->end(), 1.0f);
      const View<float> whole = dense_view(memory->data(), 2, c, {4, 9}, 7, block), view = whole.slice({5, 8});
      const bool blocks = block > 1 && c > block;
      const SharedTensor tensor = blocks ? dense_copy(view) : shared_tensor(view, memory);
      CHECK(tensor.copied == blocks);
      CHECK((tensor.data == view.data) == !blocks);
      for (const bool versioned : {false, true}) {
        const DlpackTensor again = versioned ? DlpackTensor(to_versioned_dlpack(tensor)) : DlpackTensor(to_dlpack(tensor));
        const DlpackSource<float> source(again);
        CHECK(source.shape() == Shape{2, c, 3, 7});
        CHECK(read_all(source) == in_order(view));
        CHECK(!again.read_only());
        if (!blocks) CHECK(reinterpret_cast<float*>(again.data()) == view.data);
      }
    }
}
TEST_CASE("the keeper lives until every consumer has called the deleter") {
  auto memory = std::make_shared<std::vector<double>>(24, 1.0);
  const std::weak_ptr<std::vector<double>> alive = memory;
  DLManagedTensor* first = nullptr;
  dlpack::DLManagedTensorVersioned* second = nullptr;
  {
    const SharedTensor tensor = shared_tensor(View<double>(dense_view(memory->data(), 1, 2, {0, 3}, 4)), memory);
    first = to_dlpack(tensor), second = to_versioned_dlpack(tensor);
  }
  memory.reset();
  CHECK(!alive.expired());
  first->deleter(first);
  CHECK(!alive.expired());
  CHECK((second->version.major == 1 && second->flags == 0));
  CHECK(static_cast<const double*>(second->dl_tensor.data)[23] == 1.0);
  second->deleter(second);
  CHECK(alive.expired());
}
TEST_CASE("parameters go out where they lie, and what is written there is the network's; gradients may only be read") {
  using Net = Sequential<Conv<3>, BatchNorm, ReLU, GlobalAvgPool, Linear<4>>;
  using Trainee = Trainer<Net, Policy<>, Reference<float>>;
  const auto trainer = std::make_shared<Trainee>(Input{2, 2, 6, 6}, Sgd{});
  const std::weak_ptr<Trainee> alive = trainer;
  for (const Parameter& p : trainer->layout()) {
    INFO(p.name);
    const DlpackTensor there(to_dlpack(shared_tensor(p, trainer->parameters(), trainer)));
    CHECK(there.elements() == p.shape.count());
    CHECK(there.dense());
    CHECK(there.ndim() == (p.name == "conv1.weight" ? 4 : p.name == "linear1.weight" ? 2 : 1));
    const float value = 0.25f;
    std::memcpy(there.data() + (p.shape.count() - 1) * Index{sizeof(float)}, &value, sizeof(float));
    CHECK(trainer->read_parameters()[static_cast<std::size_t>(p.elements().end - 1)] == value);
    const SharedTensor gradient = shared_tensor(p, trainer->gradients(), trainer, 4);
    CHECK(DlpackTensor(to_versioned_dlpack(gradient)).read_only());
    CHECK(DlpackTensor(to_versioned_dlpack(gradient)).ndim() == 4);
    CHECK(error_of<DataError>([&] { static_cast<void>(to_dlpack(gradient)); }) ==
          "lrcnn: a tensor that may only be read is handed over as a DLManagedTensor; that struct cannot forbid writing; use "
          "to_versioned_dlpack, or hand over a copy");
  }
  CHECK(trainer.use_count() == 1);
}
TEST_CASE("an output goes out: of one block by its strides, of any layout as a copy") {
  using Net = Sequential<Conv<5>, ReLU>;
  const Input input{2, 1, 6, 4};
  std::vector<float> pixels(static_cast<std::size_t>(input.count()));
  std::iota(pixels.begin(), pixels.end(), -20.0f);
  const auto output_of = [&]<class B>(std::type_identity<B>, bool copies) {
    Trainer<Net, Policy<>, B, MeanSquaredError> trainer(input, Sgd{});
    const View<const float> output = trainer.predict(MemorySource<float>(pixels.data(), input));
    const SharedTensor tensor = copies ? dense_copy(output) : shared_tensor(output, nullptr);
    CHECK(tensor.read_only == !copies);
    return read_all(DlpackSource<float>{DlpackTensor(to_versioned_dlpack(tensor))});
  };
  const auto want = output_of(std::type_identity<Reference<float>>{}, false);
  CHECK(std::count(want.begin(), want.end(), 0.0f) < static_cast<Index>(want.size()));
  CHECK(output_of(std::type_identity<Reference<float, 8>>{}, false) == want);
  CHECK(output_of(std::type_identity<Reference<float, 4>>{}, true) == want);
}
TEST_CASE("errors of tensors that go out") {
  std::vector<float> memory(16 * 2 * 3);
  CHECK(error_of<DataError>([&] {
          static_cast<void>(shared_tensor(View<float>(dense_view(memory.data(), 1, 16, {0, 2}, 3, 8)), nullptr));
        }) ==
        "lrcnn: a tensor 1x16x2x3 that is stored in blocks of 8 channels is handed to another program; one stride for each dimension cannot "
        "say where its channels lie; hand over dense_copy(view)");
  const Parameter weight{.name = "linear1.weight", .shape = {.extents = {4, 3, 1, 1}}};
  CHECK(error_of<ShapeError>([&] { static_cast<void>(shared_tensor(weight, std::span<float>(memory), nullptr, 1)); }) ==
        "lrcnn: parameter 'linear1.weight' of extents [4,3] is asked for with 1 dimensions; a parameter has four at most, and those behind the "
        "last that is not 1 may be left out; ask for 2 to 4, or for 0");
  CHECK(error_of<ShapeError>([&] { static_cast<void>(shared_tensor(weight, std::span<float>(memory).first(5), nullptr)); }) ==
        "lrcnn: parameter 'linear1.weight' takes elements 0 to 12 of a buffer of 5; a flat buffer holds every parameter of its network; pass a "
        "buffer of flat_elements(parameters) elements");
}
