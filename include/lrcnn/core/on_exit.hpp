#pragma once
// What is to happen where a scope ends, however it ends.
#include <lrcnn/core/language.hpp>
#include <utility>
namespace lrcnn {
/// Calls f() when it ends. Pre: f does not throw.
template <class F>
class [[nodiscard]] OnExit {
 public:
  explicit OnExit(F f) : f_(std::move(f)) {}
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;
  ~OnExit() { f_(); }

 private:
  F f_;
};
}   // namespace lrcnn
