// A max pooling that makes the mask bits of the ReLU before it, and its gradient that takes along this ReLU and the bias gradient of the convolution
// below, give the bits of these steps one after the other, whether winners were kept or are looked for again.
#include "loops_case.hpp"
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
/// A ReLU's output with its mask bits, a pooling of 2x2 with its winners, and a gradient. Some numbers are equal, some are not numbers.
template <class T>
struct Case {
  Node relu, pool, convolution{.layer = {.kind = Kind::conv, .channels = 4, .bias = true}};
  Index hidden;   ///< rows of every image that nobody is to touch
  std::vector<T> x, dy, dx;
  std::vector<std::uint8_t> bits, winners;
  std::vector<float> gradient;
  std::vector<double> workspace;
  Tallies tallies;
  Range out, in;   ///< rows of the slab
  Case(const Shape& shape, Range out_rows, Index leave, std::uint64_t seed) : hidden(leave), out(out_rows) {
    const Shape half{shape.n, shape.c, shape.h / 2, shape.w / 2};
    relu = {.layer = {.kind = Kind::activation, .activation = {.function = Function::relu}}, .in = shape, .out = shape};
    pool = {.layer = {.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}}, .in = shape, .out = half};
    in = {2 * out.begin, out.end == half.h ? shape.h : 2 * out.end};
    const auto drawn = [&](const Shape& s, Range rows, std::uint64_t at) {
      std::vector<T> list;
      for (const double v : random_vector(s.n * (rows.size() + hidden) * s.w * s.c, at))
        list.push_back(static_cast<T>(static_cast<float>(std::round(4 * v) / 4)));
      return list;
    };
    x = drawn(shape, in, seed), dy = drawn(half, out, seed + 1), dx = drawn(shape, in, seed + 2);
    for (std::size_t i = 5; i < x.size(); i += 97) x[i] = static_cast<T>(std::nanf(""));
    bits.resize(static_cast<std::size_t>(shape.n * in.size() * shape.w * shape.c / 8));
    winners.resize(static_cast<std::size_t>(half.n * out.size() * half.w * half.c));
    gradient.assign(static_cast<std::size_t>(shape.c), 0.25F);
    workspace.assign(static_cast<std::size_t>(loops::bias_gradient_bytes<T>(shape.n, shape.c, in.size(), shape.w)) / sizeof(double) + 1,
                     std::nan(""));
    Operands<T> o;
    o.op = Op::forward, o.node = &relu, o.x = view(x, shape, in), o.y = view(x, shape, in), o.saved = mask();
    loops::run(on_host, o);
    o = {};
    o.op = Op::forward, o.node = &pool, o.x = view(x, shape, in), o.saved = index();
    loops::run(on_host, o);
  }
  View<T> view(std::vector<T>& memory, const Shape& s, Range rows) const {
    return dense_view(memory.data(), s.n, s.c, {rows.begin, rows.end + hidden}, s.w, s.c).slice(rows);
  }
  View<std::uint8_t> mask() { return saved_view(bits.data(), relu.layer, relu.in.n, relu.in.c, in, relu.in.w, relu.in.c); }
  View<std::uint8_t> index() { return saved_view(winners.data(), pool.layer, pool.in.n, pool.in.c, out, pool.out.w, pool.in.c); }
  Operands<T> down() {
    Operands<T> o;
    o.op = Op::backward_data, o.node = &pool, o.dy = view(dy, pool.out, out), o.dx = view(dx, pool.in, in), o.saved = index();
    o.tallies = tallies.data();
    return o;
  }
  Operands<T> up_to_relu() {
    Operands<T> o;
    o.op = Op::backward_data, o.node = &relu, o.dy = o.dx = view(dx, pool.in, in), o.saved = mask();
    return o;
  }
  Operands<T> sums() {
    Operands<T> o;
    o.op = Op::backward_parameters, o.node = &convolution, o.accumulate = true, o.dy = view(dx, pool.in, in), o.d_parameters[1] = gradient.data();
    o.workspace = reinterpret_cast<std::byte*>(workspace.data());
    return o;
  }
};
template <class T>
void check(const Shape& shape, Range out, Index hidden) {
  INFO(to_string(shape), ", rows ", out.begin, "..", out.end, ", ", hidden, " hidden");
  Case<T> one(shape, out, hidden, 40);
  loops::run(on_host, one.down());
  loops::run(on_host, one.up_to_relu());
  const Operands<T> sums = one.sums();
  loops::bias_gradient(on_host, sums.dy, sums.d_parameters[1], true, sums.workspace, one.tallies.data());
  CHECK(std::any_of(one.gradient.begin(), one.gradient.end(), [](float v) { return v != 0.25F; }));
  for (const bool again : {false, true}) {
    INFO("winners are looked for again: ", again);
    Case<T> together(shape, out, hidden, 40);
    const Operands<T> relu = together.up_to_relu(), bias = together.sums();
    Operands<T> o = together.down();
    o.along = &relu, o.bias_along = &bias;
    if (again) o.x = together.view(together.x, shape, together.in), o.saved = {};
    loops::run(on_host, o);
    CHECK(std::memcmp(together.dx.data(), one.dx.data(), one.dx.size() * sizeof(T)) == 0);
    CHECK(together.gradient == one.gradient);
    CHECK(together.tallies.all_zero());
  }
}
}   // namespace
TEST_CASE_TEMPLATE("a pooling's gradient with ReLU and bias gradient gives the bits of steps one by one", T, float, bfloat16, float16) {
  for (const Index hidden : {0, 3}) {
    check<T>({2, 8, 8, 6}, {0, 4}, hidden);
    check<T>({2, 8, 8, 6}, {1, 3}, hidden);    // a slab
    check<T>({3, 16, 9, 7}, {0, 4}, hidden);   // a row and a column that no window reads
    check<T>({1, 24, 5, 2}, {1, 2}, hidden);
    check<T>({2, 64, 40, 34}, {0, 20}, hidden);   // several blocks
  }
}
TEST_CASE_TEMPLATE("a pooling that makes the mask bits of the ReLU before it gives the bits of both", T, float, bfloat16, float16) {
  for (const Shape& shape : {Shape{2, 8, 8, 6}, Shape{1, 24, 4, 2}, Shape{3, 64, 10, 14}})
    for (const Range out : {Range{0, shape.h / 2}, Range{1, 2}})
      for (const Index hidden : {0, 2})
        for (const bool writes : {true, false}) {
          INFO(to_string(shape), ", rows ", out.begin, "..", out.end, ", ", hidden, " hidden, with an output: ", writes);
          Case<T> one(shape, out, hidden, 50), together(shape, out, hidden, 50);   // both have made bits and winners, one by one
          const auto pooling = [&](Case<T>& c) {
            Operands<T> o;
            o.op = Op::forward, o.node = &c.pool, o.x = c.view(c.x, shape, c.in), o.saved = c.index();
            if (writes) o.y = c.view(c.dy, c.pool.out, out);
            return o;
          };
          loops::run(on_host, pooling(one));
          std::fill(together.bits.begin(), together.bits.end(), std::uint8_t(0x5a));
          std::fill(together.winners.begin(), together.winners.end(), std::uint8_t(9));
          Operands<T> relu, o = pooling(together);
          relu.op = Op::forward, relu.node = &together.relu, relu.saved = together.mask();
          o.along = &relu;
          loops::run(on_host, o);
          CHECK(together.winners == one.winners);
          CHECK(together.bits == one.bits);
          CHECK(std::memcmp(together.dy.data(), one.dy.data(), one.dy.size() * sizeof(T)) == 0);
        }
}
