#pragma once
// What a device must know of a batch before it gathers its rows: samples and tables, as one piece of memory.
#include <lrcnn/data/direct_source.hpp>
#include <cstring>
namespace lrcnn::cudnn {
/// SampleTables<float> where a kernel reads them.
struct GatherTables {
  const float* bytes = nullptr;   ///< 256 for each channel; of arrays of bytes
  const double* mean = nullptr;   ///< one for each channel, as the others
  const double* deviation = nullptr;
  const float* outside = nullptr;
};
struct GatheredBatch {
  const GatheredSample* samples = nullptr;   ///< of the whole batch
  GatherTables tables{};
};
/// The piece of memory: samples, means, deviations, values outside, values of bytes.
struct GatherBlob {
  static Index bytes(const DirectSource<float>& source) {
    const auto& t = source.tables();
    return size(source.samples()) + size(t.mean) + size(t.deviation) + size(t.outside) + size(t.bytes);
  }
  /// Pre: `to` has bytes().
  static void write(const DirectSource<float>& source, std::byte* to) {
    const auto put = [&](const auto& values) {
      if (size(values) > 0) std::memcpy(to, values.data(), static_cast<std::size_t>(size(values)));
      to += size(values);
    };
    const auto& t = source.tables();
    put(source.samples()), put(t.mean), put(t.deviation), put(t.outside), put(t.bytes);
  }
  /// The parts of a piece of memory that write() has filled, or a copy of it. Pre: it begins at a multiple of 8.
  static GatheredBatch at(const std::byte* memory, const DirectSource<float>& source) {
    const auto take = [&]<class E>(const E*& part, const auto& values) {
      part = reinterpret_cast<const E*>(memory);
      memory += size(values);
    };
    const auto& t = source.tables();
    GatheredBatch batch;
    take(batch.samples, source.samples());
    take(batch.tables.mean, t.mean), take(batch.tables.deviation, t.deviation), take(batch.tables.outside, t.outside);
    take(batch.tables.bytes, t.bytes);
    return batch;
  }

 private:
  template <class Values>
  static Index size(const Values& values) {
    return static_cast<Index>(values.size() * sizeof(values[0]));
  }
};
}   // namespace lrcnn::cudnn
