#include "import/imported.hpp"
#include <lrcnn/interop/safetensors.hpp>
#include <lrcnn/interop/weights.hpp>
#include <lrcnn/lrcnn.hpp>
#include <fstream>
#include <iostream>
namespace imported {
namespace {
std::vector<double> read_doubles(const char* file, Index count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(double))))
    throw Error(error_text(std::string("cannot read ") + file, "it has " + std::to_string(count) + " doubles", "write it so"));
  return values;
}
void predict(Layers layers, const Input& input, const char* weights, const char* input_file, const char* output_file) {
  const std::vector<Parameter> layout = parameters_of(make_table(layers, input));
  std::vector<double> values(static_cast<std::size_t>(flat_elements(layout)));
  read_weights(SafetensorsFile(weights), layout, std::span(values));
  const std::vector<double> x = read_doubles(input_file, input.n * input.c * input.h * input.w);
  BasicPredictor<Reference<double>> predictor(layers, Policy<>::value, input, values, 2);
  const Shape shape = predictor.output_shape();
  std::vector<double> y(static_cast<std::size_t>(shape.n * shape.c * shape.h * shape.w));
  MemorySink<double> sink(y.data(), shape.h);
  predictor.run(MemorySource<double>(x.data(), input), sink);
  std::ofstream stream(output_file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(y.data()), static_cast<std::streamsize>(y.size() * sizeof(double)));
  if (!stream.flush()) throw Error(error_text(std::string("cannot write ") + output_file, "it takes the output", "make room for it"));
}
}   // namespace
int run(Layers layers, const Input& input, const char* weights, const char* input_file, const char* output_file) {
  try {
    predict(layers, input, weights, input_file, output_file);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
int compare(Layers given, Layers known, const Input& input, Names names) {
  const Table a = make_table(given, input), b = make_table(known, input);
  int differences = 0;
  const auto differ = [&](const std::string& what) { ++differences, std::cout << what << "\n"; };
  if (a.size() != b.size()) differ(std::to_string(a.size()) + " layers instead of " + std::to_string(b.size()));
  for (Index i = 0; i < std::min(a.size(), b.size()); ++i) {
    Node x = a.node(i), y = b.node(i);
    x.layer.name = y.layer.name;
    if (!(x == y)) differ("layer " + std::to_string(i + 1) + ": " + describe(x.layer) + " instead of " + describe(y.layer));
  }
  const std::vector<Parameter> p = parameters_of(a), q = parameters_of(b);
  if (p.size() != q.size()) differ(std::to_string(p.size()) + " tensors instead of " + std::to_string(q.size()));
  for (std::size_t i = 0; i < std::min(p.size(), q.size()); ++i) {
    const std::string name = names == Names::ignored ? p[i].name : names == Names::vgg ? torchvision_vgg_name(q[i]) : q[i].name;
    if (p[i].name != name || !(p[i].shape == q[i].shape) || p[i].offset != q[i].offset)
      differ("parameter " + p[i].name + " " + extents_text(p[i].shape) + " instead of " + name + " " + extents_text(q[i].shape));
  }
  std::cout << (differences == 0 ? "equal: " : "not equal: ") << a.size() << " layers, " << p.size() << " tensors, " << parameter_elements(p)
            << " parameters\n";
  return differences == 0 ? 0 : 1;
}
}   // namespace imported
