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
  alignas(64) std::array<float, 6 * map> memory{};
  std::array<std::uint8_t, 1000> bits{};
  std::array<double, 64> numbers{};
  Node norm{.layer = {.kind = Kind::norm, .norm = {.over = Norm::Over::batch, .affine = true}}, .input = 1, .in = {2, 8, 4, 5}, .out = {2, 8, 4, 5}};
  Node relu{.layer = {.kind = Kind::activation, .activation = {.function = Function::relu}}, .input = 3, .in = {2, 8, 4, 5}, .out = {2, 8, 4, 5}};
  Node sum{.layer = {.kind = Kind::sum}, .input = 3, .other = 2, .in = {2, 8, 4, 5}, .in2 = {2, 8, 4, 5}, .out = {2, 8, 4, 5}};
  Node pool{.layer = {.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}}, .input = 4, .in = {2, 8, 4, 5}, .out = {2, 8, 2, 2}};
  Node convolution{.layer = {.kind = Kind::conv, .window = {.kernel = 3, .pad = 1}, .channels = 8, .bias = true},
                   .input = 2,
                   .in = {2, 8, 4, 5},
                   .out = {2, 8, 4, 5}};
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
  View<std::uint8_t> winners() { return saved_view(bits.data() + 500, pool.layer, 2, 8, {0, 2}, 2, 8); }
  View<float> halved(Index place) { return dense_view(memory.data() + place * map, 2, 8, {0, 2}, 2, 8); }
  /// A pooling's gradient in map 1, and that of the ReLU before it in place.
  Steps pooled() {
    Operands<float> p, r;
    p.op = Op::backward_data, p.node = &pool, p.layer = 4, p.dy = halved(3), p.dx = at(1), p.saved = winners();
    r.op = Op::backward_data, r.node = &relu, r.layer = 3, r.dy = at(1), r.dx = at(1), r.saved = mask();
    return {p, r};
  }
  /// The same, and the gradients of the convolution below, which has a workspace of 256 bytes in map 5.
  Steps pooled_with_bias() {
    Steps steps = pooled();
    steps.push_back(parameters());
    return steps;
  }
  Operands<float> parameters() {
    Operands<float> o;
    o.op = Op::backward_parameters, o.node = &convolution, o.layer = 2, o.x = at(4), o.dy = at(1);
    o.workspace = reinterpret_cast<std::byte*>(at(5).data), o.workspace_bytes = 256;
    return o;
  }
  /// A convolution and its ReLU from map 4 to map 0, a pooling of which winners are kept, and the steps back, up to the convolution's parameters.
  Steps there_and_back() {
    Operands<float> c, p;
    c.op = Op::forward, c.node = &convolution, c.activation = &relu, c.layer = 2, c.x = at(4), c.y = at(0), c.saved = mask();
    p.op = Op::forward, p.node = &pool, p.layer = 4, p.x = at(0), p.saved = winners();
    Steps steps = pooled_with_bias();
    steps.insert(steps.begin(), {c, p});
    return steps;
  }
  /// A ReLU's gradient in map 1, where it is in place, and that of the convolution's parameters.
  Steps relu_with_bias() {
    Steps steps = pooled_with_bias();
    steps.erase(steps.begin());
    return steps;
  }
};
std::size_t along(const Steps& steps, bool fleeting = true) {
  return cudnn::StepsAlong<float>(std::span<const Operands<float>>(steps), steps.size(), fleeting).steps;
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
struct Joined : Maps {
  /// What is added from map 3 to map 1; a ReLU's gradient in place there, by the values of map 2; the join's, a copy to map 4 and nothing; those of
  /// the norm that the join reads, whose input is map 0.
  Steps steps() {
    relu.input = 4, sum.input = 3, sum.other = 1;
    Operands<float> a, r, c, n;
    a.op = Op::add, a.x = at(3), a.y = at(1);
    r.op = Op::backward_data, r.node = &relu, r.layer = 4, r.y = at(2), r.dy = at(1), r.dx = at(1);
    c.op = Op::backward_data, c.node = &sum, c.layer = 3, c.operand = 1, c.dy = at(1), c.dx = at(4);
    n = c, n.operand = 0, n.dx = at(1);
    Steps norms = relu_behind();
    for (Operands<float>& o : norms) o.workspace = reinterpret_cast<std::byte*>(at(5).data), o.workspace_bytes = 64;
    return {a, r, c, n, norms[1], norms[2]};
  }
};
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
namespace {
/// Steps that find a bias gradient to make along, by what finds them.
const Operands<float>* sums_along(const Steps& steps) {
  return cudnn::StepsAlong<float>(std::span<const Operands<float>>(steps), steps.size(), false).sums;
}
const Operands<float>* sums_of_run(const Steps& steps, std::size_t most) {
  return cudnn::PointwiseRun<float>(std::span<const Operands<float>>(steps), most).sums;
}
}   // namespace
TEST_CASE("a bias gradient is made along with a pooling's and its ReLU's gradient, unless something is in the way") {
  Maps maps;
  const Steps good = maps.pooled_with_bias();
  CHECK(sums_along(good) == &good[2]);
  CHECK(cudnn::StepsAlong<float>(std::span<const Operands<float>>(good), 2, false).sums == &good[2]);   // it is only looked at
  for (const Difference& difference : std::vector<Difference>{
           {"no bias", [](Maps&m, Steps&) { m.convolution.layer.bias = false; }},
           {"another gradient", [](Maps&m, Steps&s) { s[2].dy = m.at(4); }},
           {"fewer rows",
            [](Maps&, Steps&s) {
              s[2].dy = s[2].dy.slice({0, 3});
            }},
           {"another layer's parameters", [](Maps&m, Steps&) { m.convolution.layer.kind = Kind::norm; }},
           {"windows that overlap", [](Maps&m, Steps&) { m.pool.layer.window.kernel = 3; }},
           {"windows with padding", [](Maps&m, Steps&) { m.pool.layer.window.pad = 1; }},
           {"a workspace over the gradient", [](Maps&m, Steps&s) { s[2].workspace = reinterpret_cast<std::byte*>(m.at(1, 40).data); }},
           {"a workspace over the gradient above", [](Maps&m, Steps&s) { s[2].workspace = reinterpret_cast<std::byte*>(m.at(3).data); }},
           {"a workspace over the mask", [](Maps&m, Steps&s) { s[2].workspace = reinterpret_cast<std::byte*>(m.bits.data()); }},
           {"no rows of the gradient above", [](Maps&, Steps&s) {
              s[0].dy = s[0].dy.slice({0, 0});
            }}}) {
    Maps other;
    Steps list = other.pooled_with_bias();
    difference.make(other, list);
    INFO(difference.name);
    CHECK(sums_along(list) == nullptr);
    CHECK(along(list) == 2);
  }
}
TEST_CASE("a bias gradient is made along with a ReLU's gradient, and with what is moved beside it, unless something is in the way") {
  Maps maps;
  const Steps good = maps.relu_with_bias();
  CHECK(sums_of_run(good, 2) == &good[1]);
  CHECK(sums_of_run(good, 1) == &good[1]);
  const auto moved = [&](Op op, const View<float>& from, const View<float>& to) {
    Operands<float> o;
    o.op = op, o.x = from, o.y = to;
    o.x.row0 = o.y.row0;
    return o;
  };
  // Rows that the slab below has left are added to the gradient's last row; its first is left for the slab above, in the same place.
  const View<float> carried = maps.at(2).slice({0, 1}), first = maps.at(1).slice({0, 1}), last = maps.at(1).slice({3, 4});
  Steps with_moves = maps.relu_with_bias();
  const View<float> below = maps.at(1).slice({1, 4});   // the ReLU's rows
  with_moves[0].dy = with_moves[0].dx = below, with_moves[1].dy = below;
  with_moves.insert(with_moves.begin(), {moved(Op::add, carried, last), moved(Op::copy, first, carried)});
  const cudnn::PointwiseRun<float> run(std::span<const Operands<float>>(with_moves), 3);
  CHECK(run.steps == 3);
  CHECK(run.sums == &with_moves[3]);
  REQUIRE(run.work.size() == 3);
  CHECK(run.work[0].row == 2);   // rows of the ReLU's
  CHECK(run.work[1].row == 2);
  CHECK(run.work[2].row == 0);
  Steps above = with_moves;   // the first of two rows is above the ReLU's: it has threads of its own in the loop, and none in the sum
  above[0] = moved(Op::copy, maps.at(1).slice({0, 2}), maps.at(3).slice({0, 2}));
  const cudnn::PointwiseRun<float> other_run(std::span<const Operands<float>>(above), 3);
  CHECK(other_run.steps == 3);
  CHECK(other_run.sums == nullptr);
  Steps added = maps.relu_with_bias();   // to what the ReLU's step has made
  added.insert(added.begin() + 1, moved(Op::add, maps.at(3), maps.at(1)));
  const cudnn::PointwiseRun<float> sum_run(std::span<const Operands<float>>(added), 2);
  CHECK(sum_run.steps == 2);
  CHECK(sum_run.sums == nullptr);
  Steps copied = maps.relu_with_bias();   // from there
  copied.insert(copied.begin() + 1, moved(Op::copy, maps.at(1), maps.at(3)));
  CHECK(sums_of_run(copied, 2) == &copied[2]);
  for (const Difference& difference : std::vector<Difference>{
           {"no bias", [](Maps&m, Steps&) { m.convolution.layer.bias = false; }},
           {"another gradient", [](Maps&m, Steps&s) { s[1].dy = m.at(4); }},
           {"another function", [](Maps&m, Steps&) { m.relu.layer.activation.function = Function::leaky_relu; }},
           {"a workspace over the gradient", [](Maps&m, Steps&s) { s[1].workspace = reinterpret_cast<std::byte*>(m.at(1, 40).data); }},
           {"a workspace over the mask", [](Maps&m, Steps&s) { s[1].workspace = reinterpret_cast<std::byte*>(m.bits.data()); }}}) {
    Maps other;
    Steps list = other.relu_with_bias();
    difference.make(other, list);
    INFO(difference.name);
    CHECK(sums_of_run(list, 1) == nullptr);
  }
}
TEST_CASE("winners of a pooling are looked for again, and mask bits left out, unless something is in the way") {
  const auto finds = [](const Steps& steps, bool fleeting = true) {
    const std::span<const Operands<float>> all(steps);
    const cudnn::StepsAlong<float> bits(all, 4, fleeting), pool(all.subspan(1), 3, fleeting);
    CHECK(bits.steps == 0);
    const bool again = pool.count == 1 && pool.work[0].saved.data == nullptr && pool.work[0].x.data == steps[1].x.data;
    CHECK(again == (pool.steps == 3));
    CHECK(again == (pool.sums == &steps[4]));
    return std::pair(bits.no_bits, again);
  };
  Maps maps;
  CHECK(finds(maps.there_and_back()) == std::pair(true, true));
  CHECK(finds(maps.there_and_back(), false) == std::pair(false, false));
  const Steps good = maps.there_and_back();
  CHECK_FALSE(cudnn::StepsAlong<float>(std::span<const Operands<float>>(good), 3, true).no_bits);   // the steps back may come later
  CHECK(cudnn::StepsAlong<float>(std::span<const Operands<float>>(good).subspan(1), 2, true).steps == 0);
  struct Case {
    Difference difference;
    bool again = false;
  };
  for (const Case& c : std::vector<Case>{
           {{"the pooling has an output", [](Maps&m, Steps&s) { s[1].y = m.halved(5); }}},
           {{"other winners", [](Maps&m, Steps&s) { s[2].saved.data = m.bits.data() + 600; }}},
           {{"the gradient is written over the map", [](Maps&m, Steps&s) { s[2].dx = s[3].dx = m.at(0), s[3].dy = s[4].dy = m.at(0); }}},
           {{"the gradient is written over a part of the map", [](Maps&m, Steps&s) { s[1].x = m.at(1, -8); }}},
           {{"the gradient is written over the one above", [](Maps&m, Steps&s) { s[2].dy = m.halved(1); }}},
           {{"the pooling reads another tensor", [](Maps&m, Steps&) { m.pool.input = 2; }}},
           {{"windows that overlap", [](Maps&m, Steps&) { m.pool.layer.window.kernel = 3; }}},
           {{"rows of the map are missing", [](Maps&, Steps&s) { s[1].x = s[1].x.slice({1, 4}); }}},
           {{"no bias", [](Maps&m, Steps&) { m.convolution.layer.bias = false; }}},
           {{"a workspace over the map", [](Maps&m, Steps&s) { s[4].workspace = reinterpret_cast<std::byte*>(m.at(0, 16).data); }}},
           {{"the convolution's ReLU is another", [](Maps&m, Steps&s) { s[0].activation = &m.convolution; }}, true},
           {{"other mask bits", [](Maps&m, Steps&s) { s[0].saved.data = m.bits.data() + 600; }}, true},
           {{"the convolution makes fewer rows", [](Maps&, Steps&s) { s[0].y = s[0].y.slice({0, 3}); }}, true}}) {
    Maps other;
    Steps list = other.there_and_back();
    c.difference.make(other, list);
    INFO(c.difference.name);
    CHECK(finds(list) == std::pair(false, c.again));
  }
}
TEST_CASE("a pooling makes the mask bits of the ReLU that it reads, unless something is in the way") {
  struct Pooled : Maps {
    Pooled() { relu.in.w = relu.out.w = convolution.out.w = pool.in.w = 4; }   // a map that windows cover
    View<float> even(Index place) { return dense_view(memory.data() + place * map, 2, 8, {0, 4}, 4, 8); }
    Steps steps() {
      Operands<float> c, p;
      c.op = Op::forward, c.node = &convolution, c.activation = &relu, c.layer = 2, c.x = even(4), c.y = even(0);
      c.saved = saved_view(bits.data(), relu.layer, 2, 8, {0, 4}, 4, 8);
      p.op = Op::forward, p.node = &pool, p.layer = 4, p.x = even(0), p.y = halved(3), p.saved = winners();
      return {c, p};
    }
  };
  const auto makes = [](const Steps& steps) {
    const cudnn::StepsAlong<float> found(std::span<const Operands<float>>(steps), steps.size(), false);
    CHECK(found.steps == 0);
    CHECK(found.no_bits == found.bits_next);
    return found.bits_next;
  };
  Pooled maps;
  CHECK(makes(maps.steps()));
  Steps winners_alone = maps.steps();
  winners_alone[1].y = {};
  CHECK(makes(winners_alone));
  struct Case {
    const char* name;
    std::function<void(Pooled&, Steps&)> make;
  };
  for (const Case& c : std::vector<Case>{
           {"no bits are wanted", [](Pooled&, Steps&s) { s[0].saved = {}; }},
           {"no ReLU", [](Pooled&, Steps&s) { s[0].activation = nullptr; }},
           {"another function", [](Pooled&m, Steps&) { m.relu.layer.activation.function = Function::leaky_relu; }},
           {"not a convolution", [](Pooled&m, Steps&) { m.convolution.layer.kind = Kind::norm; }},
           {"average pooling", [](Pooled&m, Steps&) { m.pool.layer.kind = Kind::avg_pool; }},
           {"windows that overlap", [](Pooled&m, Steps&) { m.pool.layer.window.kernel = 3; }},
           {"another tensor", [](Pooled&m, Steps&) { m.pool.input = 3; }},
           {"another map", [](Pooled&m, Steps&s) { s[1].x = m.even(2); }},
           {"rows that no window reads", [](Pooled&, Steps&s) { s[1].y = s[1].y.slice({0, 1}), s[1].saved = s[1].saved.slice({0, 1}); }},
           {"a column that no window reads", [](Pooled&m, Steps&) { m.pool.out.w = 1; }},
           {"output over the map", [](Pooled&m, Steps&s) { s[1].y = m.halved(0); }},
           {"winners over the bits", [](Pooled&m, Steps&s) { s[1].saved.data = m.bits.data(); }},
           {"channels that are no multiple of 8", [](Pooled&, Steps&s) { s[0].y.c = s[1].x.c = 12; }}}) {
    Pooled other;
    Steps list = other.steps();
    c.make(other, list);
    INFO(std::string(c.name));
    CHECK_FALSE(makes(list));
  }
}
TEST_CASE("a join's gradient is what its other input gets, and is not copied, unless something is in the way") {
  const auto takes = [](const Steps& steps) {
    const cudnn::StepsAlong<float> found(std::span<const Operands<float>>(steps), steps.size(), false);
    if (found.steps == 0) return false;
    CHECK(found.steps == steps.size());
    CHECK(found.count == 2);
    CHECK(found.work[0].dx.data == found.work[1].dy.data);
    CHECK((found.work[0].other.data != nullptr) == (steps[0].op == Op::add));
    return true;
  };
  Joined maps;
  CHECK(takes(maps.steps()));
  Steps alone = maps.steps();
  alone.erase(alone.begin());
  CHECK(takes(alone));
  Steps without_nothing = maps.steps();
  without_nothing.erase(without_nothing.begin() + 3);
  CHECK(takes(without_nothing));
  Steps masked = maps.steps();
  masked[1].saved = maps.mask();
  CHECK(takes(masked));
  for (const Index place : {2, 3}) {   // the copy takes the place of what was read, element by element
    Steps over = maps.steps();
    over[2].dx = maps.at(place);
    CHECK(takes(over));
  }
  // Where the sums' results go: to the end of a large workspace, if the norm's own step, of all rows, is the only one that reads them.
  std::vector<std::byte> workspace(Index{5} << 20);
  const auto results = [&](const std::function<void(Steps&)>& change) {
    Steps large = maps.steps();
    for (const std::size_t i : {4, 5}) large[i].workspace = workspace.data(), large[i].workspace_bytes = static_cast<Index>(workspace.size());
    change(large);
    const cudnn::StepsAlong<float> found(std::span<const Operands<float>>(large), large.size(), false);
    REQUIRE(found.count == 2);
    CHECK(found.work[0].sums == found.work[1].sums);
    return reinterpret_cast<std::byte*>(found.work[0].sums);
  };
  auto* const own = reinterpret_cast<std::byte*>(maps.numbers.data() + 20);
  CHECK(results([](Steps&) {}) == workspace.data() + workspace.size() - 256);
  CHECK(results([](Steps& s) { s[4].accumulate = true; }) == own);
  CHECK(results([](Steps& s) { s[4].workspace_bytes = (Index{4} << 20) + 256; }) == own);
  CHECK(results([](Steps& s) { s[4].workspace_bytes = (Index{4} << 20) + 512; }) == workspace.data() + (Index{4} << 20) + 256);
  maps.norm.in.n = 3;   // of which these steps have two
  CHECK(results([](Steps&) {}) == own);
  maps.norm.in.n = 2, maps.norm.in.h = 5;
  CHECK(results([](Steps&) {}) == own);
  maps.norm.in.h = 4;
  const cudnn::StepsAlong<float> bounded(std::span<const Operands<float>>(alone), 4, false);
  CHECK(bounded.steps == 0);
  struct Case {
    const char* name;
    std::function<void(Joined&, Steps&)> make;
  };
  for (const Case& c : std::vector<Case>{
           {"another function", [](Joined&m, Steps&) { m.relu.layer.activation.function = Function::leaky_relu; }},
           {"not in place", [](Joined&m, Steps&s) { s[1].dy = m.at(4); }},
           {"something else is added to", [](Joined&m, Steps&s) { s[0].y = m.at(5); }},
           {"rows are added to",
            [](Joined&, Steps&s) {
              s[0].y = s[0].y.slice({1, 4});
            }},
           {"the copy over a part of what is added", [](Joined&m, Steps&s) { s[2].dx = m.at(3, 8); }},
           {"the copy over the norm's input", [](Joined&m, Steps&s) { s[2].dx = m.at(0); }},
           {"the copy over a part of the ReLU's values", [](Joined&m, Steps&s) { s.erase(s.begin()), s[1].dx = m.at(2, 8); }},
           {"the copy over the mask",
            [](Joined&m, Steps&s) { s[1].saved = saved_view(reinterpret_cast<std::uint8_t*>(m.at(4, 8).data), m.relu.layer, 2, 8, {0, 4}, 5, 8); }},
           {"the sums' results over the mask",
            [](Joined&m, Steps&s) { s[1].saved = m.mask(), s[4].sums = reinterpret_cast<double*>(m.bits.data()); }},
           {"the sums' workspace over the mask",
            [](Joined&m, Steps&s) { s[1].saved = m.mask(), s[4].workspace = reinterpret_cast<std::byte*>(m.bits.data()); }},
           {"a mask with other rows between images", [](Joined&m, Steps&s) { s[1].saved = m.mask(), s[1].saved.stride_n += 5; }},
           {"values with other rows between images", [](Joined&, Steps&s) { s[1].y.stride_n += 40; }},
           {"an addition with other rows between images", [](Joined&, Steps&s) { s[0].x.stride_n += 40; }},
           {"values that packs do not fit", [](Joined&m, Steps&s) { s[1].y = m.at(2, 1); }},
           {"the sums' results over the copy", [](Joined&m, Steps&s) { s[4].sums = reinterpret_cast<double*>(m.at(4).data); }},
           {"the sums' workspace over the copy", [](Joined&m, Steps&s) { s[4].workspace = reinterpret_cast<std::byte*>(m.at(4, 8).data); }},
           {"no sums", [](Joined&, Steps&s) { s[4].sums = nullptr; }},
           {"sums of another input", [](Joined&m, Steps&s) { s[4].x = m.at(3); }},
           {"sums for some rows", [](Joined&, Steps&s) { s[5].part = {1, 3}; }},
           {"the copy of fewer rows", [](Joined&, Steps&s) { s[2].dx = s[2].dx.slice({1, 4}); }},
           {"a concatenation", [](Joined&m, Steps&) { m.sum.layer.kind = Kind::concat; }},
           {"sums of another gradient", [](Joined&m, Steps&s) { s[4].dy = m.at(4); }},
           {"the sums' results over what is added", [](Joined&m, Steps&s) { s[4].sums = reinterpret_cast<double*>(m.at(3).data); }},
           {"the sums' results over the ReLU's values", [](Joined&m, Steps&s) { s[4].sums = reinterpret_cast<double*>(m.at(2).data); }},
           {"the sums' workspace over what is added", [](Joined&m, Steps&s) { s[4].workspace = reinterpret_cast<std::byte*>(m.at(3, 8).data); }},
           {"the sums' workspace over the ReLU's values", [](Joined&m, Steps&s) { s[4].workspace = reinterpret_cast<std::byte*>(m.at(2, 8).data); }},
           {"the norm's gradient elsewhere", [](Joined&m, Steps&s) { s[5].dx = m.at(5); }},
           {"running statistics", [](Joined&, Steps&s) { s[5].statistics = nullptr; }},
           {"channels that are no multiple of 8", [](Joined&m, Steps&) { m.norm.in.c = 12; }}}) {
    Joined other;
    Steps list = other.steps();
    c.make(other, list);
    INFO(std::string(c.name));
    CHECK_FALSE(takes(list));
  }
}
TEST_CASE("where a join's inputs have one gradient, the norm's sums make it in place, unless something is in the way") {
  const auto steps = [](Joined& maps) {
    const Steps all = maps.steps();
    return Steps{all[0], all[1], all[3], all[4]};
  };
  const auto takes = [](const Steps& list) {
    const cudnn::StepsAlong<float> found(std::span<const Operands<float>>(list), list.size(), false);
    if (found.steps == 0) return false;
    const std::size_t relu = list[0].op == Op::add ? 1 : 0;
    CHECK(found.steps == relu + 3);
    CHECK(found.count == 1);
    CHECK(found.work[0].op == Op::backward_sums);
    CHECK(found.work[0].along == &list[relu]);
    CHECK(found.work[0].dx.data == list[relu].dx.data);
    CHECK(found.work[0].dy.data == list[relu].dx.data);
    CHECK(found.work[0].sums == list[relu + 2].sums);
    CHECK((found.work[0].other.data != nullptr) == (relu > 0));
    return true;
  };
  Joined maps;
  const Steps good = steps(maps);
  CHECK(takes(good));
  CHECK(takes(Steps(good.begin() + 1, good.end())));
  Steps masked = steps(maps);
  masked[1].saved = maps.mask();
  CHECK(takes(masked));
  // With the norm's own step behind, which writes over its input, results go to the end of a large workspace.
  std::vector<std::byte> workspace(Index{5} << 20);
  Steps whole = steps(maps);
  whole.push_back(maps.steps()[5]);
  whole[4].dx = maps.at(0);
  for (const std::size_t i : {3, 4}) whole[i].workspace = workspace.data(), whole[i].workspace_bytes = static_cast<Index>(workspace.size());
  const auto count = [](const Steps& list) {
    const cudnn::StepsAlong<float> found(std::span<const Operands<float>>(list), list.size(), false);
    CHECK(found.steps == found.count + 3);
    if (found.count == 2) CHECK(found.work[1].sums == found.work[0].sums);
    if (found.count == 2) CHECK(found.work[1].dx.data == list[4].dx.data);
    const bool at_end = reinterpret_cast<std::byte*>(found.work[0].sums) == list[3].workspace + list[3].workspace_bytes - 256;
    CHECK(at_end == (found.count == 2 && list[3].workspace_bytes > 64 && !list[3].accumulate));
    return found.count;
  };
  CHECK(count(whole) == 2);
  Steps apart = whole, elsewhere = whole, other_sums = whole, small = whole, added = whole;
  apart[4].dx = maps.at(4);
  CHECK(count(apart) == 1);
  elsewhere[4].dx = maps.at(1);   // over dy, which stays the other input's
  CHECK(count(elsewhere) == 1);
  other_sums[4].layer = 7;
  CHECK(count(other_sums) == 1);
  added[3].accumulate = true;
  CHECK(count(added) == 2);
  for (const std::size_t i : {3, 4}) small[i].workspace = reinterpret_cast<std::byte*>(maps.at(5).data), small[i].workspace_bytes = 64;
  CHECK(count(small) == 2);
  CHECK(cudnn::StepsAlong<float>(std::span<const Operands<float>>(good), 3, false).steps == 0);   // the sums may come later
  struct Case {
    const char* name;
    std::function<void(Joined&, Steps&)> make;
  };
  for (const Case& c : std::vector<Case>{
           {"another function", [](Joined&m, Steps&) { m.relu.layer.activation.function = Function::leaky_relu; }},
           {"a ReLU that is not in place", [](Joined&m, Steps&s) { s[1].dy = m.at(4); }},
           {"something else is added to", [](Joined&m, Steps&s) { s[0].y = m.at(4); }},
           {"a concatenation", [](Joined&m, Steps&) { m.sum.layer.kind = Kind::concat; }},
           {"sums of another gradient", [](Joined&m, Steps&s) { s[3].dy = m.at(4); }},
           {"sums of fewer rows", [](Joined&, Steps&s) { s[3].dy = s[3].dy.slice({1, 4}); }},
           {"rows of the norm's input are missing", [](Joined&, Steps&s) { s[3].x = s[3].x.slice({1, 4}); }},
           {"no sums", [](Joined&, Steps&s) { s[3].sums = nullptr; }},
           {"the sums' results over the ReLU's values", [](Joined&m, Steps&s) { s[3].sums = reinterpret_cast<double*>(m.at(2).data); }},
           {"the sums' results over what is added", [](Joined&m, Steps&s) { s[3].sums = reinterpret_cast<double*>(m.at(3).data); }},
           {"the sums' results over the gradient", [](Joined&m, Steps&s) { s[3].sums = reinterpret_cast<double*>(m.at(1).data); }},
           {"the sums' results over the mask",
            [](Joined&m, Steps&s) { s[1].saved = m.mask(), s[3].sums = reinterpret_cast<double*>(m.bits.data()); }},
           {"the sums' workspace over the mask",
            [](Joined&m, Steps&s) { s[1].saved = m.mask(), s[3].workspace = reinterpret_cast<std::byte*>(m.bits.data()); }},
           {"the sums' workspace over the ReLU's values", [](Joined&m, Steps&s) { s[3].workspace = reinterpret_cast<std::byte*>(m.at(2, 8).data); }},
           {"the sums' workspace over the gradient", [](Joined&m, Steps&s) { s[3].workspace = reinterpret_cast<std::byte*>(m.at(1, 8).data); }},
           {"the gradient over a part of what is added", [](Joined&m, Steps&s) { s[0].x = m.at(1, 8); }},
           {"the gradient over a part of the ReLU's values", [](Joined&m, Steps&s) { s.erase(s.begin()), s[0].y = m.at(1, 8); }},
           {"the gradient over a part of the norm's input", [](Joined&m, Steps&s) { s[3].x = m.at(1, 8); }},
           {"values with other rows between images", [](Joined&, Steps&s) { s[1].y.stride_n += 40; }},
           {"values that packs do not fit", [](Joined&m, Steps&s) { s[1].y = m.at(2, 1); }},
           {"channels that are no multiple of 8", [](Joined&m, Steps&) { m.norm.in.c = 12; }}}) {
    Joined other;
    Steps list = steps(other);
    c.make(other, list);
    INFO(std::string(c.name));
    CHECK_FALSE(takes(list));
  }
}
