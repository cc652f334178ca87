// A loader of one's own that does not say how many batches it has.
// EXPECT: lrcnn: this loader is none for this trainer; a loader has batches(), input() and epoch(number, first = 0), whose elements are sources of rows with labels(), of the type of the trainer's parameters: double for Reference<double>, float otherwise; add what is missing, or take Loader<double> or Loader<float>
#include <lrcnn/lrcnn.hpp>
using namespace lrcnn;
using Net = Sequential<Conv<8>, ReLU, GlobalAvgPool, Linear<3>>;
struct Batches {
  const Loader<float>& of;
  Input input() const { return of.input(); }
  Epoch<float> epoch(Index number, Index first = 0) const { return of.epoch(number, first); }
#ifdef LRCNN_FAIL
#else
  Index batches() const { return of.batches(); }
#endif
};
void train(const Loader<float>& loader) {
  Trainer<Net, Policy<Share<4>>, Reference<float>> trainer(loader.input(), Sgd{});
  trainer.fit(Batches{loader}, nullptr, {.epochs = 1});
}
