#pragma once
// The library oneDNN in one dialect.
//
// Versions 2 and 3 differ in how a primitive is described: version 2 wants an operation descriptor first. Everything
// else that is used here is common to both, so these few functions are the only place that asks for the version.
// What the library does not implement gives an empty description instead of an exception.
//
// Call is a primitive with its arguments. Memory objects are made once; a run only tells them where the data lies, so
// one Call serves every step of equal shape, and running allocates no tensor and no scratch memory.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/types.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if DNNL_VERSION_MAJOR != 2 && DNNL_VERSION_MAJOR != 3
#error "lrcnn: this version of oneDNN is not known; lrcnn speaks versions 2 and 3; install one of them"
#endif
namespace lrcnn::onednn {
using MemoryDesc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;
inline MemoryDesc tagged(const Dims& dims, Tag tag, Type type = Type::f32) { return {dims, type, tag}; }
inline MemoryDesc strided(const Dims& dims, const Dims& strides) { return {dims, Type::f32, strides}; }
/// "oneDNN 2.6.3"
inline std::string library_name() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}
/// The library's engine and stream. A stream serves one thread at a time.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};
/// Scratch comes from the caller; `add`: the result is added to the destination.
inline dnnl::primitive_attr attributes(bool add = false) {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!add) return a;
  dnnl::post_ops sum;
  sum.append_sum(1.f);
  a.set_post_ops(sum);
  return a;
}
/// A convolution in the library's terms. `b` is a zero descriptor if there is no bias. dilation 0 is dense.
struct ConvDesc {
  MemoryDesc x, w, b, y;
  Dims filter;             ///< dimensions of w
  Type type = Type::f32;   ///< of x, y and filters; filter gradients and biases are f32
  Dims stride, dilation, pad_begin, pad_end;
};
namespace api {
inline constexpr auto direct = dnnl::algorithm::convolution_direct;
/// What `f` returns, or an empty description if the library knows no such operation.
template <class F>
auto or_empty(F f) -> decltype(f()) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) return {};
    throw BackendError(error_text(std::string("oneDNN cannot describe an operation: ") + e.message, "its status is " + std::to_string(e.status),
                                  "report this as a defect"));
  }
}
/// The first implementation that is wanted, by its name and bytes of scratch; the library lists the fastest first.
template <class Description, class Wanted>
Description first_wanted(Description pd, Wanted wanted) {
  while (pd && !wanted(std::string_view(pd.impl_info_str()), static_cast<Index>(pd.scratchpad_desc().get_size())))
    if (!pd.next_impl()) return Description();
  return pd;
}
/// The library's own choice.
inline constexpr auto any = [](std::string_view, Index) { return true; };
template <class Wanted>
auto forward(const Library& l, const ConvDesc& d, Wanted wanted) {
  using Conv = dnnl::convolution_forward;
  constexpr auto kind = dnnl::prop_kind::forward_training;
  return or_empty([&] {
    const auto attr = attributes();
#if DNNL_VERSION_MAJOR == 2
    const Conv::desc op(kind, direct, d.x, d.w, d.b, d.y, d.stride, d.dilation, d.pad_begin, d.pad_end);
    Conv::primitive_desc pd(op, attr, l.engine, true);   // op and attr must live as long as pd walks on
#else
    Conv::primitive_desc pd(l.engine, kind, direct, d.x, d.w, d.b, d.y, d.stride, d.dilation, d.pad_begin, d.pad_end, attr, true);
#endif
    return first_wanted(std::move(pd), wanted);
  });
}
/// A backward description wants a forward one as a hint; any filter layout will do.
inline auto hint(const Library& l, ConvDesc d) {
  d.w = tagged(d.filter, Tag::any, d.type);
  return forward(l, d, any);
}
template <class Wanted>
auto backward_data(const Library& l, const ConvDesc& d, Wanted wanted) {
  using Conv = dnnl::convolution_backward_data;
  return or_empty([&] {
    const auto h = hint(l, d);
    if (!h) return Conv::primitive_desc();
#if DNNL_VERSION_MAJOR == 2
    const auto attr = attributes();
    const Conv::desc op(direct, d.x, d.w, d.y, d.stride, d.dilation, d.pad_begin, d.pad_end);
    Conv::primitive_desc pd(op, attr, l.engine, h, true);
#else
    const auto attr = attributes();
    Conv::primitive_desc pd(l.engine, direct, d.x, d.w, d.y, d.stride, d.dilation, d.pad_begin, d.pad_end, h, attr, true);
#endif
    return first_wanted(std::move(pd), wanted);
  });
}
template <class Wanted>
auto backward_parameters(const Library& l, const ConvDesc& d, Wanted wanted) {
  using Conv = dnnl::convolution_backward_weights;
  return or_empty([&] {
    const auto h = hint(l, d);
    if (!h) return Conv::primitive_desc();
#if DNNL_VERSION_MAJOR == 2
    const auto attr = attributes();
    const Conv::desc op(direct, d.x, d.w, d.b, d.y, d.stride, d.dilation, d.pad_begin, d.pad_end);
    Conv::primitive_desc pd(op, attr, l.engine, h, true);
#else
    const auto attr = attributes();
    Conv::primitive_desc pd(l.engine, direct, d.x, d.w, d.b, d.y, d.stride, d.dilation, d.pad_begin, d.pad_end, h, attr, true);
#endif
    return first_wanted(std::move(pd), wanted);
  });
}
/// c = a b (+ bias), or c += a b.
inline auto matmul(const Library& l, const MemoryDesc& a, const MemoryDesc& b, const MemoryDesc& bias, const MemoryDesc& c, bool add) {
  using Matmul = dnnl::matmul;
  return or_empty([&] {
#if DNNL_VERSION_MAJOR == 2
    return Matmul::primitive_desc(Matmul::desc(a, b, bias, c), attributes(add), l.engine, true);
#else
    return Matmul::primitive_desc(l.engine, a, b, bias, c, attributes(add), true);
#endif
  });
}
}   // namespace api
/// A primitive and its arguments.
class Call {
 public:
  Call() = default;
  /// Arguments are bound by their position in the list; zero descriptors are left out.
  Call(const Library& library, dnnl::primitive primitive, std::initializer_list<std::pair<int, MemoryDesc>> arguments)
      : primitive_(std::move(primitive)) {
    for (const auto& [name, desc] : arguments) {
      memories_.emplace_back();
      if (desc.get_size() == 0) continue;
      memories_.back() = dnnl::memory(desc, library.engine, DNNL_MEMORY_NONE);
      arguments_.push_back({name, memories_.back().get()});
    }
  }
  void bind(std::size_t position, const void* data) {
    const dnnl::memory& memory = memories_[position];
    if (memory) check(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)));
  }
  void bind_all(std::initializer_list<const void*> data) {
    std::size_t position = 0;
    for (const void* d : data) bind(position++, d);
  }
  void run(const Library& library) const {
    check(dnnl_primitive_execute(primitive_.get(), library.stream.get(), static_cast<int>(arguments_.size()), arguments_.data()));
  }

 private:
  static void check(dnnl_status_t status) {
    if (status != dnnl_success)
      throw BackendError(error_text("oneDNN failed with status " + std::to_string(status),
                                    "an operation that it has "
                                    "accepted runs",
                                    "check that there is memory left, and report this otherwise"));
  }
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};
}   // namespace lrcnn::onednn
