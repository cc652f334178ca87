#pragma once
// A step's convolution made ready: the pieces in which it runs, each on an engine that was chosen and tried.
#include <lrcnn/backend/cudnn/pieces.hpp>
#include <lrcnn/backend/cudnn/tuner.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
namespace lrcnn::cudnn {
struct ReadyConvolution {
  struct Part {
    std::shared_ptr<Convolution> convolution;
    Index x = 0, y = 0;   ///< elements from where an image's x and y begin
  };
  std::vector<Part> parts{};
  bool adds_bias = false, activates = false;   ///< within the convolution
};
/// The memory of a step in which its convolution runs.
template <class T>
struct ConvolutionMemory {
  Sides<T> sides{};
  void* w = nullptr;
  const T* bias = nullptr;
  std::byte* workspace = nullptr;
  /// Whether a convolution is started once, and not for one image or piece after the other.
  bool runs_once(const ReadyConvolution& c) const { return c.parts.size() == 1 && sides.dense(); }
  /// Starts one part of a convolution, of an image.
  Status start_part(Convolution& c, bool adds_bias, Index x, Index y, Index image = 0) const {
    const auto place = [&](const View<const T>& v, Index offset) { return const_cast<T*>(v.data) + image * v.stride_n + offset; };
    return c.run(place(sides.x, x), place(sides.y, y), w, adds_bias ? bias : nullptr, workspace);
  }
  /// Starts all parts, of all images. `after` is done behind each, and told whether it is the first.
  template <class F>
  Status start(const ReadyConvolution& c, F after) const {
    Status status;
    bool first = true;
    for (Index image = 0, images = sides.dense() ? 1 : sides.x.n; image < images; ++image)
      for (const ReadyConvolution::Part& part : c.parts) {
        status = start_part(*part.convolution, c.adds_bias, part.x, part.y, image);
        if (status.good()) status = after(std::exchange(first, false));
        if (!status.good()) return status;
      }
    return status;
  }
};
namespace detail {
template <class T, class TryOut>
Status make_pieces(ReadyConvolution& made, const std::vector<Piece>& pieces, Device& device, Tuner& tuner, const Request& request,
                   const ConvolutionMemory<T>& memory, TryOut try_out) {
  made = {{}, request.problem.bias, request.problem.relu};
  std::map<Problem, std::shared_ptr<Convolution>> known;
  for (const Piece& piece : pieces) {
    std::shared_ptr<Convolution>& convolution = known[piece.problem];
    if (!convolution) {
      std::unique_ptr<Convolution> built;
      const Status status = tuner.make(
          built, device, {piece.problem, request.workspace_bytes},
          [&](Convolution& c) { return memory.start_part(c, made.adds_bias, piece.x, piece.y); },
          [&](Convolution& c, std::string& fault) { return try_out(c, piece, fault); }, request.in_plan);
      if (!status.good()) return status;
      convolution = std::move(built);
    }
    made.parts.push_back({convolution, piece.x, piece.y});
  }
  return {};
}
}   // namespace detail
/// The bytes of workspace that the engine put first wants, as pieces_of() asks for them.
inline auto engine_bytes_on(Device& device) {
  return [&device](const Problem& problem, Index limit) -> std::optional<Index> {
    std::unique_ptr<Convolution> first;
    if (!device.convolution(first, problem, limit, "").good()) return {};
    return first->workspace_bytes();
  };
}
/// Makes a request's convolution, in pieces where the workspace is small for the whole. try_out(convolution, piece, fault): as Tuner::make() has it.
/// Errors:  BackendError if the device fails while an engine is tried
template <class T, class TryOut>
Status make_ready(ReadyConvolution& made, Device& device, Tuner& tuner, const Request& request, const ConvolutionMemory<T>& memory, TryOut try_out) {
  const std::vector<Piece> pieces = pieces_of(request, engine_bytes_on(device));
  const Status status = detail::make_pieces(made, pieces, device, tuner, request, memory, try_out);
  if (status.good() || pieces.size() == 1) return status;
  return detail::make_pieces(made, {{request.problem}}, device, tuner, request, memory, try_out);
}
}   // namespace lrcnn::cudnn
