#pragma once
// BasicTrainer::fit(): epochs, evaluation, history, progress, saving. Included by trainer.hpp.
#include <lrcnn/core/on_exit.hpp>
#include <lrcnn/train/trainer.hpp>
#include <utility>
namespace lrcnn {
template <Backend B, TrainingLoss<typename B::element> L>
template <class Loader>
std::vector<EpochRecord> BasicTrainer<B, L>::fit(const Loader& train, const std::type_identity_t<Loader>* test, const FitOptions& options) {
  detail::check_loader<BatchLoader<Loader, M>>();
  if (options.epochs < 0 || options.save_every < 0)
    throw Error(error_text(
        "fit() for " + std::to_string(options.epochs) + " epochs, with a training file every " + std::to_string(options.save_every) + " steps",
        "neither number is negative", "choose other numbers"));
  const auto absolute = [](const std::filesystem::path& path) { return std::filesystem::absolute(path).lexically_normal(); };
  if (!options.history.empty() && !options.training_file.empty() && absolute(options.history) == absolute(options.training_file))
    throw Error(error_text("fit() is to write both its history and its training file to '" + options.history.string() + "'",
                           "each is a file of its own", "give one of them another name"));
  std::vector<EpochRecord> history;
  std::error_code not_told;
  if (!options.history.empty() && std::filesystem::exists(options.history, not_told) && state_.epoch > 0) history = read_history(options.history);
  std::erase_if(history, [&](const EpochRecord& r) { return r.epoch > state_.epoch; });   // after going back to an older file
  const std::size_t before = history.size();
  if (state_.epoch < options.epochs) {
    for (const auto& path : {options.training_file, options.history})
      if (!path.empty()) check_writable(path);
    if (!options.training_file.empty() && state_.step == 0) detail::check_replaceable(options.training_file);
    if (!options.history.empty()) detail::check_is_history(options.history, state_.step == 0);
    check_shapes(train, true);
    if (test) check_shapes(*test, false);
  }
  std::optional<ProgressLine> line;
  if (options.progress) {
    line.emplace(*options.progress, options.progress_options);
    line->note(state_.epoch < options.epochs ? backend_.describe()
                                             : std::to_string(state_.epoch) + " of " + std::to_string(options.epochs) + " epochs are done");
  }
  // Losses of steps that were started before are no epoch's.
  const OnExit give_back([this, losses = rounds_.wait("fit() begins")] { rounds_.give_back(losses); });
  // The program gave a clock for its own steps.
  const OnExit restore_clock([this, before = options_.clock] { options_.clock = before; });
  const Index most = std::numeric_limits<Index>::max() / std::max<Index>(train.batches(), 1);   // "until somebody ends it"
  options_.clock = {train.batches(), train.batches() * std::min(options.epochs, most)};
  const auto keep = [&] {
    // The training file is written first. If the program ends in between, the history lacks a line, which is a small loss. The other way round
    // an epoch would be lost.
    if (!options.training_file.empty()) save(options.training_file);
    if (!options.history.empty()) write_history(options.history, history);
  };
  while (state_.epoch < options.epochs) {
    history.push_back(fit_epoch(train, options, line ? &*line : nullptr));
    if (line) line->finish();
    if (test) {
      try {
        const Metrics m = evaluate(*test);
        history.back().test_loss = m.loss();
        history.back().test_accuracy = m.accuracy();
      } catch (...) {   // the epoch is done all the same
        keep();
        throw;
      }
      if (line)
        *options.progress << "epoch " << state_.epoch << ": test loss " << fixed_text(*history.back().test_loss, 4) << ", test accuracy "
                          << fixed_text(100 * *history.back().test_accuracy, 2) << " %\n";
    }
    keep();
    if (!options.after_epoch) continue;
    const auto done = std::pair(state_.epoch, state_.step);
    const bool goes_on = options.after_epoch(history.back());
    if (done != std::pair(state_.epoch, state_.step))
      throw Error(error_text("FitOptions::after_epoch has trained, or loaded a file", "the epochs of fit() follow one another",
                             "end the training there by `false`, and do that behind fit()"));
    if (!goes_on) break;
  }
  history.erase(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(before));
  return history;
}
/// Errors:  as executor(), if a full batch or the last one of an epoch cannot be run
template <Backend B, TrainingLoss<typename B::element> L>
template <class Loader>
void BasicTrainer<B, L>::check_shapes(const Loader& loader, bool training) {
  if (loader.batches() == 0) return;
  executors_.check(loader.input(), plan_options(training));
  if constexpr (requires {
                  { loader.last_input() } -> std::convertible_to<Input>;
                })
    executors_.check(loader.last_input(), plan_options(training));
}
/// Within an epoch, what has been done counts in batches: another loader's batches are other images. Not every file tells their order: those of older
/// versions of the library do not, nor do those of loaders without order().
/// Errors:  DataError if the epoch was begun with other batches
template <Backend B, TrainingLoss<typename B::element> L>
template <class Loader>
void BasicTrainer<B, L>::check_batches(const Loader& train) {
  const std::string alone = std::to_string(train.batches()) + " batches of " + to_string(train.input());
  std::string batches = alone;
  constexpr bool has_order = requires {
    { train.order() } -> std::convertible_to<std::string>;
  };
  if constexpr (has_order) batches += " (" + std::string(train.order()) + ")";
  std::string& begun = state_.notes["batches"];
  const bool untold = begun == alone || (!has_order && begun.starts_with(alone + " ("));
  if (state_.batch > 0 && begun != batches && !untold)
    throw DataError(error_text("training stands after batch " + std::to_string(state_.batch) + " of epoch " + std::to_string(state_.epoch + 1) +
                                   ", which has " + begun + ", and is to go on with " + batches,
                               "an epoch is finished with the batches it was begun with",
                               "use the same batch size, data and seed, or a training file from the end of an epoch"));
  if (has_order || state_.batch == 0) begun = batches;
}
template <Backend B, TrainingLoss<typename B::element> L>
template <class Loader>
EpochRecord BasicTrainer<B, L>::fit_epoch(const Loader& train, const FitOptions& options, ProgressLine* line) {
  if (state_.batch == train.batches() && !(state_.metrics.weight > 0))
    state_.batch = 0, state_.metrics = {};   // a file of an epoch in which no pixel has counted
  check_batches(train);
  const auto begun = std::chrono::steady_clock::now();
  Index images = state_.batch * train.input().n;   // of the epoch: metrics may count pixels
  auto epoch = train.epoch(state_.epoch, state_.batch);
  rounds_.count_batches(true);
  const OnExit stop_counting([this] { rounds_.count_batches(false); });
  const auto settle = [&] { state_.metrics.add(wait(), DenseLoss<L, T>); };
  try {
    for (auto& batch : epoch) {
      const bool saves = options.save_every > 0 && (state_.step + 1) % options.save_every == 0 && !options.training_file.empty();
      images += rounds_.start(batch, batch.labels(), false).images;
      if (saves || rounds_.started() >= steps_ahead || state_.batch == train.batches()) settle();
      if (line && rounds_.started() == 0)
        line->update({state_.epoch + 1, options.epochs, state_.batch, train.batches(), state_.metrics.weight > 0 ? images : 0, state_.metrics.loss(),
                      state_.metrics.accuracy(), arena_bytes()});
      if (saves) save(options.training_file);
    }
  } catch (...) {   // batches before the one that could not be started are done all the same
    try {
      settle();
    } catch (...) {   // those from the first on that is not are taken back; the first error is the one to tell
    }
    throw;
  }
  const Metrics metrics = std::exchange(state_.metrics, {});
  state_.batch = 0;   // where no pixel counts, the epoch begins anew after the error
  if (images > 0) require_counted(metrics, std::to_string(images) + " images of epoch " + std::to_string(state_.epoch + 1));
  EpochRecord record;
  record.epoch = state_.epoch + 1;
  record.steps = state_.step;
  record.lr = state_.optimizer.lr() * lr_scale(options_.schedule, std::max<Index>(record.epoch * train.batches() - 1, 0), options_.clock);
  record.train_loss = metrics.loss();
  record.train_accuracy = metrics.accuracy();
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  record.planned_peak_bytes = arena_bytes();
  ++state_.epoch;
  return record;
}
}   // namespace lrcnn
