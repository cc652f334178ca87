#!/usr/bin/env python3
"""Writes the golden files beside it. The files in the repository were made with torch 2.15.0 on a CPU, in float64.

    python make_golden.py [FOLDER]

Inputs and parameters are not stored. Element i of a tensor with stream s is a number of 20 bits, the same in C++:
    (Random(20240131, s).bits(i) >> 44) - 2^19 + 1/2, over 2^19, times the tensor's scale
Random is Philox4x32-10 as in lrcnn/core/rng.hpp. Scales of operators are powers of two, so float sees the same values.

A file is a list of cases, read by tests/golden/golden.hpp:
    stored SAMPLES ALL                  once: tensors of more than ALL elements are stored as so many samples
    case NAME                           a network with one input
    input N C H W STREAM SCALE
    layer KIND KEY VALUES...            in order; pads are top bottom left right
    parameter STREAM SCALE              in the order of lrcnn's parameter list
    label CLASS...                      the loss is softmax cross-entropy; without labels it is the mean over the
                                        images of <y, g>, where g has the stream of the next line
    gradient STREAM SCALE
    tensor NAME COUNT NORM SUM DOT      Euclidean norm, sum, and inner product with the numbers of stream 1, scale 1
    VALUE...                            all elements, or SAMPLES of them: number j is the one at
                                        Random(20240131, 2).bits(j) >> 11, modulo COUNT
"""
import math
import os
import sys

import torch
import torch.nn.functional as F

SEED = 20240131
SAMPLES = 128  # of tensors that have more than ALL elements
ALL = 256
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(True)


def bits(stream, index):
    """64 random bits per element of `index` as (high, low) words of 32. Products wrap, and their low 64 bits count."""
    mask = 0xFFFFFFFF
    c = [index & mask, index >> 32, torch.full_like(index, stream & mask), torch.full_like(index, stream >> 32)]
    key = [SEED & mask, SEED >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) & mask ^ c[1] ^ key[0], b & mask, (a >> 32) & mask ^ c[3] ^ key[1], a & mask]
        key = [key[0] + 0x9E3779B9 & mask, key[1] + 0xBB67AE85 & mask]
    return c[1], c[0]


def numbers(shape, stream, scale=1.0):
    high, _ = bits(stream, torch.arange(math.prod(shape)))
    return (((high >> 12).double() - 2**19 + 0.5) / 2**19 * scale).reshape(shape)


def sample(count):
    """Indices of the stored elements of a tensor of `count`."""
    if count <= ALL:
        return torch.arange(count)
    high, low = bits(2, torch.arange(SAMPLES))
    return (high * 2**21 + (low >> 11)) % count


