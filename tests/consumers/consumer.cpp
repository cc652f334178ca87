#include <iostream>
#include <lrcnn/lrcnn.hpp>
#ifdef CONSUMER_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif
#ifdef CONSUMER_DATA
#include <zlib.h>
#endif
int main() {
#ifdef CONSUMER_ONEDNN
  if (dnnl::engine::get_count(dnnl::engine::kind::cpu) == 0) return 1;   // links, and runs
#endif
#ifdef CONSUMER_DATA
  if (zlibVersion()[0] == 0) return 1;
#endif
  std::cout << "lrcnn " << lrcnn::version() << '\n';
}
