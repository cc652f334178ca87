#pragma once
// How long a network's weights take to load.
#include <lrcnn/interop/safetensors.hpp>
#include <lrcnn/interop/weights.hpp>
#include <lrcnn/network/resnet.hpp>
#include <benchmark/benchmark.h>
#include <filesystem>
#include <unistd.h>
namespace bench {
/// ResNet-50's safetensors from a file that was just written, so the system has it in memory: opened, checked, and read into a new buffer.
inline void weights_load_time(benchmark::State& state) {
  using namespace lrcnn;
  const Table table = make_table(ResNet50<>::layers, {1, 3, 224, 224});
  const std::vector<Parameter> layout = parameters_of(table);
  const std::vector<float> written(static_cast<std::size_t>(flat_elements(layout)), 0.5f);
  const auto path = std::filesystem::temp_directory_path() / ("lrcnn_bench_" + std::to_string(::getpid()) + ".safetensors");
  write_safetensors(path, weights_of(table, std::span(written)).tensors);
  for (auto _ : state) {
    std::vector<float> read(written.size());
    read_weights(SafetensorsFile(path), layout, std::span(read));
    benchmark::DoNotOptimize(read.data());
  }
  state.counters["bytes"] = static_cast<double>(written.size() * sizeof(float));
  std::filesystem::remove(path);
}
}   // namespace bench
