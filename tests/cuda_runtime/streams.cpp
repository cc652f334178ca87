// Streams, events, captures and graphs of the pretended CUDA runtime.
#include "cuda_runtime/state.hpp"
using namespace lrcnn::testing::pretended;
namespace {
cudaError_t make_event(cudaEvent_t* event) {
  *event = new CUevent_st{.device = current_device()};
  state().events.insert(*event);
  return cudaSuccess;
}
bool is_there(cudaEvent_t event) {
  if (state().events.contains(event)) return true;
  violation("an event that is not there");
  return false;
}
/// The stream becomes part of the capture that the event is of, or waits for it there.
cudaError_t wait_in_capture(CUstream_st* stream, CUevent_st* event) {
  if (!event->capture || !event->capture->origin) {   // of work outside, which a graph cannot wait for
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  if (!stream->capture) {
    if (stream->queue->done < stream->queue->started && event->capture->origin == stream) return cudaErrorStreamCaptureWrongThread;
    stream->capture = event->capture;
  }
  if (stream->capture != event->capture) return cudaErrorStreamCaptureMerge;
  lrcnn::Index& joined = event->capture->joined[event->stream];
  joined = std::max(joined, event->position);
  if (stream != event->stream) ++event->capture->count[stream];
  return cudaSuccess;
}
}   // namespace
extern "C" {
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return call("cudaStreamCreateWithFlags", [&] { return *stream = lrcnn::testing::CudaRuntime::make_stream(current_device()), cudaSuccess; });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return last_call("cudaStreamDestroy", [&] {
    CUstream_st* const there = known(stream);
    if (!there || !stream) return cudaErrorInvalidResourceHandle;
    run(*there->queue, there->queue->started);
    state().streams.erase(there);
    delete there;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call("cudaStreamGetDevice", [&] {
    const CUstream_st* const there = known(stream);
    if (there) *device = there->device;
    return there ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return unsafe_call("cudaStreamSynchronize", [&] {
    CUstream_st* const there = known(stream);
    if (!there) return cudaErrorInvalidResourceHandle;
    if (there->capture) return there->capture->invalid = true, cudaErrorStreamCaptureUnsupported;
    state().runtime.waits += there->queue->done < there->queue->started;
    run(*there->queue, there->queue->started);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&] {
    CUstream_st* const there = known(stream);
    if (!there || !is_there(event)) return cudaErrorInvalidResourceHandle;
    if (there->capture || event->capture) return wait_in_capture(there, event);
    if (!event->queue) return cudaSuccess;   // never recorded
    there->queue->work.push_back({{}, event->queue, event->position});
    ++there->queue->started;
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call("cudaEventCreate", [&] { return make_event(event); });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return call("cudaEventCreateWithFlags", [&] { return make_event(event); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return last_call("cudaEventDestroy", [&] {
    if (!is_there(event)) return cudaErrorInvalidResourceHandle;
    state().events.erase(event);
    delete event;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] {
    CUstream_st* const there = known(stream);
    if (!there || !is_there(event) || there->device != event->device) return cudaErrorInvalidResourceHandle;
    event->capture = there->capture, event->stream = there;
    if (there->capture) {
      event->position = there->capture->count[there];
    } else {
      event->queue = there->queue;
      event->position = there->queue->started;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return unsafe_call("cudaEventQuery", [&] {
    if (!is_there(event)) return cudaErrorInvalidResourceHandle;
    if (event->capture) return cudaErrorCapturedEvent;
    return event->queue && event->queue->done < event->position ? cudaErrorNotReady : cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return unsafe_call("cudaEventSynchronize", [&] {
    if (!is_there(event)) return cudaErrorInvalidResourceHandle;
    if (event->capture) return cudaErrorCapturedEvent;
    if (!event->queue || event->queue->done >= event->position) return cudaSuccess;
    ++state().runtime.waits;
    run(*event->queue, event->position);
    return cudaSuccess;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  return call("cudaEventElapsedTime", [&] { return *milliseconds = 1, cudaSuccess; });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] {
    const CUstream_st* const there = known(stream);
    if (!there) return cudaErrorInvalidResourceHandle;
    *status = !there->capture           ? cudaStreamCaptureStatusNone
              : there->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return last_call("cudaThreadExchangeStreamCaptureMode", [&] { return std::swap(*mode, capture_mode()), cudaSuccess; });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] {
    CUstream_st* const there = known(stream);
    if (!there || !stream) return cudaErrorStreamCaptureUnsupported;   // the default stream cannot be captured
    if (there->capture) return cudaErrorIllegalState;
    there->capture = std::make_shared<Capture>(Capture{.origin = there, .thread = std::this_thread::get_id(), .mode = mode});
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  std::shared_ptr<Capture> capture;
  const cudaError_t error = last_call("cudaStreamEndCapture", [&] {
    CUstream_st* const there = known(stream);
    if (!there || !there->capture) return cudaErrorIllegalState;
    capture = there->capture;
    bool joined = true;
    for (CUstream_st* other : state().streams) {
      if (other->capture != capture) continue;
      joined = joined && (other == there || capture->joined[other] >= capture->count[other]);
      other->capture = nullptr;
    }
    capture->origin = nullptr;
    return capture->invalid ? cudaErrorStreamCaptureInvalidated : joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
  });
  if (error == cudaSuccess) state().graphs.insert(*graph = new CUgraph_st{capture->work});
  return error;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&] {
    *made = new CUgraphExec_st{std::make_shared<const std::vector<std::function<void()>>>(graph->work)};
    state().executables.insert(*made);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return last_call("cudaGraphDestroy", [&] { return state().graphs.erase(graph), delete graph, cudaSuccess; });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return last_call("cudaGraphExecDestroy", [&] { return state().executables.erase(graph), delete graph, cudaSuccess; });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    if (!state().executables.contains(graph)) return violation("a graph that is not there"), cudaErrorInvalidValue;
    CUstream_st* const there = known(stream);
    if (there && there->capture) return there->capture->invalid = true, cudaErrorStreamCaptureUnsupported;   // seen on an H200
    ++state().runtime.graphs_launched;
    return enqueue(stream, [work = graph->work] {
      for (const auto& act : *work) act();
    });
  });
}
}
