// One step of what bench/peers/weights.py compares with PyTorch: reads a network's weights from a safetensors file, predicts, trains one
// step, predicts again, and writes weights and predictions.
//
//   lrcnn_exchange NETWORK fp64|fp32 --weights FILE --batch FILE --trained FILE --predictions FILE [--lr N] [--momentum N]
//                  [--weight-decay N] [--threads N]
//   lrcnn_exchange --list
//
// NETWORK is torchvision's name, or unet; all have ten classes and no dropout. --batch has the tensors images [N,3,H,W] and labels [N], of
// unet [N,H,W]. fp64 runs on the plain loops, fp32 on oneDNN where this build has it. Predictions are before [N,...] and after [N,...].
#include "../../examples/cpu_backend.hpp"
#include "../../examples/program.hpp"
#include <lrcnn/backend/reference.hpp>
#include <lrcnn/interop/safetensors.hpp>
#include <lrcnn/interop/weights.hpp>
#include <lrcnn/lrcnn.hpp>
#include <CLI/CLI.hpp>
#include <iostream>
using namespace lrcnn;
namespace {
struct Network {
  std::string_view name;
  std::span<const Layer> layers;
  std::string (*naming)(const Parameter&) = own_name;
  bool labels_pixels = false;
};
using None = std::ratio<0>;
template <class Trunk>
constexpr std::span<const Layer> vgg = Sequential<Trunk, VggHead<10, 4096, None>>::layers;
const std::vector<Network> networks{{"resnet18", ResNet18<10>::layers},
                                    {"resnet34", ResNet34<10>::layers},
                                    {"resnet50", ResNet50<10>::layers},
                                    {"resnet101", ResNet101<10>::layers},
                                    {"resnet152", ResNet152<10>::layers},
                                    {"vgg11", vgg<VggTrunk<1, 1, 2, 2, 2>>, torchvision_vgg_name},
                                    {"vgg13", vgg<VggTrunk<2, 2, 2, 2, 2>>, torchvision_vgg_name},
                                    {"vgg16", vgg<VggTrunk<2, 2, 3, 3, 3>>, torchvision_vgg_name},
                                    {"vgg19", vgg<VggTrunk<2, 2, 4, 4, 4>>, torchvision_vgg_name},
                                    {"mobilenet_v2", MobileNetV2<10, BatchNorm, None>::layers},
                                    {"squeezenet1_1", SqueezeNet11<10, None>::layers},
                                    {"densenet121", DenseNet121<10>::layers},
                                    {"densenet161", DenseNet161<10>::layers},
                                    {"densenet169", DenseNet169<10>::layers},
                                    {"densenet201", DenseNet201<10>::layers},
                                    {"convnext_tiny", ConvNeXtTiny<10, None>::layers},
                                    {"convnext_small", ConvNeXtSmall<10, None>::layers},
                                    {"convnext_base", ConvNeXtBase<10, None>::layers},
                                    {"convnext_large", ConvNeXtLarge<10, None>::layers},
                                    {"unet", UNet<10, 16>::layers, own_name, true}};
struct Arguments {
  std::string network, arithmetic = "fp64", weights, batch, trained, predictions;
  double lr = 0.01, momentum = 0.9, weight_decay = 1e-4;
  int threads = 0;
  bool list = false;
};
template <class T>
std::vector<T> tensor_of(const TensorFile& file, std::string_view name, std::vector<Index>& shape) {
  const auto tensors = file.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) {
      shape = tensors[i].shape;
      std::vector<T> values(static_cast<std::size_t>(tensors[i].count()));
      file.read(i, std::span(values));
      return values;
    }
  throw Error(error_text(file.description() + " has no tensor '" + std::string(name) + "'", "a batch has images and labels", "add it"));
}
template <class T>
struct Prediction {
  std::vector<T> values;
  std::vector<Index> shape;
};
template <class T>
Prediction<T> dense(const View<const T>& y) {
  Prediction<T> p{{}, {y.n, y.c}};
  if (y.rows * y.w > 1) p.shape.insert(p.shape.end(), {y.rows, y.w});
  for (Index n = 0; n < y.n; ++n)
    for (Index c = 0; c < y.c; ++c)
      for (Index row = y.row0; row < y.row0 + y.rows; ++row)
        for (Index x = 0; x < y.w; ++x) p.values.push_back(y(n, c, row, x));
  return p;
}
template <class B, class Loss>
void exchange(const Network& network, const Arguments& arguments) {
  using T = typename B::element;
  std::vector<Index> shape, labels_shape;
  const SafetensorsFile batch(arguments.batch);
  const auto images = tensor_of<T>(batch, "images", shape);
  const auto numbers = tensor_of<float>(batch, "labels", labels_shape);
  const std::vector<std::int32_t> classes(numbers.begin(), numbers.end());
  const Input input{shape.at(0), shape.at(1), shape.at(2), shape.at(3)};
  const MemorySource<T> source(images.data(), input);
  const Labels labels = network.labels_pixels ? Labels::of_pixels(classes, input.h, input.w) : Labels(classes);
  BasicTrainer<B, Loss> trainer(network.layers, Policy<Column>::value, input,
                                Sgd{.lr = arguments.lr, .momentum = arguments.momentum, .weight_decay = arguments.weight_decay},
                                {.threads = arguments.threads});
  std::cout << to_string(load_weights(trainer, SafetensorsFile(arguments.weights), {.name = network.naming})) << "\n";
  const auto before = dense(trainer.predict(source));
  const StepReport report = trainer.step(source, labels);
  const auto after = dense(trainer.predict(source));
  write_safetensors(arguments.trained, weights_of(trainer, {.name = network.naming}).tensors);
  const std::array<T, 1> loss{static_cast<T>(report.loss)};
  write_safetensors(arguments.predictions, std::vector<NamedTensor>{{"before", before.shape, tensor_type<T>, std::as_bytes(std::span(before.values))},
                                                                    {"after", after.shape, tensor_type<T>, std::as_bytes(std::span(after.values))},
                                                                    {"loss", {}, tensor_type<T>, std::as_bytes(std::span(loss))}});
}
int run(const Arguments& arguments) {
  if (arguments.list) {
    for (const Network& n : networks) std::cout << n.name << "\n";
    return 0;
  }
  check_written({arguments.trained, arguments.predictions}, {arguments.weights, arguments.batch});
  for (const Network& n : networks) {
    if (n.name != arguments.network) continue;
    const bool doubles = arguments.arithmetic == "fp64";
    if (doubles && n.labels_pixels) exchange<Reference<double>, PixelCrossEntropy>(n, arguments);
    else if (doubles) exchange<Reference<double>, SoftmaxCrossEntropy>(n, arguments);
    else if (n.labels_pixels) exchange<Cpu, PixelCrossEntropy>(n, arguments);
    else exchange<Cpu, SoftmaxCrossEntropy>(n, arguments);
    return 0;
  }
  throw Error(error_text("no network '" + arguments.network + "'", "--list shows all", "choose one of them"));
}
}   // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Predicts and trains one step with weights from a safetensors file.");
  app.add_option("NETWORK", arguments.network, "torchvision's name of a network, or unet");
  app.add_option("ARITHMETIC", arguments.arithmetic, "fp64 or fp32")->check(CLI::IsMember({"fp64", "fp32"}));
  app.add_option("--weights", arguments.weights, "safetensors file with the network's weights");
  app.add_option("--batch", arguments.batch, "safetensors file with images and labels");
  app.add_option("--trained", arguments.trained, "safetensors file to write the weights to");
  app.add_option("--predictions", arguments.predictions, "safetensors file to write predictions and loss to");
  app.add_option("--lr", arguments.lr, "learning rate");
  app.add_option("--momentum", arguments.momentum, "of SGD");
  app.add_option("--weight-decay", arguments.weight_decay, "of all parameters");
  app.add_option("--threads", arguments.threads, "threads of the backend; all processors if not given")->check(CLI::Range(1, 1024));
  app.add_flag("--list", arguments.list, "show the networks");
  return run_program(app, argc, argv, [&] { return run(arguments); });
}
