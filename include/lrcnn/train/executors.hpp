#pragma once
// Executors of one network for batches of several shapes, training or forward only.
//
// Plans are kept, and share one arena as large as the largest needs. A larger one than all before moves the arena, and the others are
// made again when they are wanted; so does one whose lists leave no room in a budget for the arena of another.
#include <lrcnn/exec/executor.hpp>
#include <lrcnn/exec/policy_choice.hpp>
namespace lrcnn {
template <Backend B>
class Executors {
 public:
  using M = master_t<typename B::element>;
  Executors(std::span<const Layer> layers, PlanMaker<B> plans) : layers_(layers.begin(), layers.end()), plans_(std::move(plans)) {}
  /// The executor for a batch's shape. Pre: backend, parameters and gradients are the same each time.
  /// Errors:  ShapeError, PlanError as make_table(), make_plan(); ShapeError if parameters are others than with the first shape;
  ///          PlanError if the machine has too little memory
  Executor<B>& get(const Input& input, const PlanOptions& options, B& backend, const M* parameters, M* gradients) {
    if (Executor<B>* known = find(input, options)) return *known;
    Plan plan = make(input, options);
    const auto new_arena = [&] {
      executors_.clear();
      arena_.reset();
      arena_ = std::make_shared<typename B::Memory>(allocate_arena(backend, plan));
    };
    if (!arena_ || plan.arena.bytes > arena_->bytes()) new_arena();
    if (plan.arena.offloaded > offloaded_bytes(*arena_)) {
      executors_.clear();
      allocate_offloaded(backend, *arena_, plan);
    }
    const auto taken = [&] {
      Index bytes = arena_->bytes() + plans_.lists(plan.listed_steps());
      for (const auto& known : executors_) bytes += plans_.lists(known->plan().listed_steps());
      return bytes;
    };
    const Index room = plans_.room_for(plan.table);
    while (!executors_.empty() && (executors_.size() >= 8 || taken() > room)) executors_.erase(executors_.begin());
    if (taken() > room) new_arena();   // another plan's arena, and the lists of this one, are more than there is room for
    executors_.push_back(std::make_unique<Executor<B>>(std::move(plan), backend, parameters, gradients, arena_));
    return *executors_.back();
  }
  /// Finds out whether get() can serve such a batch, without its memory. Errors: as get(), but for that of too little memory
  void check(const Input& input, const PlanOptions& options) {
    if (!find(input, options)) static_cast<void>(make(input, options));
  }
  Index arena_bytes() const { return arena_ ? arena_->bytes() : 0; }
  const PlanMaker<B>& plans() const { return plans_; }
  /// Takes over the policies that were chosen for a training, from the notes of its file; plans are made anew when they are wanted.
  void read_choices(const std::map<std::string, std::string>& notes) {
    if (plans_.read_choices(notes)) executors_.clear();
  }

 private:
  Executor<B>* find(const Input& input, const PlanOptions& options) const {
    for (const auto& known : executors_)
      if (known->plan().table.input == input && known->plan().options == options) return known.get();
    return nullptr;
  }
  Plan make(const Input& input, const PlanOptions& options) {
    Plan plan = plans_.make(make_table(layers_, input), options);
    if (first_.nodes.empty()) first_ = plan.table;
    check_layout(parameters_of(first_), first_.input, parameters_of(plan.table), input);
    return plan;
  }
  std::vector<Layer> layers_;
  PlanMaker<B> plans_;
  Table first_{};   ///< with the first shape
  std::shared_ptr<typename B::Memory> arena_;
  std::vector<std::unique_ptr<Executor<B>>> executors_;
};
}   // namespace lrcnn
