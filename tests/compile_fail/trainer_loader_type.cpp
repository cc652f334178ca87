// An evaluation over a loader of floats by a trainer in double.
// EXPECT: lrcnn: this loader is none for this trainer; a loader has batches(), input() and epoch(number, first = 0), whose elements are sources of rows with labels(), of the type of the trainer's parameters: double for Reference<double>, float otherwise; add what is missing, or take Loader<double> or Loader<float>
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using Net = Sequential<Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
#ifdef LRCNN_FAIL
using Element = float;
#else
using Element = double;
#endif
void train(const Loader<Element>& loader) {
  Trainer<Net, Policy<Share<4>>, Reference<double>> trainer(loader.input(), Sgd{});
  trainer.evaluate(loader);
}
