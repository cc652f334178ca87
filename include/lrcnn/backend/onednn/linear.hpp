#pragma once
// Linear layers as matrix products on the canonical weights.
//
// The library's blocked matrix product (brgemm) takes its scratch from the caller but wants dense matrices; its other
// one allocates while it runs. Vectors whose stored length is rounded up to a block are therefore copied into the
// workspace without their padding, and back; they are small beside the weights, which are never copied. Vectors of two-byte
// elements are widened there: weights are floats in any case, and reading them is what takes the time.
#include <lrcnn/backend/host/parallel.hpp>
#include <lrcnn/backend/onednn/convert.hpp>
#include <lrcnn/backend/onednn/parts.hpp>
#include <algorithm>
#include <string>
#include <vector>
namespace lrcnn::onednn {
/// One pass of a linear layer over a number of images.
template <class T>
class Linear {
 public:
  /// Shapes:  forward             x [N,F] -> y [N,K];  backward_data dy [N,K] -> dx [N,F]
  ///          backward_parameters x, dy -> dw [K,F], db [K]
  /// Post:    served() tells whether the library takes it and its scratch fits into the workspace
  Linear(const Library& library, const Operands<T>& o) : op_(o.op) {
    const Index in = o.node->in.c, out = o.node->out.c, n = op_ == Op::forward ? o.y.n : o.dy.n;
    const bool forward = op_ == Op::forward, data = op_ == Op::backward_data;
    std::string name;
    stage(left_, n, forward ? in : out, forward ? o.x.stride_n : o.dy.stride_n);
    stage(right_, n, data ? in : forward ? out : in, data ? o.dx.stride_n : forward ? o.y.stride_n : o.x.stride_n);
    rows_ = forward || data ? n : out;
    deep_ = forward ? in : data ? out : n;
    columns_ = forward ? out : in;
    // Columns are cut for threads: each element is summed up by one of them.
    const Index width = round_up(ceil_div(columns_, Index{library_threads()}), 16);
    Index bytes = 0;
    const LibraryThreads one(1);
    for (Index first = 0; first < columns_; first += width) {
      const Index count = std::min(width, columns_ - first);
      const MemoryDesc a = op_ == Op::backward_parameters ? strided({rows_, deep_}, {1, rows_}) : strided({rows_, deep_}, {deep_, 1});
      const MemoryDesc b = forward ? strided({deep_, count}, {1, deep_}) : strided({deep_, count}, {columns_, 1});
      const MemoryDesc c = strided({rows_, count}, {columns_, 1});
      const MemoryDesc bias = forward && o.node->layer.bias ? strided({1, count}, {count, 1}) : MemoryDesc();
      const auto pd = api::matmul(library, a, b, bias, c, o.op == Op::backward_parameters && o.accumulate);
      if (!pd || std::string_view(pd.impl_info_str()).find("brg") == std::string_view::npos) return;
      const MemoryDesc scratch = pd.scratchpad_desc();
      const Library own = with_own_stream(library);
      parts_.push_back({own,
                        Call(own, dnnl::matmul(pd),
                             {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}, {DNNL_ARG_SCRATCHPAD, scratch}, {DNNL_ARG_BIAS, bias}}),
                        first, bytes});
      bytes += round_up(static_cast<Index>(scratch.get_size()), 64);
      name = pd.impl_info_str();
    }
    if (staged_ + bytes > o.workspace_bytes) return;
    name_ = name;
    bytes_ = staged_ + bytes;
  }
  bool served() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  Index workspace_bytes() const { return bytes_; }
  void run(const Library&, const Operands<T>& o, int threads) {
    if (op_ == Op::forward) {
      multiply(o, gather(left_, o, o.x.data, threads), o.parameters[0], place(right_, o, o.y.data), threads);
      scatter(right_, o, o.y.data, threads);
    } else if (op_ == Op::backward_data) {
      multiply(o, gather(left_, o, o.dy.data, threads), o.parameters[0], place(right_, o, o.dx.data), threads);
      scatter(right_, o, o.dx.data, threads);
    } else {
      const void* const dy = gather(left_, o, o.dy.data, threads);
      multiply(o, dy, gather(right_, o, o.x.data, threads), o.d_parameters[0], threads);
      if (o.node->layer.bias) add_bias(o);
    }
  }

 private:
  /// The product's columns from `first` on.
  struct Part {
    Library library;
    Call call;
    Index first, scratch;
  };
  /// c = a b, of all columns.
  void multiply(const Operands<T>& o, const void* a, const void* b, void* c, int threads) {
    for_parts(static_cast<Index>(parts_.size()), threads, [&](Index p) {
      Part& part = item(parts_, p);
      const Index b_step = op_ == Op::forward ? deep_ : 1;
      const float* const bias = op_ == Op::forward ? o.parameters[1] : nullptr;
      part.call.bind_all({a, static_cast<const float*>(b) + part.first * b_step, static_cast<float*>(c) + part.first,
                          o.workspace + staged_ + part.scratch, bias ? bias + part.first : nullptr});
      part.call.run(part.library);
    });
  }
  /// Vectors as they are stored, and where in the workspace they lie without padding; offset -1: used where they are.
  struct Vectors {
    Index n = 0, features = 0, stride = 0, offset = -1;
  };
  void stage(Vectors& v, Index n, Index features, Index stride) {
    v = {n, features, stride, -1};
    if (std::is_same_v<T, float> && (stride == features || n == 1)) return;
    v.offset = staged_;
    staged_ += round_up(n * features * Index(sizeof(float)), 64);
  }
  static void* place(const Vectors& v, const Operands<T>& o, T* stored) { return v.offset < 0 ? static_cast<void*>(stored) : o.workspace + v.offset; }
  static const void* gather(const Vectors& v, const Operands<T>& o, const T* stored, int threads) {
    if (v.offset < 0) return stored;
    float* dense = reinterpret_cast<float*>(o.workspace + v.offset);
    host::parallel_for(v.n, host::useful_threads(v.n * v.features, threads),
                       [&](Index i) { std::copy_n(stored + i * v.stride, v.features, dense + i * v.features); });
    return dense;
  }
  static void scatter(const Vectors& v, const Operands<T>& o, T* stored, int threads) {
    const float* dense = reinterpret_cast<const float*>(o.workspace + v.offset);
    host::parallel_for(v.n, host::useful_threads(v.n * v.features, threads), [&](Index i) {
      T* to = stored + i * v.stride;
      if (v.offset >= 0) std::transform(dense + i * v.features, dense + (i + 1) * v.features, to, [](float e) { return static_cast<T>(e); });
      std::fill(to + v.features, to + v.stride, T(0));
    });
  }
  static void add_bias(const Operands<T>& o) {
    float* d = o.d_parameters[1];
    if (!o.accumulate) std::fill_n(d, o.dy.c, 0.f);
    for (Index i = 0; i < o.dy.n; ++i)
      for (Index k = 0; k < o.dy.c; ++k) d[k] += o.dy.data[i * o.dy.stride_n + k];
  }
  Op op_;
  Vectors left_, right_;
  Index staged_ = 0;                          ///< bytes of the workspace before the library's scratch
  Index rows_ = 0, deep_ = 0, columns_ = 0;   ///< of the product: [rows][deep] [deep][columns]
  std::vector<Part> parts_;
  std::string name_;
  Index bytes_ = 0;
};
}   // namespace lrcnn::onednn
