#pragma once
// One training step under two policies, side by side: loss, gradients, planned and measured memory, time.
#include "cpu_backend.hpp"
#include <lrcnn/exec/resident.hpp>
#include <lrcnn/lrcnn.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
/// A policy on one batch, with the network's parameters as they are; nothing is updated.
template <class L = lrcnn::SoftmaxCrossEntropy>
class Candidate {
 public:
  /// Runs one step, and measures its memory. Batch, labels and parameters outlive the candidate.
  Candidate(std::span<const lrcnn::Layer> layers, const lrcnn::PolicySpec& policy, const lrcnn::RowSource<float>& batch, const lrcnn::Labels& labels,
            std::span<const float> parameters, Cpu& backend, L loss = {})
      : batch_(batch),
        labels_(labels),
        loss_(std::move(loss)),
        gradients_(parameters.size()),
        executor_(make_plan(lrcnn::make_table(layers, batch.shape()), policy, Cpu::target, {.rows_loss = lrcnn::RowLocalLoss<L, float>}), backend,
                  parameters.data(), gradients_.data()) {
    measured_peak_ = lrcnn::resident_growth(executor_.arena(), [this] { mean_ = run(); });
  }
  void time() {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::sort(seconds_.begin(), seconds_.end());
  }
  double seconds() const { return seconds_[seconds_.size() / 2]; }
  double loss() const { return mean_; }
  lrcnn::Index planned_peak() const { return executor_.plan().peak_bytes(); }
  lrcnn::Index measured_peak() const { return measured_peak_; }
  std::span<const float> gradient(const lrcnn::Parameter& p) const { return lrcnn::elements_of(p, std::span(gradients_)); }
  const lrcnn::Table& table() const { return executor_.plan().table; }

 private:
  double run() { return executor_.run(batch_, labels_, loss_).mean(); }
  const lrcnn::RowSource<float>& batch_;
  lrcnn::Labels labels_;
  L loss_;
  std::vector<float> gradients_;
  lrcnn::Executor<Cpu> executor_;
  double mean_ = 0;
  lrcnn::Index measured_peak_ = 0;
  std::vector<double> seconds_;
};
struct Difference {
  double relative = 0;   ///< norm of the difference over the norm of the column's gradient
  std::string tensor;    ///< where it is largest
};
/// Of all parameters that have a gradient.
template <class L>
Difference worst_difference(const Candidate<L>& column, const Candidate<L>& row) {
  Difference worst;
  for (const lrcnn::Parameter& p : parameters_of(column.table())) {
    if (p.shape.running) continue;
    const auto a = column.gradient(p), b = row.gradient(p);
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
      norm += std::pow(static_cast<double>(a[i]), 2);
    }
    const double relative = difference > 0 ? std::sqrt(difference / norm) : 0;
    if (worst.tensor.empty() || relative > worst.relative) worst = {relative, p.name};
  }
  return worst;
}
inline void print_line(const char* what, const std::string& column, const std::string& row, const std::string& ratio = "") {
  std::printf("  %-22s %14s %14s %8s\n", what, column.c_str(), row.c_str(), ratio.c_str());
}
/// `images`: what the step is on, "on 128 images, direct arithmetic".
template <class L>
void print_table(const std::string& images, const Candidate<L>& column, const Candidate<L>& row, const Difference& worst) {
  const auto ratio = [](double a, double b) { return lrcnn::fixed_text(a / b, 2); };
  const auto bytes = [](lrcnn::Index b) { return b < 0 ? std::string("not known") : lrcnn::memory_text(b); };
  std::printf("\nOne step %s:\n", images.c_str());
  print_line("", "column", "row-centric", "ratio");
  print_line("loss", lrcnn::fixed_text(column.loss(), 6), lrcnn::fixed_text(row.loss(), 6));
  print_line("planned peak", bytes(column.planned_peak()), bytes(row.planned_peak()),
             ratio(static_cast<double>(row.planned_peak()), static_cast<double>(column.planned_peak())));
  print_line("measured peak", bytes(column.measured_peak()), bytes(row.measured_peak()),
             ratio(static_cast<double>(row.measured_peak()), static_cast<double>(column.measured_peak())));
  const auto time = [](double seconds) { return lrcnn::fixed_text(1000 * seconds, 1) + " ms"; };
  print_line("time", time(column.seconds()), time(row.seconds()), ratio(row.seconds(), column.seconds()));
  std::printf("  largest gradient difference: %.2g of its norm, in %s\n", worst.relative, worst.tensor.c_str());
  std::printf("Measured peak: growth of the process's resident set during the step. Time: median of 7 interleaved runs.\n");
}
