#!/usr/bin/env python3
"""Writes the golden files of whole networks that branch: ResNet-18, ResNet-50 and U-Net, with batch norms. The files in the repository
were made with torch 2.13.0 and torchvision 0.28.0 on a CPU, in float64.

    python make_golden_networks.py [FOLDER [NETWORK...]]

Nothing that is put in is stored. The element i of an image or a parameter is a number of 20 bits as in make_golden.py; images have stream
1 and scale 2. A parameter has the stream that its name gives (64 bits of FNV-1a) and
    a weight of a convolution or a linear layer   scale sqrt(6 / fan in)
    a norm's weight                               scale 1/4, plus 1
    anything else, but running statistics         scale 1/8
Running means begin at 0 and variances at 1. Names are those of the layers (lrcnn's Scope) with weight, bias, running_mean, running_var.

A file, read by tests/golden/networks.cpp:
    input N C H W
    labels CLASS...
    loss LOSS                                     mean softmax cross-entropy of the first step
    gradient NAME COUNT NORM VALUE...             with up to 4 elements, number j at Random(20240131, 2).bits(j) >> 11, modulo COUNT
    running NAME COUNT NORM VALUE...              running statistics after that step, likewise
    steps LR MOMENTUM LOSS...                     losses of training steps from the same beginning on
    after NAME COUNT NORM VALUE...                parameters after them
"""
import math
import os
import sys

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from make_golden import bits, numbers

VALUES = 4


def stream_of(name):
    """FNV-1a of the name."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def fill(name, tensor):
    """A parameter's first values."""
    with torch.no_grad():
        if name.endswith("running_mean"):
            tensor.zero_()
        elif name.endswith("running_var"):
            tensor.fill_(1)
        elif tensor.dim() > 1:
            fan_in = tensor[0].numel()
            tensor.copy_(numbers(tensor.shape, stream_of(name), math.sqrt(6 / fan_in)))
        elif name.endswith("weight"):
            tensor.copy_(1 + numbers(tensor.shape, stream_of(name), 0.25))
        else:
            tensor.copy_(numbers(tensor.shape, stream_of(name), 0.125))


class Unit(nn.Module):
    """Convolution, norm, ReLU."""

    def __init__(self, channels, width):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class UNet(nn.Module):
    """lrcnn's UNet<classes, width>: two units at each level down and up, nearest upsampling with a unit before the concatenation. Closed
    by the mean over all pixels, whose values are the logits."""

    def __init__(self, classes, width):
        super().__init__()
        self.units = nn.ModuleDict()

        def unit(place, number, channels, out):
            self.units[f"{place}/{number}"] = Unit(channels, out)

        channels = 3
        for level in range(1, 5):
            unit(f"down{level}", 1, channels, width * 2 ** (level - 1))
            channels = width * 2 ** (level - 1)
            unit(f"down{level}", 2, channels, channels)
        unit("bottom", 1, channels, 2 * channels)
        unit("bottom", 2, 2 * channels, 2 * channels)
        for level in range(4, 0, -1):
            c = width * 2 ** (level - 1)
            unit(f"up{level}", 1, 2 * c, c)
            unit(f"merge{level}", 1, 2 * c, c)
            unit(f"merge{level}", 2, c, c)
        self.head = nn.Conv2d(width, classes, 1)

    def pair(self, place, x):
        return self.units[f"{place}/2"](self.units[f"{place}/1"](x))

    def forward(self, x):
        skips = []
        for level in range(1, 5):
            skips.append(self.pair(f"down{level}", x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.pair("bottom", x)
        for level in range(4, 0, -1):
            x = self.units[f"up{level}/1"](F.interpolate(x, scale_factor=2, mode="nearest"))
            x = self.pair(f"merge{level}", torch.cat((skips.pop(), x), 1))
        return self.head(x).mean((2, 3))


def ours(name):
    """lrcnn's name of a tensor of these modules."""
    if not name.startswith("units."):
        return name
    _, unit, part, what = name.split(".")
    place, number = unit.split("/")
    return f"{place}.{'conv' if part == 'conv' else 'batch_norm'}{number}.{what}"


def begin(model):
    model.double().train()
    for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
        if not name.endswith("num_batches_tracked"):
            fill(ours(name), tensor)


def line(key, name, tensor):
    flat = tensor.detach().reshape(-1)
    high, low = bits(2, torch.arange(min(VALUES, flat.numel())))
    at = (high * 2**21 + (low >> 11)) % flat.numel()
    return f"{key} {name} {flat.numel()} {flat.norm().item()!r} " + " ".join(repr(v) for v in flat[at].tolist())


def write(path, title, model, shape, labels, steps):
    images, target = numbers(shape, 1, 2.0), torch.tensor(labels)
    lines = [f"# {title}, made by make_golden_networks.py with torch {torch.__version__.split('+')[0]}, float64",
             f"input {' '.join(map(str, shape))}", f"labels {' '.join(map(str, labels))}"]
    begin(model)
    loss = F.cross_entropy(model(images), target)
    loss.backward()
    lines.append(f"loss {loss.item()!r}")
    lines += [line("gradient", ours(n), p.grad) for n, p in model.named_parameters()]
    lines += [line("running", ours(n), b) for n, b in model.named_buffers() if not n.endswith("num_batches_tracked")]
    if steps:
        lr, momentum = 0.0078125, 0.875
        begin(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), target)
            loss.backward()
            optimizer.step()
            losses.append(repr(loss.item()))
        lines.append(f"steps {lr!r} {momentum!r} {' '.join(losses)}")
        state = [(n, t) for n, t in list(model.named_parameters()) + list(model.named_buffers()) if not n.endswith("num_batches_tracked")]
        lines += [line("after", ours(n), t) for n, t in state]
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")
    print(path, os.path.getsize(path), "bytes, loss", lines[3], [x for x in lines if x.startswith("steps")])


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    torch.set_num_threads(2)
    networks = {
        "resnet18": ("ResNet-18", lambda: torchvision.models.resnet18(num_classes=10), (2, 3, 64, 64), 3),
        "resnet50": ("ResNet-50", lambda: torchvision.models.resnet50(num_classes=10), (2, 3, 64, 64), 0),
        "unet": ("U-Net, width 8", lambda: UNet(10, 8), (2, 3, 48, 32), 0),
    }
    for name in sys.argv[2:] or networks:
        title, make, shape, steps = networks[name]
        write(os.path.join(folder, name + ".txt"), title, make(), shape, [3, 7], steps)
