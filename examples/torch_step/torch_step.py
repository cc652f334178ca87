#!/usr/bin/env python3
"""A network of lrcnn as a torch.autograd.Function: forward and backward by rows, within a budget of bytes.

    torch_step.py LIBRARY check                          all networks against PyTorch's own gradients, in both precisions
    torch_step.py LIBRARY memory [--size HxW] [--budget BYTES] [--threads N] [--no-torch]
                                                         VGG-16's trunk over one large image: the memory and the time of both, and how
                                                         far their gradients are apart

LIBRARY is libtorch_step.so, which examples/torch_step/CMakeLists.txt builds. Needs PyTorch. Status 1: gradients differ by more than rounding.
"""
import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils import dlpack

POINTER = ctypes.c_void_p


class Library:
    """The functions of torch_step.h. An error becomes a RuntimeError with its text."""

    def __init__(self, path):
        self.c = ctypes.CDLL(os.path.abspath(path))
        self.c.torch_step_error.restype = ctypes.c_char_p
        self.c.torch_step_parameter_name.restype = ctypes.c_char_p
        self.c.torch_step_parameter_name.argtypes = [POINTER, ctypes.c_int64]
        self.c.torch_step_is_running.argtypes = [POINTER, ctypes.c_int64]
        for name in ("parameter_count", "arena_bytes"):
            getattr(self.c, "torch_step_" + name).restype = ctypes.c_int64
            getattr(self.c, "torch_step_" + name).argtypes = [POINTER]
        self.c.torch_step_destroy.argtypes = [POINTER]
        self.c.torch_step_destroy.restype = None
        self.c.torch_step_create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, POINTER, ctypes.c_int64, ctypes.c_int, ctypes.c_uint64, POINTER]
        self.c.torch_step_output_shape.argtypes = [POINTER, POINTER]
        self.c.torch_step_parameter.argtypes = self.c.torch_step_gradient.argtypes = [POINTER, ctypes.c_int64, POINTER]
        self.c.torch_step_forward.argtypes = [POINTER] * 3
        self.c.torch_step_backward.argtypes = [POINTER] * 4

    def call(self, name, *arguments):
        if getattr(self.c, "torch_step_" + name)(*arguments) != 0:
            raise RuntimeError(self.c.torch_step_error().decode())


python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = POINTER
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [POINTER, ctypes.c_char_p, POINTER]
USED, FRESH = b"used_dltensor", b"dltensor"  # a capsule keeps the pointer to its name, so these live as long as the program


def give(tensor):
    """The pointer of a tensor for the library, which owns it from now on: the capsule is renamed, so that it does not free the tensor, too."""
    capsule = dlpack.to_dlpack(tensor.detach())
    pointer = python.PyCapsule_GetPointer(capsule, FRESH)
    python.PyCapsule_SetName(capsule, USED)
    return pointer


def take(pointer):
    """A tensor of the library's: from_dlpack renames the capsule, and calls the deleter when PyTorch needs the tensor no more."""
    return dlpack.from_dlpack(python.PyCapsule_New(pointer, FRESH, None))


class Step(torch.autograd.Function):
    """output = network(image, parameters): nothing but the image is kept for the backward pass, which computes the rest again by rows."""

    @staticmethod
    def forward(context, network, image, *parameters):
        result = POINTER()
        network.library.call("forward", network.handle, give(image), ctypes.byref(result))
        context.network = network
        context.save_for_backward(image, *parameters)  # which lets PyTorch say so if they are changed before the backward pass
        return take(result)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context, output_gradient):
        network = context.network
        image = context.saved_tensors[0]
        result = POINTER()
        wanted = context.needs_input_grad[1]
        network.library.call("backward", network.handle, give(image), give(output_gradient), ctypes.byref(result) if wanted else None)
        gradients = [network.tensor("gradient", i) for i in network.trained]
        return (None, take(result) if wanted else None, *gradients)


