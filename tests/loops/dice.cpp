// Dice loss: counts of layer/dice.hpp, and its sums and gradients but for their order, however many images are taken at once.
#include "loops_case.hpp"
#include <lrcnn/layer/dice.hpp>
using namespace lrcnn;
using namespace lrcnn::testing;
namespace {
std::vector<std::int32_t> mask_of(const Shape& s, std::int32_t ignored) {
  const Random random(11);
  std::vector<std::int32_t> mask;
  for (Index i = 0; i < s.n * s.h * s.w; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const auto classes = static_cast<std::uint64_t>(std::max<Index>(2, s.c));
    mask.push_back(random.below(at + 1'000'000, 5) == 0 ? ignored : static_cast<std::int32_t>(random.below(at, classes)));
  }
  return mask;
}
struct Room {
  std::vector<std::byte> bytes = std::vector<std::byte>(static_cast<std::size_t>(loops::pixel_loss_bytes) + 64, std::byte{0xff});
  bool intact() const {
    return std::all_of(bytes.end() - 64, bytes.end(), [](std::byte b) { return b == std::byte{0xff}; });
  }
};
/// The loss by the host's code, and by the loops: of all images at once, and of each by itself, which gives the same bits.
template <class T>
void on_both(const DiceLoss& loss, const Shape& s, bool first_ignored = false) {
  CAPTURE(to_string(s));
  Map logits = random_map(s, 5);
  for (double& e : logits.value) e *= 4;
  std::vector<std::int32_t> mask = mask_of(s, loss.ignore.value_or(0));
  if (first_ignored) std::fill_n(mask.begin(), s.h * s.w, *loss.ignore);
  const Labels labels = Labels::of_pixels(mask, s.h, s.w);
  const double scale = 1 / loss.total(labels, s);
  const Slab<T> x(as<T>(logits), {0, s.h}, s.c), want(s, {0, s.h}, s.c), together(s, {0, s.h}, s.c);
  LossResult host;
  loss(View<const T>(x.view()), labels, 0, want.view(), scale, host);
  const auto known = cudnn::device_loss(loss);
  REQUIRE(known.has_value());
  const auto there = loops::pixel_labels(labels, labels.data(), nullptr);
  std::vector<double> sums_of;
  for (const bool apart : {false, true})
    for (const bool gradient : {true, false}) {
      const Slab<T> got(s, {0, s.h}, s.c);
      loops::LossSums sums;
      for (Index i = 0; i < (apart ? s.n : 1); ++i) {
        View<T> part = x.view(), dx = (apart ? got : together).view();
        if (apart) part.data += i * part.stride_n, dx.data += i * dx.stride_n, part.n = dx.n = 1;
        Room workspace;
        loops::pixel_loss(on_host, *known, View<const T>(part), there, i, gradient ? dx : View<T>{}, scale, &sums, workspace.bytes.data());
        CHECK(workspace.intact());
      }
      const LossResult ours = loops::result_of(sums);
      CHECK(ours.correct == host.correct);
      CHECK(ours.count == host.count);
      CHECK(loops::whole_images(sums) == s.n);
      CHECK(std::abs(ours.sum - host.sum) <= 1e-12 * (1 + std::abs(host.sum)));
      sums_of.push_back(ours.sum);
      if (apart && gradient) CHECK(same(got, together));
    }
  for (const double sum : sums_of) CHECK(sum == sums_of[0]);
  CHECK(together.intact());
  double difference = 0, size = 0;
  for (Index i = 0; i < s.n; ++i)
    for (Index c = 0; c < s.c; ++c)
      for (Index row = 0; row < s.h; ++row)
        for (Index column = 0; column < s.w; ++column) {
          const auto a = static_cast<double>(together.view()(i, c, row, column)), b = static_cast<double>(want.view()(i, c, row, column));
          difference = std::max(difference, std::abs(a - b)), size = std::max(size, std::abs(b));
        }
  const double unit = std::is_same_v<T, double> ? 1e-13 : std::is_same_v<T, float> ? 6e-8 : std::is_same_v<T, bfloat16> ? 4e-3 : 5e-4;
  CHECK(difference <= unit * size + (std::is_same_v<T, float16> ? 6e-8 : 0));   // its numbers next to 0 lie so far apart
}
}   // namespace
TEST_CASE_TEMPLATE("Dice loss is the host's, and bits do not depend on what is taken at once", T, float, double, float16, bfloat16) {
  for (const Index classes : {1, 2, 3, 19, 256})
    for (const auto& [height, width] : {std::pair<Index, Index>{1, 1}, {3, 5}, {7, 37}, {2, 300}}) {
      on_both<T>({}, {3, classes, height, width});
      on_both<T>({.smooth = 0.5, .ignore = 255}, {2, classes, height, width});
    }
  on_both<T>({.smooth = 0, .ignore = -1}, {2, 3, 6, 7}, true);
}
TEST_CASE("images of any extents and classes are cut into parts that fit into the workspace, and are taken together as long as they do") {
  on_both<double>({.ignore = 255}, {2, 1, 900, 700});   // parts of more than eight turns, the last of which not all have
  on_both<float>({}, {100, 256, 1, 2});                 // more images than the workspace has room for
  for (Index classes = 1; classes <= DiceLoss::most_classes; ++classes)
    for (const Index positions : {Index{1}, Index{2049}, Index{50176}, Index{1} << 24, Index{1} << 40}) {
      const Index parts = loops::dice_parts(classes, positions);
      CHECK(parts >= 1);
      CHECK(parts <= loops::block_threads);
      CHECK(loops::dice_bytes(classes, parts) <= loops::pixel_loss_bytes);
    }
}
TEST_CASE("from the first image on whose Dice loss is not finite nothing is counted") {
  const Shape s{3, 2, 40, 70};
  Map logits = random_map(s, 5);
  logits.at(1, 0, 2, 5) = std::nan("");
  const Slab<float> x(logits, {0, s.h}, 2);
  const std::vector<std::int32_t> mask = mask_of(s, 0);
  Room workspace;
  loops::LossSums sums;
  loops::pixel_loss(on_host, *cudnn::device_loss(DiceLoss{}), View<const float>(x.view()), {mask.data(), nullptr, 1, s.h, s.w, 0, 0, s.h}, 0,
                    View<float>{}, 1, &sums, workspace.bytes.data());
  CHECK(std::isnan(sums.sum));
  CHECK(sums.finite == 0);
  CHECK(sums.count == s.h * s.w);
  CHECK(loops::whole_images(sums) == 1);
}
