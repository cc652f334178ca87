// Convolutions whose workspace is small for the whole run in pieces: of images, then of rows. On the pretended device.
#include "cudnn/device_run.hpp"
#include "cudnn/host_library.hpp"
#include "support/random_graph.hpp"
#include <lrcnn/lrcnn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
constexpr std::array ops{Op::forward, Op::backward_data, Op::backward_parameters};
/// A window over some rows of a map, at its upper edge, its lower one, both or none.
cudnn::Problem random_problem(Dice& dice, Precision precision) {
  cudnn::Problem p{.precision = precision, .n = dice.upto(1, 4), .h = dice.upto(4, 17), .w = dice.upto(3, 6)};
  p.groups = dice.upto(1, 2), p.c = p.groups * dice.upto(1, 3), p.k = p.groups * dice.upto(1, 3);
  p.kernel = {dice.upto(1, 4), dice.upto(1, 3)}, p.stride = {dice.upto(1, 3), dice.upto(1, 2)}, p.dilation = {dice.upto(1, 2), 1};
  const Index span = (p.kernel.h - 1) * p.dilation.h;
  p.pad = {dice.upto(0, span), dice.upto(0, span), dice.upto(0, p.kernel.w - 1), dice.upto(0, p.kernel.w - 1)};
  p.p = floor_div(p.h + p.pad.top + p.pad.bottom - span - 1, p.stride.h) + 1;
  p.q = floor_div(p.w + p.pad.left + p.pad.right - p.kernel.w, p.stride.w) + 1;
  return p;
}
/// A problem's operands on the device, and what a convolution has made of them.
class Memory {
 public:
  Memory(HostLibrary<>& library, const cudnn::Problem& p)
      : library_(library),
        p_(p),
        x_(numbers(p.n * p.c * p.h * p.w, 1)),
        y_(numbers(p.n * p.k * p.p * p.q, 2)),
        w_(numbers(p.k * p.c / p.groups * p.kernel.h * p.kernel.w, 3)) {
    for (void** memory : {&there_[0], &there_[1], &there_[2], &there_[3]}) cudnn::check(library.allocate(*memory, 200'000), "memory");
  }
  ~Memory() {
    for (void* memory : there_) library_.release(memory);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  /// All of the result, after these pieces; filter gradients of pieces are added up. What is written begins as NaN.
  std::vector<float> run(const std::vector<cudnn::Piece>& pieces) {
    std::vector<float>& made = p_.op == Op::forward ? y_ : p_.op == Op::backward_data ? x_ : w_;
    const auto at = static_cast<float*>(there_[p_.op == Op::forward ? 1 : p_.op == Op::backward_data ? 0 : 2]);
    write_to(0, x_), write_to(1, y_), write_to(2, w_);
    write(at, std::vector<float>(made.size(), std::nanf("")));
    std::vector<float> result(made.size(), 0), part(made.size());
    for (const cudnn::Piece& piece : pieces) {
      std::unique_ptr<cudnn::Convolution> c;
      cudnn::check(library_.convolution(c, piece.problem, 16, ""), "a convolution");
      cudnn::check(c->run(static_cast<float*>(there_[0]) + piece.x, static_cast<float*>(there_[1]) + piece.y, there_[2], nullptr, there_[3]), "it");
      cudnn::check(library_.read(part.data(), at, static_cast<Index>(part.size() * sizeof(float))), "its result");
      if (p_.op == Op::backward_parameters) std::transform(part.begin(), part.end(), result.begin(), result.begin(), std::plus<float>());
    }
    return p_.op == Op::backward_parameters ? result : part;
  }

 private:
  HostLibrary<>& library_;
  cudnn::Problem p_;
  std::vector<float> x_, y_, w_;
  std::array<void*, 4> there_{};
  /// Small whole numbers, so that sums are exact.
  static std::vector<float> numbers(Index count, std::uint64_t seed) {
    Dice dice(seed);
    std::vector<float> list(static_cast<std::size_t>(count));
    for (float& f : list) f = static_cast<float>(dice.upto(-4, 4));
    return list;
  }
  void write_to(std::size_t i, const std::vector<float>& from) { write(static_cast<float*>(there_[i]), from); }
  void write(float* to, const std::vector<float>& from) {
    cudnn::check(library_.write(to, from.data(), static_cast<Index>(from.size() * sizeof(float))), "an operand");
  }
};
/// conv, activation, perhaps a transposed conv, conv, activation, global pooling, linear.
std::vector<Layer> network(Dice& dice, const Input& input) {
  GraphBuilder build(dice, input);
  build.add(build.conv(dice.pick<Index>({2, 4}), true));
  build.add(build.activation());
  if (dice.chance(0.5)) build.transposed();
  build.add(build.conv(dice.pick<Index>({3, 4}), true));
  build.add(build.activation());
  build.add({.kind = Kind::global_avg_pool});
  build.add({.kind = Kind::linear, .channels = 3, .bias = true});
  return build.layers;
}
}   // namespace
TEST_CASE("pieces of a convolution make what it makes, whatever its window, and each with the window's own padding") {
  HostLibrary<> library;
  Index by_rows = 0, by_images = 0, uncut = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Dice dice(seed);
    cudnn::Problem p = random_problem(dice, Precision::fp32);
    p.op = ops[seed % ops.size()];
    const Index count = dice.upto(2, 12);
    const std::vector<cudnn::Piece> pieces = cudnn::cut(p, count);
    INFO("seed ", seed, " ", cudnn::to_string(p), " in ", count);
    if (pieces.empty()) {
      ++uncut;
      continue;
    }
    (count > p.n ? by_rows : by_images) += 1;
    CHECK(static_cast<Index>(pieces.size()) <= std::max(count, p.n * ceil_div(count, p.n)));
    CHECK(pieces.size() > 1 - (p.n * p.p == 1));
    for (const cudnn::Piece& piece : pieces) {
      const cudnn::Problem& q = piece.problem;
      CHECK(std::min({q.pad.top, q.pad.bottom}) >= 0);
      CHECK(floor_div(q.h + q.pad.top + q.pad.bottom - (q.kernel.h - 1) * q.dilation.h - 1, q.stride.h) + 1 == q.p);   // what a library works out
      CHECK((piece.x * 4) % q.alignment == 0);
      CHECK((piece.y * 4) % q.alignment == 0);
    }
    Memory memory(library, p);
    const std::vector<float> whole = memory.run({{p}});
    CHECK(memory.run(pieces) == whole);
  }
  MESSAGE(by_images, " cut by images, ", by_rows, " by rows, ", uncut, " not to be cut");
  CHECK(std::min(by_rows, by_images) > 100);
  CHECK(uncut < 200);
}
TEST_CASE("copies are of maps by planes in full precision, and of pixels that are no multiple of 16 bytes on tensor cores") {
  const cudnn::Problem p{.n = 2, .c = 3, .h = 4, .w = 5, .k = 64, .p = 4, .q = 5};
  const auto copied = [&](Precision precision) {
    cudnn::Problem q = p;
    q.precision = precision;
    return cudnn::copied_bytes(q);
  };
  CHECK(copied(Precision::fp32) == 2 * 4 * 5 * (3 + 64) * 4);
  CHECK(copied(Precision::tf32) == 2 * 4 * 5 * 16);
  CHECK(copied(Precision::bf16) == 2 * 4 * 5 * 16);
  cudnn::Problem wide = p;
  wide.c = 8, wide.precision = Precision::bf16;
  CHECK(cudnn::copied_bytes(wide) == 0);
}
TEST_CASE("about as few pieces as will do, and none where the whole fits, where pieces do not, and where an engine with copies fits") {
  const cudnn::Problem p{.n = 4, .c = 16, .h = 64, .w = 64, .k = 16, .p = 64, .q = 64, .kernel = {3, 3}, .pad = 1};
  const Index copies = cudnn::copied_bytes(p);
  const auto direct_else = [](const cudnn::Problem& q, Index limit) -> std::optional<Index> {
    return cudnn::copied_bytes(q) <= limit ? cudnn::copied_bytes(q) : 0;
  };
  const auto count = [&](Index room, auto engine_bytes) { return cudnn::pieces_of({p, room}, engine_bytes).size(); };
  CHECK(count(copies, direct_else) == 1);
  CHECK(count(copies - 1, direct_else) == 2);
  CHECK(count(copies / 4, direct_else) == 4);
  CHECK(count(copies / 4 - 1, direct_else) == 8);   // rows of each image
  CHECK(count(copies / 100, direct_else) > 100);
  CHECK(count(copies / 4000, direct_else) == 1);                                                                       // a row does not fit
  CHECK(count(copies - 1, [&](const cudnn::Problem&, Index) { return std::optional(copies + 1); }) == 1);              // pieces take no less
  CHECK(count(copies - 1, [&](const cudnn::Problem& q, Index) { return std::optional(q == p ? copies : 0); }) == 1);   // pieces work without copies
  CHECK(count(copies - 1, [&](const cudnn::Problem& q, Index) { return q == p ? std::optional(copies) : std::nullopt; }) == 1);   // or not at all
  CHECK(count(copies + 1, [&](const cudnn::Problem& q, Index limit) { return std::optional(limit > 2 * copies && q == p ? 2 * copies : copies); }) ==
        1);
  CHECK(cudnn::pieces_of({p, copies - 1, false}, direct_else).size() == 1);   // what it writes is written once
  Index asked = 0;
  const auto counted = [&](const cudnn::Problem&, Index) { return ++asked, std::optional<Index>(0); };
  CHECK(count(copies + 9_MiB, counted) == 1);
  CHECK(asked == 0);   // there is room, whatever the engine
  cudnn::Problem deep{.n = 4, .c = 1024, .h = 32, .w = 32, .k = 1024, .p = 32, .q = 32, .kernel = {3, 3}, .pad = 1};   // with a filter of 36 MiB
  const auto with_filter = [](const cudnn::Problem& q, Index limit) -> std::optional<Index> {
    const Index bytes = cudnn::copied_bytes(q) + 36_MiB;
    return bytes <= limit ? bytes : 0;
  };
  CHECK(cudnn::pieces_of({deep, 64_MiB}, with_filter).size() == 2);
  CHECK(cudnn::pieces_of({deep, 36_MiB}, with_filter).size() == 1);
}
namespace {
/// Networks in pieces beside the reference, three steps each, of which the last are recorded.
template <class B>
void law(std::uint64_t first, int networks, Index workspace, double tolerance) {
  using Library = HostLibrary<typename B::element>;
  Index cases = 0, pieces = 0, direct = 0;
  double worst = 0;
  const std::vector<PolicySpec> policies{Policy<Column>::value, Policy<Share<3>, RecomputeAll>::value, Policy<Overlap<3, 2>>::value,
                                         Policy<Images<2>, Share<2>>::value};
  for (std::uint64_t seed = first; cases < networks; ++seed) {
    Dice dice(seed);
    const Input input{dice.upto(1, 4), dice.upto(1, 3), dice.upto(6, 14), dice.upto(3, 6)};
    const Problem<float> problem(network(dice, input), input, seed);
    Reference<float, Target::all_channels> reference;
    PolicySpec policy = policies[seed % policies.size()];
    policy.workspace_bytes = 1_MiB;
    const Outcome<float> wanted = run_once(problem, Policy<Column, Workspace<1_MiB>>::value, reference);
    INFO("seed ", seed, ", ", to_string(policy));
    try {
      const auto ample = std::make_shared<Library>();
      B whole(ample);
      static_cast<void>(DeviceRun<B>(problem, policy, whole)());
      const auto library = std::make_shared<Library>();
      library->copies_maps = true;
      library->tries_engines = seed % 2 == 0;
      B backend(library);
      policy.workspace_bytes = workspace;
      DeviceRun<B> run(problem, policy, backend);
      const Index tried = library->convolved;
      for (int turn = 0; turn < 3; ++turn) {
        const double difference = worst_difference(problem, run(), wanted);
        CHECK(difference <= tolerance);
        worst = std::max(worst, difference);
      }
      direct += library->direct;
      pieces += (library->convolved - tried) / 3 - ample->convolved;
    } catch (const PlanError&) {
      continue;
    }
    ++cases;
  }
  MESSAGE(cases, " cases, ", pieces, " more convolutions than steps, ", direct, " by a direct engine; worst difference ", worst);
  CHECK(pieces > 6 * cases);
  CHECK(direct < cases);   // where a row of an image is too large
}
}   // namespace
TEST_CASE("a network whose convolutions run in pieces gives what the reference gives, by engines that work on copies") {
  law<Cudnn>(9100, 120, 1500, 1e-5);
  law<CudnnTf32>(9300, 40, 1500, 1e-5);   // numbers are not rounded on the pretended device
  law<CudnnBf16>(9500, 40, 1500, 8e-2);
}
