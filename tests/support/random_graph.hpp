#pragma once
// Seeded random networks that branch: residuals, concatenations, long skips, norms and upsampling, as run-time lists of layers.
#include "support/random_network.hpp"
namespace lrcnn::testing {
/// Which layers are drawn: all, or those that have formulas in faults/whole_maps.hpp.
enum class Drawn { all, with_formulas };
/// Builds a list of layers, keeping the shape of every output.
class GraphBuilder {
 public:
  GraphBuilder(Dice& dice, const Input& input, Drawn drawn = Drawn::all) : dice_(dice), drawn_(drawn), shapes_{input} {}
  const Shape& shape() const { return shapes_.back(); }
  Index size() const { return static_cast<Index>(layers.size()); }
  /// Appends a layer that reads the output before list position `from`, and, a join, that before `other` too. False if it does not fit.
  bool add(Layer layer, Index from = -1, Index other = -1) {
    from = from < 0 ? size() : from;
    layer.input = size() - from + 1;
    const Shape in = shapes_[static_cast<std::size_t>(from)];
    Shape second{};
    if (other >= 0) layer.other = size() - other + 1, second = shapes_[static_cast<std::size_t>(other)];
    if (fault_of(layer, in, false, second) != Fault::none) return false;
    const Shape out = output_shape(layer, in, second);
    if (out.c > 12 || out.h > 60 || out.w > 16) return false;
    layers.push_back(layer);
    shapes_.push_back(out);
    return true;
  }
  void drop_to(Index count) {
    layers.resize(static_cast<std::size_t>(count));
    shapes_.resize(static_cast<std::size_t>(count) + 1);
  }
  Layer conv(Index channels, bool same) {
    Layer y{.kind = Kind::conv, .channels = channels, .bias = dice_.chance(0.5)};
    const Index k = same ? dice_.pick<Index>({1, 3, 3, 5}) : dice_.upto(1, 4), p = same ? k / 2 : dice_.upto(0, k - 1);
    y.window = {.kernel = {k, same ? 3 : dice_.upto(1, 3)}, .pad = {p, same ? p : dice_.upto(0, k - 1), 1, 1}};
    if (!same) y.window.stride = {dice_.chance(0.6) ? 1 : 2, dice_.upto(1, 2)}, y.window.pad.left = y.window.pad.right = (y.window.kernel.w - 1) / 2;
    if (same && channels % shape().c == 0 && dice_.chance(0.3)) y.groups = shape().c;
    return y;
  }
  Layer activation() {
    Layer y;
    y.activation.function = dice_.pick({Function::relu, Function::relu, Function::relu, Function::silu, Function::leaky_relu, Function::gelu,
                                        Function::hardswish, Function::sigmoid, Function::relu6});
    if (y.activation.function == Function::leaky_relu) y.activation.slope = dice_.chance(0.8) ? 0.125 : -0.25;
    return y;
  }
  Layer norm() {
    using Over = Norm::Over;
    Layer y{.kind = Kind::norm};
    y.norm.over = dice_.pick({Over::batch, Over::batch, Over::batch, Over::group, Over::channels});
    y.norm.frozen = y.norm.over == Over::batch && dice_.chance(0.15);
    y.norm.affine = dice_.chance(0.85);
    if (y.norm.over == Over::group && shape().c % 2 == 0 && dice_.chance(0.6)) y.norm.groups = dice_.chance(0.5) ? 2 : 1;
    return y;
  }
  Layer dropout() {
    using enum Drop::Each;
    return {.kind = Kind::dropout, .drop = {dice_.pick({element, channel, image}), dice_.pick({0.25, 0.5})}};
  }
  /// A layer that keeps rows and columns.
  void same() {
    const Index what = dice_.upto(0, drawn_ == Drawn::with_formulas ? 6 : 8);
    if (what == 6) add(dropout());
    else if (what == 7) add({.kind = Kind::layer_scale, .scale = 0.5});
    else if (what == 8) add({.kind = Kind::channel_shuffle, .groups = dice_.upto(1, 3)});
    else if (what <= 1) add(conv(dice_.chance(0.5) ? shape().c : dice_.upto(1, 5), true));
    else if (what <= 3) add(norm());
    else add(activation());
  }
  void any() {
    const Index what = dice_.upto(0, drawn_ == Drawn::with_formulas ? 12 : 16);
    if (what == 12) squeeze();
    else if (what == 13) transposed();
    else if (what == 14) pad(false);
    else if (what == 15) pad(true);
    else if (what == 16) add({.kind = Kind::adaptive_avg_pool, .pooled = {dice_.upto(1, 2 * shape().h), dice_.upto(1, 6)}});
    else if (what <= 2) same();
    else if (what == 3) add(conv(dice_.upto(1, 5), false));
    else if (what == 4) pool();
    else if (what == 5) upsample();
    else if (what <= 8) residual();
    else if (what == 9) branches();
    else if (what == 10) skip();
    else add(activation());
  }
  void pool() {
    Layer y{.kind = dice_.chance(0.6) ? Kind::max_pool : Kind::avg_pool};
    const Index k = dice_.upto(2, 3);
    y.window = {.kernel = {k, 2}, .stride = {dice_.upto(1, 3), dice_.upto(1, 2)}, .pad = {dice_.upto(0, 1), dice_.upto(0, 1), 0, 0}};
    y.window.ceil = drawn_ == Drawn::all && dice_.chance(0.4);
    y.count_padding = dice_.chance(0.5);
    add(y);
  }
  void transposed() {
    Layer y{.kind = Kind::conv_transpose, .channels = dice_.upto(1, 4), .bias = dice_.chance(0.5)};
    const Index k = dice_.upto(1, 4);
    y.window = {.kernel = {k, dice_.upto(1, 3)},
                .stride = {dice_.upto(1, 3), dice_.upto(1, 2)},
                .pad = {dice_.upto(0, k - 1), dice_.upto(0, k - 1), dice_.upto(0, 1), dice_.upto(0, 1)},
                .dilation = {dice_.chance(0.7) ? 1 : 2, dice_.chance(0.7) ? 1 : 2}};
    if (shape().c % 2 == 0 && y.channels % 2 == 0 && dice_.chance(0.4)) y.groups = 2;
    add(y);
  }
  void pad(bool reflect) {
    const auto some = [&] { return reflect ? dice_.upto(0, 3) : dice_.upto(-2, 3); };
    Layer y{.kind = Kind::pad, .reflect = reflect};
    y.window.pad = {some(), some(), some(), some()};
    add(y);
  }
  void upsample() {
    using enum Upsampling::Rule;
    add({.kind = Kind::upsample, .upsampling = {dice_.pick({nearest, bilinear, bilinear_corners}), {dice_.upto(1, 3), dice_.upto(1, 2)}}});
  }
  /// body(x) + x, or + shortcut(x).
  void residual() {
    const Index start = size(), stride = dice_.chance(0.7) ? 1 : 2;
    const Index channels = stride == 1 && dice_.chance(0.7) ? shape().c : dice_.upto(1, 5);
    Layer first = conv(channels, true), last = conv(channels, true);
    first.window.stride = stride;
    first.groups = last.groups = 1;
    if (!add(first)) return;
    if (dice_.chance(0.6)) add(norm());
    if (dice_.chance(0.6)) add(activation());
    if (dice_.chance(0.5)) add(last);
    if (dice_.chance(0.5)) add(norm());
    const Index body = size();
    bool fits;
    if (shapes_[static_cast<std::size_t>(start)] == shape()) {
      fits = add({.kind = Kind::sum}, body, start);
      if (fits && dice_.chance(0.3)) layers.back().input = size() - 1 - start + 1, layers.back().other = size() - 1 - body + 1;
    } else {
      Layer shortcut{.kind = Kind::conv, .window = {.kernel = 1}, .channels = channels};
      shortcut.window.stride = stride;
      fits = add(shortcut, start);
      if (fits && dice_.chance(0.6)) add(norm());
      fits = fits && add({.kind = Kind::sum}, size(), body);
    }
    if (!fits) return drop_to(start);
    if (dice_.chance(0.6)) add(activation());
  }
  /// A map times factors that its means give.
  void squeeze() {
    const Index start = size(), channels = shape().c;
    if (!add({.kind = Kind::global_avg_pool})) return;
    const bool linear = dice_.chance(0.2);
    const auto dense = [&](Index to) {
      return Layer{.kind = linear ? Kind::linear : Kind::conv, .window = {1}, .channels = to, .bias = dice_.chance(0.7)};
    };
    if (dice_.chance(0.8) && !add(dense(dice_.upto(1, 3)))) return drop_to(start);
    if (size() > start + 1) add(activation());
    Layer y = norm();
    y.norm.over = shape().n > 1 && y.norm.over != Norm::Over::channels ? Norm::Over::batch : Norm::Over::channels;   // more than one value
    y.norm.groups = 0, y.norm.frozen = false;
    if (dice_.chance(0.2) && (shape().c > 1 || y.norm.over == Norm::Over::batch)) add(y);
    if (shape().c != channels && !add(dense(channels))) return drop_to(start);
    if (dice_.chance(0.8)) add({.kind = Kind::activation, .activation = {Function::sigmoid, 0}});
    const Index factors = size();
    Index map = start;
    if (dice_.chance(0.3) && add(conv(channels, true), start)) map = size();   // a layer beside them
    if (!add({.kind = Kind::scale}, map, factors)) return drop_to(start);
    if (dice_.chance(0.3) && add(conv(channels, true))) add({.kind = Kind::scale}, size(), factors);   // the same factors again
  }
  /// The channels of two or three branches.
  void branches() {
    const Index start = size(), count = dice_.upto(2, 3);
    Index left = -1;
    for (Index b = 0; b < count; ++b) {
      const Index before = size();
      if (b > 0 || dice_.chance(0.5)) {
        if (!add(conv(dice_.upto(1, 3), true), start)) return drop_to(start);
        for (Index i = dice_.upto(0, 2); i > 0; --i) same();
      }
      const Index right = size() == before ? start : size();
      if (left >= 0 && !add({.kind = dice_.chance(0.8) ? Kind::concat : Kind::sum}, left, right)) return drop_to(start);
      left = left < 0 ? right : size();
    }
  }
  /// Down, something, up again, beside what was before.
  void skip() {
    const Index start = size(), depth = dice_.upto(1, 2);
    if (shape().h % 2 != 0 || shape().w % 2 != 0) return;
    if (!add({.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}})) return;
    for (Index i = dice_.upto(1, 2); i > 0; --i) same();
    if (depth == 2) skip();
    using enum Upsampling::Rule;
    if (!add({.kind = Kind::upsample, .upsampling = {dice_.pick({nearest, bilinear, bilinear_corners}), 2}}) ||
        !add({.kind = Kind::concat}, start, size()))
      return drop_to(start);
    same();
  }
  std::vector<Layer> layers{};