class LrcnnNetwork(nn.Module):
    """A network of the library. Its parameters are tensors in the library's memory: what an optimizer of PyTorch does to them, the network has."""

    def __init__(self, library, name, shape, dtype=torch.float32, budget=0, threads=0, seed=0):
        super().__init__()
        self.library, self.handle = library, POINTER()
        library.call("create", name.encode(), str(dtype).removeprefix("torch.").encode(), (ctypes.c_int64 * 4)(*shape), budget, threads, seed,
                     ctypes.byref(self.handle))
        names = [library.c.torch_step_parameter_name(self.handle, i).decode() for i in range(library.c.torch_step_parameter_count(self.handle))]
        self.trained = [i for i in range(len(names)) if not library.c.torch_step_is_running(self.handle, i)]
        for i, name in enumerate(names):
            tensor, key = self.tensor("parameter", i), name.replace(".", "_")  # what torch allows as a name
            if i in self.trained:
                self.register_parameter(key, nn.Parameter(tensor))
            else:
                self.register_buffer(key, tensor)

    def tensor(self, what, i):
        result = POINTER()
        self.library.call(what, self.handle, i, ctypes.byref(result))
        return take(result)

    def forward(self, image):
        return Step.apply(self, image, *self.parameters())

    def arena_bytes(self):
        return self.library.c.torch_step_arena_bytes(self.handle)

    def __del__(self):
        self.library.c.torch_step_destroy(self.handle)


def in_torch(name):
    """The same networks of PyTorch's own layers."""
    def conv(i, o, kernel=3, stride=1):
        return nn.Conv2d(i, o, kernel, stride, kernel // 2)
    if name == "plain":
        return nn.Sequential(conv(3, 8), nn.ReLU(), conv(8, 12, 3, 2), nn.ReLU(), nn.MaxPool2d(2), conv(12, 20), nn.ReLU(), conv(20, 3, 1))
    if name == "norms":
        return nn.Sequential(conv(3, 8), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), conv(8, 16), nn.BatchNorm2d(16), nn.ReLU(), conv(16, 3, 1))
    layers, channels = [], 3
    for width, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            layers += [conv(channels, width), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def same_parameters(ours, theirs):
    """Copies our parameters into PyTorch's network, which has them in the same order."""
    with torch.no_grad():
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            b.copy_(a.reshape(b.shape))  # a 1x1 convolution's weight comes as [K,C]


def apart(a, b):
    """The norm of the difference, in parts of the norm."""
    return ((a.detach().double().reshape(-1) - b.detach().double().reshape(-1)).norm() / b.detach().double().norm()).item()


def check_one(library, name, shape, dtype, budget=0):
    """One training step of both, twice: outputs, gradients, running statistics, and parameters after an update by PyTorch's optimizer."""
    torch.manual_seed(1)
    ours = LrcnnNetwork(library, name, shape, dtype, budget=budget)
    theirs = in_torch(name).to(dtype)
    same_parameters(ours, theirs)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9) for net in (ours, theirs)]
    worst = {}
    for _ in range(2):
        image = torch.randn(shape, dtype=dtype).to(memory_format=torch.channels_last)
        outputs, inputs = [], []
        target = None
        for net, optimizer in zip((ours, theirs), optimizers):
            own = image.clone().requires_grad_()
            optimizer.zero_grad()
            output = net(own)
            target = torch.randn_like(output) if target is None else target
            (nn.functional.smooth_l1_loss(output, target, reduction="sum") + output.mean()).backward()
            outputs.append(output), inputs.append(own.grad)
        differences = {"output": apart(*outputs), "input gradient": apart(*inputs)}
        pairs = [(a, b) for (n, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True)
                 if name != "norms" or n not in ("conv1_bias", "conv2_bias")]  # a norm follows: their gradients are 0 but for rounding
        differences["parameter gradients"] = max(apart(a.grad, b.grad) for a, b in pairs)
        running = [b for n, b in theirs.named_buffers() if not n.endswith("num_batches_tracked")]
        if running:
            differences["running statistics"] = max(apart(a, b) for a, b in zip(ours.buffers(), running, strict=True))
        for optimizer in optimizers:
            optimizer.step()
        differences["parameters after the update"] = max(apart(a, b) for a, b in pairs)
        worst = {key: max(value, worst.get(key, 0)) for key, value in differences.items()}
    good = max(worst.values()) <= ROUNDING[dtype]
    print(f"{name:6} {'x'.join(map(str, shape)):12} {str(dtype)[6:]:8}" + (f" in {budget:,} bytes" if budget else "") +
          ": " + ", ".join(f"{key} {value:.1e}" for key, value in worst.items()) + ("" if good else f"   MORE THAN {ROUNDING[dtype]:.0e}"))
    return good


