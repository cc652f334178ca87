// Which steps are done along with others, and which are not: one difference from steps that are, at a time.
#include <lrcnn/backend/cudnn/steps_along.hpp>
#include <doctest/doctest.h>
#include <array>
#include <functional>
#include <vector>
using namespace lrcnn;
namespace {
using Steps = std::vector<Operands<float>>;
/// Nodes and memory of steps on maps of 2 images, 8 channels, 4 rows, 5 columns.
struct Maps {
  static constexpr Index map = 2 * 8 * 4 * 5;
  std::array<float, 6 * map> memory{};
  std::array<std::uint8_t, 1000> bits{};
  std::array<double, 64> numbers{};
  Node norm{.layer = {.kind = Kind::norm, .norm = {.over = Norm::Over::batch, .affine = true}}, .input = 1, .in = {2, 8, 4, 5}, .out = {2, 8, 4, 5}};
  Node relu{.layer = {.kind = Kind::activation, .activation = {.function = Function::relu}}, .input = 3, .in = {2, 8, 4, 5}, .out = {2, 8, 4, 5}};
  Node sum{.layer = {.kind = Kind::sum}, .input = 3, .other = 2, .in = {2, 8, 4, 5}, .in2 = {2, 8, 4, 5}, .out = {2, 8, 4, 5}};
  Node pool{.layer = {.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}}, .input = 4, .in = {2, 8, 4, 5}, .out = {2, 8, 2, 2}};
  View<float> at(Index place, Index offset = 0) { return dense_view(memory.data() + place * map + offset, 2, 8, {0, 4}, 5, 8); }
  View<std::uint8_t> mask() { return saved_view(bits.data(), relu.layer, 2, 8, {0, 4}, 5, 8); }
  /// A norm from map 0 to map 1, and the join that adds map 2 into map 3.
  Steps join() {
    Operands<float> n, j;
    n.op = Op::forward, n.node = &norm, n.layer = 2, n.statistics = numbers.data(), n.x = at(0), n.y = at(1);
    j.op = Op::forward, j.node = &sum, j.layer = 3, j.x = at(1), j.other = at(2), j.y = at(3);
    return {n, j};
  }
  /// A ReLU's gradient in place in map 1, and those of the norm before it, whose input is map 0.
  Steps relu_behind() {
    Operands<float> r, s, n;
    r.op = Op::backward_data, r.node = &relu, r.layer = 3, r.y = at(2), r.dy = at(1), r.dx = at(1);
    s.op = Op::backward_sums, s.node = &norm, s.layer = 2, s.x = at(0), s.dy = at(1), s.statistics = numbers.data(), s.sums = numbers.data() + 20;
    n = s;
    n.op = Op::backward_data, n.dx = at(1);
    return {r, s, n};
  }
  /// A pooling's gradient in map 1, and that of the ReLU before it in place.
  Steps pooled() {
    Operands<float> p, r;
    p.op = Op::backward_data, p.node = &pool, p.layer = 4, p.dy = at(3), p.dx = at(1);
    r.op = Op::backward_data, r.node = &relu, r.layer = 3, r.dy = at(1), r.dx = at(1), r.saved = mask();
    return {p, r};
  }
};
std::size_t along(const Steps& steps, bool fleeting = true) {
  return cudnn::StepsAlong<float>(std::span<const Operands<float>>(steps), fleeting).steps;
}
struct Difference {
  const char* name;
  std::function<void(Maps&, Steps&)> make;
};
void check_each(Steps (Maps::*good)(), std::size_t steps, const std::vector<Difference>& differences) {
  {
    Maps maps;
    CHECK(along((maps.*good)()) == steps);
  }
  for (const Difference& difference : differences) {
    Maps maps;
    Steps list = (maps.*good)();
    difference.make(maps, list);
    INFO(difference.name);
    CHECK(along(list) == 0);
  }
}
}   // namespace
TEST_CASE("a join is added by the norm before it, unless something is in the way") {
  Maps maps;
  CHECK(along(maps.join(), false) == 0);
  CHECK(along({maps.join()[0]}) == 0);
  Steps other_side = maps.join();
  std::swap(other_side[1].x, other_side[1].other);
  CHECK(along(other_side) == 2);
  Steps in_place = maps.join();
  in_place[1].y = maps.at(0);   // where the norm's input is, element by element
  CHECK(along(in_place) == 2);
  Steps running = maps.join();
  running[0].statistics = nullptr;
  CHECK(along(running) == 2);
  check_each(&Maps::join, 2,
             {{"over a part of the norm's input", [](Maps& m, Steps& s) { s[1].y = m.at(0, 8); }},
              {"bits over the norm's input",
               [](Maps& m, Steps& s) {
                 s[1].saved = saved_view(reinterpret_cast<std::uint8_t*>(m.memory.data()), m.relu.layer, 2, 8, {0, 4}, 5, 8);
               }},
              {"both inputs are the norm's output", [](Maps& m, Steps& s) { s[1].other = m.at(1); }},
              {"neither input is", [](Maps& m, Steps& s) { s[1].x = m.at(4); }},
              {"other rows",
               [](Maps&, Steps& s) {
                 s[1].y = s[1].y.slice({1, 4});
               }},
              {"channels that are no multiple of 8", [](Maps& m, Steps&) { m.norm.in.c = 12; }},
              {"a norm over groups", [](Maps& m, Steps&) { m.norm.layer.norm.over = Norm::Over::group; }},
              {"a norm with an activation", [](Maps& m, Steps& s) { s[0].activation = &m.relu; }},
              {"a concatenation", [](Maps& m, Steps&) { m.sum.layer.kind = Kind::concat; }}});
}
TEST_CASE("a ReLU's gradient is left out before those of the norm that it reads, unless something is in the way") {
  Maps maps;
  Steps data_alone = maps.relu_behind();
  data_alone.erase(data_alone.begin() + 1);
  CHECK(along(data_alone) == 2);
  CHECK(along(maps.relu_behind(), false) == 3);
  check_each(&Maps::relu_behind, 3,
             {{"another function", [](Maps& m, Steps&) { m.relu.layer.activation.function = Function::leaky_relu; }},
              {"it reads another tensor", [](Maps& m, Steps&) { m.relu.input = 2; }},
              {"not in place", [](Maps& m, Steps& s) { s[0].dy = m.at(4); }},
              {"the norm's gradient elsewhere", [](Maps& m, Steps& s) { s[2].dx = m.at(4); }},
              {"sums of another gradient", [](Maps& m, Steps& s) { s[1].dy = m.at(4); }},
              {"sums of another input", [](Maps& m, Steps& s) { s[1].x = m.at(4); }},
              {"sums for some rows",
               [](Maps&, Steps& s) {
                 s[2].part = {1, 3};
               }},
              {"running statistics", [](Maps&, Steps& s) { s[2].statistics = nullptr; }},
              {"no sums", [](Maps&, Steps& s) { s[2].sums = nullptr; }},
              {"fewer rows of the gradient",
               [](Maps&, Steps& s) {
                 s[0].dy = s[0].dy.slice({1, 4});
               }},
              {"channels that are no multiple of 8", [](Maps& m, Steps&) { m.norm.in.c = 12; }},
              {"sums alone", [](Maps&, Steps& s) { s.pop_back(); }}});
}
TEST_CASE("a ReLU's gradient is left out behind that of the pooling that reads it, unless something is in the way") {
  check_each(&Maps::pooled, 2,
             {{"no bits", [](Maps&, Steps& s) { s[1].saved = {}; }},
              {"another place", [](Maps& m, Steps& s) { s[1].dy = m.at(4), s[1].dx = m.at(4); }},
              {"not in place", [](Maps& m, Steps& s) { s[1].dx = m.at(4); }},
              {"average pooling", [](Maps& m, Steps&) { m.pool.layer.kind = Kind::avg_pool; }},
              {"fewer rows", [](Maps&, Steps& s) {
                 s[1].dy = s[1].dy.slice({0, 3}), s[1].dx = s[1].dx.slice({0, 3});
               }}});
}