class Case:
    """Text of one case, and the network that computes it."""

    def __init__(self, name, shape, stream, scale=1.0, levels=0):
        self.stream = stream
        self.x = numbers(shape, stream, scale)
        self.lines = [f"case {name}", f"input {' '.join(map(str, shape))} {stream} {scale!r}"]
        if levels:  # few different values, so that pooling windows have equal largest ones
            self.x = torch.floor(self.x * levels) / levels
            self.lines.append(f"levels {levels}")
        self.x.requires_grad_()
        self.y, self.parameters = self.x, []

    def parameter(self, shape, scale):
        stream = self.stream + 1 + len(self.parameters)
        self.parameters.append(numbers(shape, stream, scale).requires_grad_())
        self.lines.append(f"parameter {stream} {scale!r}")
        return self.parameters[-1]

    def layer(self, kind, **values):
        text = [f"{k} {' '.join(map(str, v)) if isinstance(v, (tuple, list)) else v}" for k, v in values.items()]
        self.lines.append(" ".join(["layer", kind, *text]))

    def conv(self, channels, kernel=(3, 3), stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), groups=1, bias=True,
             scale=0.25, bias_scale=0.5):
        self.layer("conv", channels=channels, kernel=kernel, stride=stride, pad=pad, dilation=dilation, groups=groups,
                   bias=int(bias))
        w = self.parameter((channels, self.y.shape[1] // groups, *kernel), scale)
        b = self.parameter((channels,), bias_scale) if bias else None
        self.y = F.conv2d(self.padded(pad), w, b, stride, 0, dilation, groups)
        return self

    def padded(self, pad, value=0.0):
        top, bottom, left, right = pad
        return F.pad(self.y, (left, right, top, bottom), value=value) if any(pad) else self.y

    def max_pool(self, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0)):
        self.layer("max_pool", kernel=kernel, stride=stride, pad=pad)
        self.y = F.max_pool2d(self.padded(pad, -math.inf), kernel, stride)
        return self

    def avg_pool(self, kernel, stride, pad, count_padding):
        self.layer("avg_pool", kernel=kernel, stride=stride, pad=pad, count_padding=int(count_padding))
        if pad[0] == pad[1] and pad[2] == pad[3]:
            self.y = F.avg_pool2d(self.y, kernel, stride, (pad[0], pad[2]), count_include_pad=count_padding)
        else:  # the framework pads alike on both sides only: sums and numbers of positions separately
            total = F.avg_pool2d(self.padded(pad), kernel, stride, divisor_override=1)
            inside = F.pad(torch.ones_like(self.x[:1, :1]), (pad[2], pad[3], pad[0], pad[1]))
            inside = F.avg_pool2d(inside, kernel, stride, divisor_override=1)
            self.y = total / (math.prod(kernel) if count_padding else inside)
        return self

    def activation(self, kind, slope=0.0):
        self.layer(kind, slope=slope)
        self.y = {"relu": F.relu, "silu": F.silu, "leaky_relu": lambda y: F.leaky_relu(y, slope)}[kind](self.y)
        return self

    def head(self, classes):
        """Global average pool and linear layer."""
        self.layer("global_avg_pool")
        self.layer("linear", channels=classes, bias=1)
        features = self.y.mean((2, 3))
        w = self.parameter((classes, features.shape[1]), math.sqrt(3 / features.shape[1]))
        self.y = F.linear(features, w, self.parameter((classes,), 0.125))
        return self

    def finish(self, labels=None):
        if labels:
            self.lines.append(f"label {' '.join(map(str, labels))}")
            loss = F.cross_entropy(self.y, torch.tensor(labels))
        else:
            stream = self.stream + 1 + len(self.parameters)
            self.lines.append(f"gradient {stream} 1.0")
            loss = (self.y * numbers(self.y.shape, stream)).sum() / self.y.shape[0]
        gradients = torch.autograd.grad(loss, [self.x, *self.parameters])
        self.tensor("loss", loss)
        self.tensor("y", self.y)
        self.tensor("dx", gradients[0])
        for i, g in enumerate(gradients[1:]):
            self.tensor(f"d{i}", g)
        return "\n".join(self.lines)

    def tensor(self, name, value):
        flat = value.detach().reshape(-1)
        dot = (flat * numbers(flat.shape, 1)).sum()
        self.lines.append(f"tensor {name} {flat.numel()} {flat.norm().item()!r} {flat.sum().item()!r} {dot.item()!r}")
        values = [repr(v) for v in flat[sample(flat.numel())].tolist()]
        self.lines += [" ".join(values[i : i + 6]) for i in range(0, len(values), 6)]


def convolutions():
    """Windows that are easy to get wrong, one convolution each."""
    cases = [
        ("even_kernel", (2, 3, 12, 7), dict(channels=4, kernel=(4, 2), pad=(1, 1, 1, 1))),
        ("even_kernel_even_stride", (2, 2, 15, 9), dict(channels=3, kernel=(2, 2), stride=(2, 2))),
        ("stride_beyond_kernel", (2, 3, 17, 8), dict(channels=4, kernel=(2, 1), stride=(5, 3))),
        ("dilation_2", (2, 3, 14, 9), dict(channels=4, dilation=(2, 2), pad=(2, 2, 2, 2))),
        ("dilation_3", (2, 2, 16, 7), dict(channels=3, dilation=(3, 1), pad=(3, 3, 1, 1), bias=False)),
        ("groups_2", (2, 4, 11, 6), dict(channels=6, pad=(1, 1, 1, 1), groups=2)),
        ("depthwise", (2, 3, 13, 6), dict(channels=6, kernel=(5, 3), pad=(2, 2, 1, 1), groups=3)),
        ("asymmetric_padding", (2, 3, 12, 6), dict(channels=4, pad=(2, 0, 0, 1))),
        ("padding_below_only", (1, 2, 10, 5), dict(channels=3, kernel=(3, 2), stride=(2, 1), pad=(0, 3, 1, 0))),
        ("tall_7x1", (2, 3, 12, 5), dict(channels=4, kernel=(7, 1), pad=(3, 3, 0, 0))),
        ("wide_1x5", (2, 3, 9, 8), dict(channels=4, kernel=(1, 5), stride=(1, 2), pad=(0, 0, 2, 2), bias=False)),
        ("stride_remainder", (2, 3, 16, 9), dict(channels=4, stride=(3, 2), kernel=(2, 2))),
        ("pointwise_stride_2", (2, 4, 12, 6), dict(channels=5, kernel=(1, 1), stride=(2, 2))),
        ("everything", (2, 4, 19, 8), dict(channels=6, kernel=(4, 3), stride=(2, 1), pad=(3, 1, 0, 2), dilation=(2, 2),
                                           groups=2)),
    ]
    return [Case(name, shape, 100 + 10 * i).conv(**conv).finish() for i, (name, shape, conv) in enumerate(cases)]


def pointwise_and_pools():
    """Pools with overlap and padding, and activations."""
    cases = [
        ("max_2x2", (2, 3, 11, 7), 0, lambda c: c.max_pool()),
        ("max_overlap_padding", (2, 3, 13, 8), 0, lambda c: c.max_pool((3, 3), (2, 2), (1, 1, 1, 1))),
        ("max_overlap_ties", (2, 3, 12, 9), 2, lambda c: c.max_pool((3, 3), (1, 2), (1, 1, 1, 1))),
        ("max_stride_beyond_kernel", (2, 2, 14, 6), 0, lambda c: c.max_pool((2, 3), (3, 1))),
        ("max_asymmetric_padding", (2, 2, 10, 6), 0, lambda c: c.max_pool((4, 2), (2, 2), (3, 1, 0, 1))),
    ]
    for count, word in ((True, "padding_counts"), (False, "inside_counts")):
        cases += [
            (f"avg_2x2_{word}", (2, 3, 11, 7), 0, lambda c, n=count: c.avg_pool((2, 2), (2, 2), (0, 0, 0, 0), n)),
            (f"avg_overlap_padding_{word}", (2, 3, 12, 8), 0,
             lambda c, n=count: c.avg_pool((3, 4), (2, 1), (1, 1, 2, 2), n)),
            (f"avg_asymmetric_padding_{word}", (2, 2, 10, 6), 0,
             lambda c, n=count: c.avg_pool((3, 3), (1, 2), (2, 0, 0, 1), n)),
        ]
    cases += [
        ("relu", (2, 3, 9, 6), 0, lambda c: c.activation("relu")),
        ("leaky_relu", (2, 3, 9, 6), 0, lambda c: c.activation("leaky_relu", 0.015625)),
        ("leaky_relu_negative_slope", (2, 3, 9, 6), 0, lambda c: c.activation("leaky_relu", -0.25)),
        ("silu", (2, 3, 9, 6), 0, lambda c: c.activation("silu")),
        ("conv_silu_pool", (2, 3, 14, 7), 0,
         lambda c: c.conv(5, pad=(1, 1, 1, 1)).activation("silu").avg_pool((3, 3), (2, 2), (1, 1, 1, 1), False)),
    ]
    return [make(Case(name, shape, 400 + 10 * i, 4.0, levels)).finish()
            for i, (name, shape, levels, make) in enumerate(cases)]


def vgg16():
    """All layers of VGG-16 on a map that leaves a remainder at two of its pools."""
    c = Case("vgg16", (2, 3, 40, 32), 1000, 2.0)
    for block in ([64] * 2, [128] * 2, [256] * 3, [512] * 3, [512] * 3):
        for channels in block:
            scale = math.sqrt(6 / (9 * c.y.shape[1]))
            c.conv(channels, pad=(1, 1, 1, 1), scale=scale, bias_scale=0.125).activation("relu")
        c.max_pool()
    return [c.head(10).finish(labels=[3, 7])]


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, make in (("convolutions", convolutions), ("pools_and_activations", pointwise_and_pools), ("vgg16", vgg16)):
        path = os.path.join(folder, name + ".txt")
        with open(path, "w", encoding="ascii") as out:
            out.write(f"# made by make_golden.py with torch {torch.__version__.split('+')[0]}, float64\n"
                      f"stored {SAMPLES} {ALL}\n" + "\n".join(make()) + "\n")
        print(path, os.path.getsize(path))
