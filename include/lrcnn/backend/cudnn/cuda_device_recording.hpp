#pragma once
// Steps that have been recorded, as a CUDA graph.
#include <lrcnn/backend/cudnn/cuda_device_calls.hpp>
namespace lrcnn::cudnn {
/// A CUDA graph made by capturing a stream.
class GraphRecording final : public Recording {
 public:
  GraphRecording(cudaGraphExec_t graph, cudaStream_t stream, int device) : graph_(graph), stream_(stream), device_(device) {}
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;
  ~GraphRecording() override {
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    ignored(cudaGraphExecDestroy(graph_));   // after its last launch has ended
  }
  Status start() override {
    return on_device(device_, [&] { return status_of(cudaGraphLaunch(graph_, stream_)); });
  }

 private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
  int device_;
};
}   // namespace lrcnn::cudnn
