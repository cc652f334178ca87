#pragma once
// safetensors files, read and written. How a network's parameters become tensors: interop/weights.hpp.
#include <lrcnn/interop/safetensors_reader.hpp>
#include <lrcnn/interop/safetensors_writer.hpp>
