// A loader of floats for a trainer in double.
// EXPECT: lrcnn: this batch is none for this trainer; a batch has elements of the type of the trainer's parameters, which is double for Reference<double> and float otherwise, and knows its labels; take Loader<double> or Loader<float>, or give source and labels
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
  for (const auto& batch : loader.epoch(0)) trainer.step(batch);
}