 private:
  Dice& dice_;
  Drawn drawn_;
  std::vector<Shape> shapes_;   ///< of what lies before each list position
};
/// A network with branches, closed by global pooling and a linear layer, or by flatten and one.
inline RandomNetwork random_graph(Dice& dice, Index max_parts = 6, Drawn drawn = Drawn::all) {
  for (;;) {
    RandomNetwork net;
    net.input = {dice.upto(1, 3), dice.upto(1, 4), 2 * dice.upto(4, 18), 2 * dice.upto(1, 4)};
    GraphBuilder build(dice, net.input, drawn);
    if (!build.add(build.conv(dice.upto(1, 4), true))) continue;
    for (Index count = dice.upto(1, max_parts); count > 0; --count) build.any();
    const bool pooled = dice.chance(0.7) || build.shape().count() > 600 * build.shape().n;
    if (build.size() < 3 || !build.add({.kind = pooled ? Kind::global_avg_pool : Kind::flatten})) continue;
    if (dice.chance(0.2)) build.add({.kind = Kind::linear, .channels = dice.upto(2, 5), .bias = true}), build.add(build.activation());
    build.add({.kind = Kind::linear, .channels = dice.upto(2, 5), .bias = true});
    net.layers = build.layers;
    return net;
  }
}
}   // namespace lrcnn::testing
