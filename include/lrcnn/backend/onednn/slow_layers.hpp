#pragma once
// Says which convolutions plain loops carry out, because that takes long and may be a surprise.
#include <lrcnn/backend/onednn/api.hpp>
#include <lrcnn/core/choice_file.hpp>
#include <lrcnn/core/vectors.hpp>
#include <lrcnn/network/table.hpp>
#include <lrcnn/plan/step.hpp>
#include <lrcnn/plan/target.hpp>
#include <iostream>
#include <set>
#include <string>
#include <utility>
namespace lrcnn::onednn {
class SlowLayers {
 public:
  /// `notice`: where to; null for a line on std::clog. Off, nothing is said.
  SlowLayers(bool on, Notice notice) : on_(on), notice_(std::move(notice)) {}
  /// Says that plain loops carry a convolution out, if that is much work; once for each layer, whichever pass comes first.
  /// Source:  ResNet-18 and the demo with storage that the library has no kernels for: 18 to 28 times (EPYC 7003, 2 threads)
  void report(const Node& node, Op op, const Target& layout, Vectors vectors) {
    if (!on_) return;
    const Index taps = node.layer.window.kernel.h * node.layer.window.kernel.w * node.in.c / node.layer.groups;
    if (node.in.c <= layout.plain_channels || node.out.c <= layout.plain_channels || taps * node.out.c * node.out.h * node.out.w < 10'000'000)
      return;   // few channels lose little in plain loops
    Shape in = node.in, out = node.out;
    in.n = out.n = 1;
    const std::string layer = "layer '" + std::string(node.layer.name.view()) + "'";
    if (!reported_.insert(layer + " " + std::to_string(in.c) + " " + std::to_string(out.c)).second) return;   // one line for all extents
    const std::string line = error_text(
        layer + ", " + std::string(op_name(op)) + " of convolution from " + to_string(in) + " to " + to_string(out) +
            ", runs in plain loops, which take some 20 times as long as the library's kernels",
        library_name() + " has none for its channels, groups, windows or rows on this processor (" + std::string(vectors_name(vectors)) + ")",
        "make channels in each group a multiple of " + std::to_string(layout.lanes()) +
            ", or slabs thicker, if you can; OnednnOptions::report_slow = false silences this");
    if (notice_) notice_(line);
    else std::clog << line << std::endl;
  }

 private:
  bool on_;
  Notice notice_;
  std::set<std::string> reported_;   ///< layers and their channels
};
}   // namespace lrcnn::onednn
