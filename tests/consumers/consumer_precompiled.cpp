#include <iostream>
#include <lrcnn/lrcnn.hpp>
#ifndef LRCNN_PRECOMPILED
#error "lrcnn::precompiled does not say that it is there"
#endif
int main() {
  using Net = lrcnn::Sequential<lrcnn::Conv<4>, lrcnn::ReLU, lrcnn::GlobalAvgPool, lrcnn::Linear<3>>;
  const lrcnn::Plan plan = lrcnn::make_plan(lrcnn::table_of<Net>({2, 3, 8, 8}), lrcnn::Policy<lrcnn::Share<2>>::value);
  if (!lrcnn::check_plan(plan).empty()) return 1;
  std::cout << "lrcnn " << lrcnn::version() << '\n';
}
