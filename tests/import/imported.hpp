#pragma once
// What tests of scripts/import do with a type that it wrote. import.py here and bench/peers/import.py write programs that include this;
// imported.cpp, compiled once, has what takes a compiler long.
#include <lrcnn/layer/layers.hpp>
#include <lrcnn/network/graph.hpp>
#include <span>
namespace imported {
using namespace lrcnn;
using Layers = std::span<const Layer>;
/// Loads weights from a safetensors file, strictly, predicts on the reference backend in double, and writes the output as doubles, [N,C,H,W].
/// input_file: doubles, as many as `input` has. Returns a program's status.
int run(Layers layers, const Input& input, const char* weights, const char* input_file, const char* output_file);
/// How parameters of the library's networks are called in files.
enum class Names { own, vgg, ignored };
/// Says how two networks differ: in layers with their shapes, or in parameters. Names count for parameters only, since a layer without any is
/// called after its kind in one type and perhaps by its author in the other. Returns a program's status: 0 if they are equal.
int compare(Layers given, Layers known, const Input& input, Names names = Names::own);
}   // namespace imported