# Parts of a norm. Rounding now and then turns a ReLU or the choice of a pool, so in 32 bits deep networks differ by more than their sums do.
ROUNDING = {torch.float32: 5e-4, torch.float64: 1e-12}


def check(library):
    good = True
    for name, shape in (("plain", (2, 3, 40, 56)), ("norms", (2, 3, 40, 56)), ("vgg16", (1, 3, 64, 96))):
        good &= check_one(library, name, shape, torch.float32)
        if name != "vgg16":  # in plain loops it takes too long
            good &= check_one(library, name, shape, torch.float64)
    good &= check_one(library, "plain", (1, 3, 512, 256), torch.float32, budget=80_000_000)
    ours = LrcnnNetwork(library, "plain", (1, 3, 32, 32), torch.float64)
    image = torch.randn(1, 3, 32, 32, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(ours(image).sum(), list(ours.parameters()), retain_graph=False)
    kept = [g.clone() for g in first]
    torch.autograd.grad(ours(2 * image).sum(), list(ours.parameters()))
    if not all(torch.equal(a, b) for a, b in zip(first, kept)):
        good = False
        print("gradients of an earlier pass have changed")
    try:
        ours(torch.randn(1, 3, 32, 16, dtype=torch.float64))
        good = False
        print("an image of another shape was taken")
    except RuntimeError as error:
        print("refused, as it should be:", error)
    return good


def one_side(arguments):
    """In a process of its own: one step over a large image, by lrcnn or by PyTorch. Writes gradients; prints peak, bytes before, seconds."""
    h, w = map(int, arguments.size.split("x"))
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    library = Library(arguments.library)
    ours = LrcnnNetwork(library, "vgg16", (1, 3, h, w), budget=arguments.budget, threads=arguments.threads)
    net = ours
    if arguments.side == "torch":
        net = in_torch("vgg16")
        same_parameters(ours, net)
        del ours
    image = torch.randn(1, 3, h, w, generator=torch.Generator().manual_seed(2)).requires_grad_()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    net(image).square().mean().backward()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    torch.save([image.grad] + [p.grad for p in net.parameters()], arguments.gradients)
    print(peak, peak - before, seconds)


def memory(arguments):
    folder = tempfile.mkdtemp()
    files = {}
    print(f"VGG-16's trunk over one image of {arguments.size}; peaks are the process's, PyTorch's libraries included")
    for side in ["lrcnn"] if arguments.no_torch else ["lrcnn", "torch"]:
        files[side] = os.path.join(folder, side)
        command = [sys.executable, __file__, arguments.library, "side", "--side", side, "--size", arguments.size, "--budget", str(arguments.budget),
                   "--threads", str(arguments.threads), "--gradients", files[side]]
        peak, grown, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        print(f"{side:6}: peak {int(peak) / 1e6:,.0f} MB, {int(grown) / 1e6:,.0f} MB of them for the step; {float(seconds):.1f} s")
    if len(files) < 2:
        return True
    ours, theirs = (torch.load(files[side]) for side in ("lrcnn", "torch"))
    differences = [apart(a, b) for a, b in zip(ours, theirs, strict=True)]
    print(f"gradients differ by at most {max(differences):.1e} of their norm; that of the image by {differences[0]:.1e}")
    return max(differences) <= ROUNDING[torch.float32]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("mode", choices=("check", "memory", "side"))
    parser.add_argument("--size", default="1024x1024")
    parser.add_argument("--budget", type=int, default=600_000_000)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--gradients", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode == "check":
        good = check(Library(arguments.library))
    elif arguments.mode == "side":
        good = one_side(arguments) is None
    else:
        good = memory(arguments)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
