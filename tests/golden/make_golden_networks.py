#!/usr/bin/env python3
"""Writes the golden files of whole networks. The files in the repository were made with torch 2.13.0 and torchvision 0.28.0 on a CPU, in
float64.

    python make_golden_networks.py [FOLDER [NETWORK...]]

Nothing that is put in is stored. The element i of an image or a parameter is a number of 20 bits as in make_golden.py; images have stream
1 and scale 2. A parameter has the stream that its name gives (64 bits of FNV-1a) and
    a weight of a convolution or a linear layer   scale sqrt(6 / fan in)
    a norm's weight                               scale 1/4, plus 1
    anything else, but running statistics         scale 1/8
Running means begin at 0 and variances at 1. Names are those of the layers (lrcnn's Scope) with weight, bias, running_mean, running_var.
Dropout and stochastic depth are off.

A file, read by tests/golden/networks.hpp:
    input N C H W
    labels CLASS...                               the loss is the mean softmax cross-entropy of the images
    mask IGNORED WEIGHT...                        or that of the pixels, with weights of the classes; pixel i (of all images, row-major) is
                                                  of class Random(20240131, 3).bits(i) >> 11, modulo the classes and one more, which
                                                  stands for the label to ignore
    loss LOSS                                     of the first step
    images gradient COUNT NORM VALUE...           of the loss by the images, with up to 4 elements: number j is the one at
                                                  Random(20240131, 2).bits(j) >> 11, modulo COUNT
    gradient NAME COUNT NORM VALUE...             by a parameter, likewise
    running NAME COUNT NORM VALUE...              running statistics after that step, likewise
    training LR MOMENTUM WEIGHT_DECAY             of stochastic gradient descent from the same beginning on; then for each step
    step LOSS
    after NAME COUNT NORM VALUE...                all parameters and running statistics after it
"""
import collections
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torchvision import models

from make_golden import bits, numbers

VALUES = 4
CLASSES = 10
LABELS = [3, 7]
MASK = (255, [0.5, 1.0, 2.5])  # label to ignore, weights of the classes
TRAINING = (0.0009765625, 0.875, 0.125)  # learning rate, momentum, weight decay


def stream_of(name):
    """FNV-1a of the name."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def draws(stream, count):
    high, low = bits(stream, torch.arange(count))
    return high * 2**21 + (low >> 11)


def fill(name, tensor):
    """A parameter's first values."""
    with torch.no_grad():
        if name.endswith("running_mean"):
            tensor.zero_()
        elif name.endswith("running_var"):
            tensor.fill_(1)
        elif name.endswith("weight") and tensor.dim() > 1:
            tensor.copy_(numbers(tensor.shape, stream_of(name), math.sqrt(6 / tensor[0].numel())))
        elif name.endswith("weight"):
            tensor.copy_(1 + numbers(tensor.shape, stream_of(name), 0.25))
        else:
            tensor.copy_(numbers(tensor.shape, stream_of(name), 0.125))


def named(*modules, **others):
    """Modules one behind the other, named as lrcnn names layers: by kind and number."""
    kinds = {"Conv2d": "conv", "ConvTranspose2d": "conv", "Linear": "linear", "BatchNorm2d": "batch_norm"}
    counts, parts = collections.Counter(), []
    for module in modules:
        kind = kinds.get(type(module).__name__, type(module).__name__)
        counts[kind] += 1
        parts.append((f"{kind}{counts[kind]}", module))
    return nn.Sequential(collections.OrderedDict(parts, **others))


