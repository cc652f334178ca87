// torch_step.h in C++: networks by their names, and errors as texts.
#include "torch_step.h"
#include "cpu_backend.hpp"
#include "network_step.hpp"
#include <lrcnn/backend/reference.hpp>
using namespace lrcnn;
struct torch_step {
  std::shared_ptr<NetworkStep> step;
};
namespace {
/// Networks that the library knows; one of your own is one line.
struct Known {
  std::string_view name;
  std::span<const Layer> layers;
};
using Vgg = VggTrunk<2, 2, 3, 3, 3>;
using Plain =
    Sequential<Conv<8>, ReLU, Conv<12, Window{.kernel = 3, .stride = 2, .pad = 1}>, ReLU, MaxPool<>, Conv<20>, ReLU, Conv<3, Window{.kernel = 1}>>;
using Norms = Sequential<Conv<8>, BatchNorm, ReLU, MaxPool<>, Conv<16>, BatchNorm, ReLU, Conv<3, Window{.kernel = 1}>>;
const Known networks[] = {{"vgg16", Vgg::layers}, {"plain", Plain::layers}, {"norms", Norms::layers}};

thread_local std::string last_error;
thread_local const char* error_shown = "";   ///< that text, or a constant where there is no memory for it
void keep_error(const char* text) noexcept {
  try {
    last_error = text;
    error_shown = last_error.c_str();
  } catch (const std::bad_alloc&) {
    error_shown = "lrcnn: there is no memory left";
  }
}
/// 0, or -1 after an exception, whose text is kept.
template <class F>
int guarded(F f) noexcept {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    keep_error(e.what());
  } catch (...) {
    keep_error("lrcnn: something was thrown that is no std::exception");
  }
  return -1;
}
void require(bool good, const std::string& what, const std::string& rule, const std::string& change) {
  if (!good) throw Error(error_text(what, rule, change));
}
void require_step(const torch_step* step) {
  require(step != nullptr, "a null pointer is given as a step", "torch_step_create() makes steps", "look at what it returned");
}
void require_place(const void* place) {
  require(place != nullptr, "a null pointer is given where a result is to go", "results are written through pointers",
          "give the address of a variable");
}
void require_number(const torch_step* step, int64_t number) {
  require_step(step);
  const auto count = static_cast<int64_t>(step->step->layout().size());
  require(number >= 0 && number < count, "parameter " + std::to_string(number) + " is asked for",
          "this network has parameters 0 to " + std::to_string(count - 1), "ask torch_step_parameter_count() first");
}
struct CallDeleter {
  void operator()(DLManagedTensor* tensor) const {
    if (tensor->deleter) tensor->deleter(tensor);
  }
};
/// A tensor that was handed over: it goes back in any case.
using Given = std::unique_ptr<DLManagedTensor, CallDeleter>;
}   // namespace

const char* torch_step_error(void) { return error_shown; }
int torch_step_create(const char* network, const char* dtype, const int64_t input[4], int64_t budget, int threads, uint64_t seed, torch_step** step) {
  return guarded([&] {
    require_place(step);
    require(network && dtype && input, "a null pointer is given for the network, its element type or its input", "a step is made of these",
            "give all three");
    const auto known = std::find_if(std::begin(networks), std::end(networks), [&](const Known& k) { return k.name == network; });
    require(known != std::end(networks), "the network '" + std::string(network) + "' is unknown", "there are vgg16, plain and norms",
            "choose one, or add yours to torch_step.cpp");
    require(budget >= 0, "a budget of " + std::to_string(budget) + " bytes is given", "a budget is a number of bytes, or 0 for layer by layer",
            "give another number");
    const Input extents{input[0], input[1], input[2], input[3]};
    const std::string_view type = dtype;
    auto made = std::make_unique<torch_step>();
    if (type == "float32") made->step = std::make_shared<NetworkStepOn<Cpu>>(known->layers, extents, budget, threads, seed);
    else if (type == "float64") made->step = std::make_shared<NetworkStepOn<Reference<double>>>(known->layers, extents, budget, threads, seed);
    else require(false, "the element type '" + std::string(type) + "' is unknown", "there are float32 and float64", "choose one");
    *step = made.release();
  });
}
void torch_step_destroy(torch_step* step) { delete step; }
int torch_step_output_shape(const torch_step* step, int64_t shape[4]) {
  return guarded([&] {
    require_step(step), require_place(shape);
    const Shape s = step->step->output_shape();
    shape[0] = s.n, shape[1] = s.c, shape[2] = s.h, shape[3] = s.w;
  });
}
int64_t torch_step_arena_bytes(const torch_step* step) { return step ? step->step->arena_bytes() : 0; }
int64_t torch_step_parameter_count(const torch_step* step) { return step ? static_cast<int64_t>(step->step->layout().size()) : 0; }
const char* torch_step_parameter_name(const torch_step* step, int64_t number) {
  const char* name = nullptr;
  guarded([&] { require_number(step, number), name = item(step->step->layout(), number).name.c_str(); });
  return name;
}
int torch_step_is_running(const torch_step* step, int64_t number) {
  int running = 0;
  guarded([&] { require_number(step, number), running = item(step->step->layout(), number).shape.running; });
  return running;
}
int torch_step_parameter(torch_step* step, int64_t number, DLManagedTensor** tensor) {
  return guarded([&] {
    require_number(step, number), require_place(tensor);
    *tensor = to_dlpack(step->step->parameter(number, step->step));
  });
}
int torch_step_gradient(torch_step* step, int64_t number, DLManagedTensor** tensor) {
  return guarded([&] {
    require_number(step, number), require_place(tensor);
    *tensor = to_dlpack(step->step->gradient(number));
  });
}
int torch_step_forward(torch_step* step, DLManagedTensor* input, DLManagedTensor** output) {
  return guarded([&] {
    Given given(input);
    require_step(step), require_place(output);
    *output = to_dlpack(step->step->forward(DlpackTensor(given.release())));
  });
}
int torch_step_backward(torch_step* step, DLManagedTensor* input, DLManagedTensor* output_gradient, DLManagedTensor** input_gradient) {
  return guarded([&] {
    Given given(input), gradient(output_gradient);
    require_step(step);
    const DlpackTensor x(given.release()), dy(gradient.release());
    const auto dx = step->step->backward(x, dy, input_gradient != nullptr);
    if (dx) *input_gradient = to_dlpack(*dx);
  });
}
