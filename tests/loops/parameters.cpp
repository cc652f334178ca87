// What happens to parameters: bias gradients, filters packed and unpacked, updates, and the check for sound numbers.
#include "loops_case.hpp"
#include <lrcnn/backend/cudnn/loops/launch_recorder.hpp>
#include <lrcnn/train/optimizer.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// Memory between guards, aligned as device memory is, and never touched behind its end.
class Room {
 public:
  explicit Room(Index bytes) : bytes_(static_cast<std::size_t>(bytes)), words_(bytes_ / 16 + 4, Word{}) {
    std::memset(static_cast<void*>(words_.data()), 0xff, words_.size() * sizeof(Word));
  }
  std::byte* data() { return words_.data()->bytes; }
  bool intact() const {
    const auto* all = reinterpret_cast<const unsigned char*>(words_.data());
    for (std::size_t i = bytes_; i < words_.size() * sizeof(Word); ++i)
      if (all[i] != 0xff) return false;
    return true;
  }

 private:
  struct alignas(16) Word {
    std::byte bytes[16];
  };
  std::size_t bytes_;
  std::vector<Word> words_;
};
template <class T>
std::vector<T> numbers(Index count, std::uint64_t seed) {
  const auto values = random_vector(count, seed);
  return {values.begin(), values.end()};
}
}   // namespace
TEST_CASE_TEMPLATE("the bias gradient is the sum over images, rows and columns, written or added, and repeats its bits", T, float, double, float16,
                   bfloat16) {
  using A = master_t<T>;
  for (const Shape s : {Shape{1, 3, 2, 2}, Shape{2, 8, 5, 7}, Shape{3, 5, 9, 11}, Shape{2, 16, 40, 40}, Shape{1, 1, 90, 90}, Shape{7, 10, 1, 1},
                        Shape{2, 70, 33, 33}})
    for (const Index hidden : {0, 1})
      for (const bool accumulate : {false, true}) {
        const Map dy = as<T>(random_map(s, 3));
        const Range rows{s.h / 3, s.h};
        const Slab<T> slab(dy, rows, s.c, hidden);
        const std::vector<A> before = numbers<A>(s.c, 4);
        std::vector<A> db = before, again = before;
        Room workspace(loops::bias_gradient_bytes<T>(s.n, s.c, rows.size(), s.w));
        Tallies tallies;
        loops::bias_gradient(on_host, slab.view(), db.data(), accumulate, workspace.data(), tallies.data());
        CHECK(tallies.all_zero());
        CHECK(workspace.intact());
        loops::bias_gradient(on_host, View<const T>(slab.view()), again.data(), accumulate, workspace.data(), tallies.data());
        CHECK(db == again);
        for (Index c = 0; c < s.c; ++c) {
          double sum = accumulate ? static_cast<double>(before[static_cast<std::size_t>(c)]) : 0;
          for (Index i = 0; i < s.n; ++i)
            for (Index y = rows.begin; y < rows.end; ++y)
              for (Index x = 0; x < s.w; ++x) sum += dy.at(i, c, y, x);
          CHECK(std::abs(static_cast<double>(db[static_cast<std::size_t>(c)]) - sum) < (sizeof(A) == 8 ? 1e-12 : 1e-4));
        }
      }
  std::vector<A> db(3, A(5));
  loops::bias_gradient(on_host, Slab<T>(Map({2, 3, 4, 4}), {2, 2}, 3).view(), db.data(), true, nullptr, nullptr);
  CHECK(db == std::vector<A>(3, A(5)));
  loops::bias_gradient(on_host, Slab<T>(Map({2, 3, 4, 4}), {2, 2}, 3).view(), db.data(), false, nullptr, nullptr);
  CHECK(db == std::vector<A>(3, A(0)));
}
TEST_CASE("exact sums are exact: every element is added once, in rounds of any number") {
  for (const Index positions : {1, 31, 32, 33, 1024, 1025, 33000, 135'000})
    for (const Index c : {1, 4, 6}) {
      const std::vector<double> ones(static_cast<std::size_t>(positions * c), 1);
      std::vector<double> db(static_cast<std::size_t>(c), -1);
      Room workspace(loops::bias_gradient_bytes<double>(1, c, 1, positions));
      Tallies tallies;
      loops::bias_gradient(on_host, dense_view(ones.data(), 1, c, {0, 1}, positions, c), db.data(), false, workspace.data(), tallies.data());
      CHECK(tallies.all_zero());
      CHECK(db == std::vector<double>(static_cast<std::size_t>(c), static_cast<double>(positions)));
      CHECK(workspace.intact());
    }
}
template <class T>
void pack(const loops::FilterToPack<T>& filter) {
  loops::pack_filters(on_host, std::span<const loops::FilterToPack<T>>(&filter, 1));
}
template <class T>
void unpack(const loops::FilterToUnpack<T>& gradient) {
  loops::unpack_filters(on_host, std::span<const loops::FilterToUnpack<T>>(&gradient, 1));
}
TEST_CASE_TEMPLATE("filters are packed with their channels last, and gradients unpacked, written or added", T, float, double, float16, bfloat16) {
  using A = master_t<T>;
  for (const loops::FilterExtents e : {loops::FilterExtents{6, 4, 9}, {5, 3, 1}, {1, 1, 25}, {8, 16, 3}, {0, 3, 9}, {64, 48, 1}})
    for (const std::size_t shift : {0, 1}) {   // elements by which memory is not aligned
      const std::vector<A> w = numbers<A>(e.count() + 1, 1);
      const auto size = static_cast<std::size_t>(e.count());
      std::vector<T> packed(size + 2, T(7));
      pack<T>({e, w.data() + shift, packed.data()});
      std::vector<A> dw(size + 2, A(3)), sum(size + 2, A(3));
      bool good = static_cast<float>(packed[size]) == 7;
      unpack<T>({e, packed.data(), dw.data() + shift, false});
      unpack<T>({e, packed.data(), sum.data() + shift, true});
      good = good && dw[size + shift] == A(3) && sum[size + shift] == A(3);
      for (Index k = 0; k < e.outputs; ++k)
        for (Index c = 0; c < e.channels; ++c)
          for (Index tap = 0; tap < e.taps; ++tap) {
            const auto kept = static_cast<std::size_t>((k * e.channels + c) * e.taps + tap) + shift;
            const T value = packed[static_cast<std::size_t>((k * e.taps + tap) * e.channels + c)];
            good = good && value == T(w[kept]) && dw[kept] == static_cast<A>(value);
            good = good && sum[kept] == A(3) + static_cast<A>(value);
          }
      CHECK(good);
    }
}
TEST_CASE_TEMPLATE("a bias is packed along with its filter, of a layer with as many outputs or not, and alone", T, float, double, float16, bfloat16) {
  using A = master_t<T>;
  for (const loops::FilterExtents e : {loops::FilterExtents{6, 4, 9}, {1, 1, 25}, {0, 3, 9}})
    for (const Index count : {1, 6, 11}) {
      const std::vector<A> w = numbers<A>(e.count(), 1), bias = numbers<A>(count, 2);
      std::vector<T> packed(w.size() + 1, T(7)), same = packed, packed_bias(bias.size() + 1, T(7));
      pack<T>({e, w.data(), packed.data()});
      pack<T>({e, w.data(), same.data(), {bias.data(), packed_bias.data(), count}});
      bool good = static_cast<float>(packed_bias.back()) == 7;
      for (std::size_t i = 0; i < packed.size(); ++i) good = good && static_cast<A>(same[i]) == static_cast<A>(packed[i]);
      for (std::size_t i = 0; i < bias.size(); ++i) good = good && static_cast<A>(packed_bias[i]) == static_cast<A>(static_cast<T>(bias[i]));
      CHECK(good);
    }
}
TEST_CASE_TEMPLATE("one kernel packs as many filters as its table holds, and gives each what it gets alone", T, float, bfloat16) {
  using A = master_t<T>;
  constexpr std::size_t count = 150;
  std::vector<std::vector<A>> kept, biases;
  std::vector<std::vector<T>> packed, alone;
  std::vector<loops::FilterToPack<T>> all, each;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<Index>(i);
    const loops::FilterExtents e{at % 7 * 5, 1 + at % 40, at % 3 == 0 ? 9 : 1};   // some are empty, some take several blocks
    kept.push_back(numbers<A>(e.count(), i)), biases.push_back(numbers<A>(at % 4, i + count));
    packed.emplace_back(kept[i].size() + biases[i].size() + 1, T(7)), alone.push_back(packed[i]);
    const auto filter = [&](std::vector<T>& to) {
      return loops::FilterToPack<T>{e, kept[i].data(), to.data(), {biases[i].data(), to.data() + kept[i].size(), at % 4}};
    };
    all.push_back(filter(packed[i])), each.push_back(filter(alone[i]));
  }
  loops::pack_filters(on_host, std::span<const loops::FilterToPack<T>>(all));
  for (const auto& filter : each) pack<T>(filter);
  const auto bits = [](const std::vector<T>& v) { return std::vector<A>(v.begin(), v.end()); };
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(bits(packed[i]) == bits(alone[i]));
    CHECK(static_cast<float>(packed[i].back()) == 7);
  }
  std::vector<loops::RecordedLoop> list;
  loops::pack_filters(loops::LaunchRecorder{&list}, std::span<const loops::FilterToPack<T>>(all));
  CHECK(list.size() == 5);   // of 36 filters at most
  CHECK(list[0].name == "PackLoop");
}
TEST_CASE("extents of filters") {
  Layer conv{.kind = Kind::conv};
  conv.window = Window{.kernel = {3, 5}};
  conv.channels = 8, conv.groups = 2;
  CHECK(loops::filter_extents(node_of(conv, {1, 6, 9, 9})) == loops::FilterExtents{8, 3, 15});
  Layer linear{.kind = Kind::linear};
  linear.channels = 10;
  CHECK(loops::filter_extents(node_of(linear, {4, 84, 1, 1})) == loops::FilterExtents{10, 84, 1});
}
TEST_CASE_TEMPLATE("updates give the host's bits, and leave everything alone where the flag is 0", A, float, double) {
  const Index count = 1001;
  const std::vector<Optimizer> optimizers{Sgd{.lr = 0.1, .weight_decay = 0.01}, Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01},
                                          Sgd{.lr = 0.1, .momentum = 0.9, .nesterov = true}, AdamW{}};
  for (const Optimizer& optimizer : optimizers)
    for (const int allowed : {-1, 0, 1}) {   // -1: no flag
      CAPTURE(to_string(optimizer));
      CAPTURE(allowed);
      const auto w = numbers<A>(count, 1), g = numbers<A>(count, 2), m = numbers<A>(count, 3);
      auto v = numbers<A>(count, 4);
      for (A& e : v) e = std::abs(e);
      auto host_w = w, host_m = m, host_v = v, our_w = w, our_m = m, our_v = v;
      optimizer.visit_update<A>({.number = 3, .gradient_scale = 0.5}, {}, [&](const auto& update) {
        if (allowed != 0) host::update_elements(update, host_w.data(), g.data(), host_m.data(), host_v.data(), count, 1);
        loops::update_elements(on_host, update, our_w.data(), g.data(), our_m.data(), our_v.data(), count, allowed < 0 ? nullptr : &allowed);
      });
      CHECK(our_w == host_w);
      CHECK(our_m == host_m);
      CHECK(our_v == host_v);
    }
}
TEST_CASE_TEMPLATE("one infinite element, or one that is not a number, clears the flag, wherever it lies", T, float, double, float16, bfloat16) {
  for (const Index c : {1, 3, 8})
    for (const Index hidden : {0, 1}) {
      const Shape s{2, c, 4, 3};
      const Map x = random_map(s, 1);
      const Slab<T> slab(x, {1, 3}, c, hidden);   // what is hidden is not a number
      int flag = 1;
      loops::all_finite(on_host, slab.view(), &flag);
      CHECK(flag == 1);
      const double bad[] = {std::nan(""), INFINITY, -INFINITY};
      for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(2 * c * 2 * 3); ++i) {
        const auto e = static_cast<Index>(i);
        T& element = slab.view()(e % 2, e / 2 % c, 1 + e / 2 / c % 2, e / 4 / c);
        const T old = element;
        element = T(bad[i % 3]);
        flag = 1;
        loops::all_finite(on_host, View<const T>(slab.view()), &flag);
        CHECK(flag == 0);
        loops::all_finite(on_host, slab.view().data, 0, &flag);
        CHECK(flag == 0);   // never set again
        element = old;
      }
    }
  std::vector<T> row(37, T(1));
  int flag = 1;
  loops::all_finite(on_host, row.data(), 37, &flag);
  CHECK(flag == 1);
  row[36] = T(INFINITY);
  loops::all_finite(on_host, row.data(), 36, &flag);
  CHECK(flag == 1);
  loops::all_finite(on_host, row.data(), 37, &flag);
  CHECK(flag == 0);
}