class UNet(nn.Module):
    """lrcnn's UNet<classes, width>: two units at each level down and up; before the concatenation a transposed convolution, or, where it
    is said how, upsampling with a unit."""

    def __init__(self, classes, width, **upsampling):
        super().__init__()
        down = [3] + [width * 2**level for level in range(5)]

        def units(*channels):
            of_each = [(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()) for a, b in zip(channels, channels[1:])]
            return sum(of_each, ())

        for level in range(1, 5):
            c = down[level]
            up = (nn.Upsample(scale_factor=2, **upsampling), *units(2 * c, c)) if upsampling else [nn.ConvTranspose2d(2 * c, c, 2, 2)]
            self.add_module(f"down{level}", named(*units(down[level - 1], c, c)))
            self.add_module(f"up{level}", named(*up))
            self.add_module(f"merge{level}", named(*units(2 * c, c, c)))
        self.bottom = named(*units(down[4], down[5], down[5]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for level in range(1, 5):
            skips.append(self.get_submodule(f"down{level}")(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for level in range(4, 0, -1):
            x = torch.cat((skips.pop(), self.get_submodule(f"up{level}")(x)), 1)
            x = self.get_submodule(f"merge{level}")(x)
        return self.head(x)


def lenet():
    """lrcnn's LeNet for images of 28 x 28."""
    return named(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                 nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def small_net(width):
    """lrcnn's SmallNet."""
    blocks = []
    for block, (a, b) in enumerate(((3, width), (width, 2 * width), (2 * width, 4 * width))):
        blocks += [nn.MaxPool2d(2)] * (block > 0) + [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU()]
    return named(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, CLASSES))


def vgg11(width):
    """torchvision's VGG-11 with linear layers of that many outputs in its head."""
    net = models.vgg11(num_classes=CLASSES, dropout=0.0)
    for place, (a, b) in {0: (512 * 49, width), 3: (width, width), 6: (width, CLASSES)}.items():
        net.classifier[place] = nn.Linear(a, b)
    return named(*net.features, net.avgpool, nn.Flatten(), classifier=net.classifier)


def state_of(model):
    return [(n, t) for n, t in list(model.named_parameters()) + list(model.named_buffers()) if not n.endswith("num_batches_tracked")]


def begin(model):
    model.double().train()
    for name, tensor in state_of(model):
        fill(name, tensor)


def line(key, name, tensor):
    flat = tensor.detach().reshape(-1)
    at = draws(2, min(VALUES, flat.numel())) % flat.numel()
    return f"{key} {name} {flat.numel()} {flat.norm().item()!r} " + " ".join(repr(v) for v in flat[at].tolist())


def write(path, title, model, shape, pixels=False, steps=0):
    images = numbers(shape, 1, 2.0).requires_grad_()
    if pixels:
        ignored, weights = MASK
        classes = draws(3, shape[0] * shape[2] * shape[3]).reshape(shape[0], *shape[2:]) % (len(weights) + 1)
        classes[classes == len(weights)] = ignored
        task = f"mask {ignored} {' '.join(map(repr, weights))}"
        loss_of = lambda: F.cross_entropy(model(images), classes, weight=torch.tensor(weights), ignore_index=ignored)
    else:
        task = f"labels {' '.join(map(str, LABELS))}"
        loss_of = lambda: F.cross_entropy(model(images), torch.tensor(LABELS))
    begin(model)
    loss = loss_of()
    loss.backward()
    lines = [f"# {title}, made by make_golden_networks.py with torch {torch.__version__.split('+')[0]}, float64",
             f"input {' '.join(map(str, shape))}", task, f"loss {loss.item()!r}", line("images", "gradient", images.grad)]
    lines += [line("gradient", n, p.grad) for n, p in model.named_parameters()]
    learned = dict(model.named_parameters())
    lines += [line("running", n, b) for n, b in state_of(model) if n not in learned]
    if steps:
        begin(model)
        lr, momentum, decay = TRAINING
        lines.append(f"training {lr!r} {momentum!r} {decay!r}")
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=decay)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            lines.append(f"step {loss.item()!r}")
            lines += [line("after", n, t) for n, t in state_of(model)]
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")
    print(path, os.path.getsize(path), "bytes,", [x for x in lines if x.startswith(("loss", "step "))])


def networks():
    of = {"num_classes": CLASSES}
    small = (2, 3, 64, 64)
    yield "lenet", "LeNet", lenet, (2, 1, 28, 28), {}
    yield "small_net", "SmallNet, width 8", lambda: small_net(8), (2, 3, 32, 32), {}
    yield "vgg11_head", "VGG-11 with its own head, 64 wide", lambda: vgg11(64), (2, 3, 64, 32), {}
    yield "resnet18", "ResNet-18", lambda: models.resnet18(**of), small, {"steps": 3}
    yield "resnet34", "ResNet-34", lambda: models.resnet34(**of), small, {}
    yield "resnet50", "ResNet-50", lambda: models.resnet50(**of), small, {}
    yield "resnet101", "ResNet-101", lambda: models.resnet101(**of), (2, 3, 48, 48), {}
    yield "mobilenet_v2", "MobileNetV2", lambda: models.mobilenet_v2(dropout=0.0, **of), small, {}
    yield "squeezenet11", "SqueezeNet 1.1", lambda: models.squeezenet1_1(dropout=0.0, **of), (2, 3, 66, 50), {}
    yield "densenet121", "DenseNet-121", lambda: models.densenet121(**of), small, {}
    yield "convnext_tiny", "ConvNeXt-Tiny", lambda: models.convnext_tiny(stochastic_depth_prob=0.0, **of), (2, 3, 64, 32), {}
    yield "unet", "U-Net, width 8", lambda: UNet(3, 8), (2, 3, 48, 32), {"pixels": True}
    yield "unet_bilinear", "U-Net, width 8, with bilinear upsampling", lambda: UNet(3, 8, mode="bilinear"), (2, 3, 48, 32), {"pixels": True}


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    torch.set_num_threads(2)
    for file, *what, options in networks():
        if file in (sys.argv[2:] or [file]):
            title, make, shape = what
            write(os.path.join(folder, file + ".txt"), title, make(), shape, **options)
