#pragma once
// Tensors that another program - PyTorch, CuPy, JAX, NumPy - has in memory, and tensors for it: DLPack in and out.
//
//     DlpackSource         a batch on the host: rows are gathered from any strides, nothing is copied
//     DlpackDeviceSource   a batch on a CUDA device, which reads it there
//     DlpackLabels         classes of images or pixels, or targets
//     shared_tensor()      a parameter, a gradient, an output where it lies; dense_copy() where strides cannot say how
//     to_dlpack(), to_versioned_dlpack()
//
// Who owns what: interop/dlpack_tensor.hpp for tensors that come in, interop/dlpack_export.hpp for those that go out.
#include <lrcnn/interop/dlpack_device.hpp>
#include <lrcnn/interop/dlpack_export.hpp>
#include <lrcnn/interop/dlpack_labels.hpp>
#include <lrcnn/interop/dlpack_source.hpp>
