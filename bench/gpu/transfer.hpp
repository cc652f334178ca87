#pragma once
// What it takes to bring batches to a GPU: copied by the host, or gathered by the device from the host's memory; and training with both.
#include <lrcnn/backend/cudnn.hpp>
#include <lrcnn/backend/cudnn/place_array.hpp>
#include <lrcnn/data/direct_loader.hpp>
#include <lrcnn/lrcnn.hpp>
#include <nlohmann/json.hpp>
#include <chrono>
#include <functional>
namespace lrcnn::bench {
/// One way to bring batches to the device.
struct Way {
  std::string name;
  cudnn::Residence residence;
};
inline const std::vector<Way> ways{{"copied", cudnn::Residence::staged},
                                   {"pinned", cudnn::Residence::pinned},
                                   {"managed", cudnn::Residence::managed},
                                   {"device", cudnn::Residence::device}};
/// The data of a case: random bytes, which cost the same as any others.
inline Dataset random_images(Shape shape, Index classes) {
  Dataset data{.description = "random bytes", .shape = shape, .classes = classes};
  data.images.resize(static_cast<std::size_t>(shape.count()));
  data.labels.resize(static_cast<std::size_t>(shape.n));
  const Random random(7);
  for (std::size_t e = 0; e < data.images.size(); ++e) data.images[e] = static_cast<std::uint8_t>(random.bits(e / 8) >> (e % 8 * 8));
  for (std::size_t i = 0; i < data.labels.size(); ++i)
    data.labels[i] = static_cast<std::int32_t>(random.below(i, static_cast<std::uint64_t>(classes)));
  return data;
}
inline double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
/// Median seconds for a batch of shuffled samples to lie in the device's memory, and for a training step, by every way that the machine has.
/// Shapes:  data of images; batches of `batch`
template <class B>
void measure_transfer(const std::string& name, const Dataset& data, Index batch, std::span<const Layer> layers, const PolicySpec& policy,
                      Index batches, nlohmann::json& results) {
  const LoaderOptions options{.batch = batch, .drop_last = true, .seed = 1, .normalization = Normalization{}, .augmentation = {.flip = true}};
  B known{cudnn::DeviceOptions{}};   // with the convolutions of the ways before
  for (const Way& way : ways) {
    nlohmann::json result{{"case", name}, {"way", way.name}, {"batch", batch}, {"image", to_string(data.shape)}};
    try {
      B backend = known;
      const auto placed = cudnn::place_array(backend, SampleArray(data), {.only = way.residence});
      const DirectLoader<float> loader(placed.array, data.labels, options);
      const Input input = loader.input();
      const auto memory = backend.template buffer<typename B::element>(input.count());
      const auto all = dense_view(memory.data(), input.n, input.c, {0, input.h}, input.w, input.c);
      const auto epoch = loader.epoch(0);
      std::vector<double> seconds;
      for (Index k = 0; k < std::min(batches, loader.batches()); ++k) {
        const auto taken = epoch.batch(k);
        seconds.push_back(seconds_of([&] {
          backend.load(taken, 0, all);
          cudnn::check(backend.library().wait(), "waiting for a batch");
        }));
      }
      std::sort(seconds.begin(), seconds.end());
      result["transfer_seconds"] = seconds[seconds.size() / 2];
      result["transfer_gbytes_per_second"] = static_cast<double>(input.count()) / seconds[seconds.size() / 2] / 1e9;   // of the samples' own bytes
      result["report"] = placed.report;
      BasicTrainer<B> trainer(layers, policy, input, Sgd{.lr = 1e-4}, {.seed = 1}, {}, std::move(backend));
      const auto steps = [&](Index first, Index count) {
        auto rest = loader.epoch(first);
        Index done = 0;
        for (const auto& b : rest) {
          if (done++ == count) break;
          trainer.start_step(b);
        }
        trainer.wait();
      };
      steps(1, 2);   // loads kernels, records
      const Index count = std::min<Index>(batches, std::min<Index>(16, loader.batches()));
      result["step_seconds"] = seconds_of([&] { steps(2, count); }) / static_cast<double>(count);
      known = trainer.backend();
    } catch (const Error& e) {
      result["error"] = e.what();
    }
    std::printf("%s\n", result.dump().c_str());
    std::fflush(stdout);
    results.push_back(result);
  }
}
/// All cases. `quick`: fewer, smaller ones.
inline nlohmann::json measure_transfers(bool quick) {
  nlohmann::json results = nlohmann::json::array();
  constexpr PolicySpec column = Policy<Column, Workspace<256_MiB>>::value;
  constexpr PolicySpec rows = Policy<Overlap<8>, CheckpointAtPools, RecomputeAll, Workspace<256_MiB>, Streams<2>, Prefetch>::value;
  const Index images = quick ? 512 : 4096, batches = quick ? 8 : 40;
  const Dataset imagenet = random_images({images, 3, 224, 224}, 1000), odd = random_images({images, 3, 227, 227}, 1000),
                cifar = random_images({quick ? 4096 : 50000, 3, 32, 32}, 10);
  measure_transfer<CudnnBf16>("ResNet-50, 224, column", imagenet, 64, ResNet50<>::layers, column, batches, results);
  measure_transfer<CudnnBf16>("VGG-16, 224, rows", imagenet, 64, Vgg16<>::layers, rows, batches, results);
  measure_transfer<CudnnTf32>("ResNet-50, 227, column", odd, 64, ResNet50<>::layers, column, batches, results);
  measure_transfer<CudnnTf32>("LeNet, CIFAR", cifar, 512, LeNet<10>::layers, column, batches, results);
  return results;
}
}   // namespace lrcnn::bench
