"""Operators on vectors, and those that make vectors of maps."""
import dataclasses

import numpy as np

from builder import operator
from faults import Refused
from fold import ints
from network import LAST, MAP, VECTOR


def elements(value):
    return None if None in (value.channels, value.height, value.width) else value.channels * value.height * value.width


def flattened(b, node, x):
    """A map as a vector; one of a single pixel already is one."""
    if x.layout == LAST and not x.single():
        raise Refused("it flattens a map whose channels are last; lrcnn's Flatten has the order of [N,C,H,W]")
    if x.single() or x.layout == VECTOR:
        return dataclasses.replace(x, layout=VECTOR)
    count = elements(x)
    made = b.add(node, "flatten", "Flatten", x)
    return dataclasses.replace(made, channels=count, height=1, width=1, layout=VECTOR)


@operator("Flatten")
def flatten(b, node):
    x = b.value(node)
    if node.get("axis", 1) % x.rank() != 1:
        raise Refused(f"its axis is {node.get('axis', 1)}; lrcnn's Flatten keeps images apart, axis 1")
    return flattened(b, node, x)


@operator("Reshape")
def reshape(b, node):
    x, target = b.value(node), b.target(node)
    if target is None:
        raise Refused("its extents are computed; lrcnn's Flatten makes a vector of each image")
    images = b.graph.input_shape[0]
    keeps_images = bool(target) and target[0] in (0, None, -1, images if images else 1)
    if keeps_images and len(target) == 2 and (target[1] in (-1, elements(x)) or target[1] is None or elements(x) is None):
        return flattened(b, node, x)
    same = {MAP: (x.channels, x.height, x.width), LAST: (x.height, x.width, x.channels), VECTOR: (x.channels, 1, 1)}[x.layout]
    if keeps_images and len(target) == 4 and (x.single() or x.layout != VECTOR):
        given = target[1:]
        kept = all(g in (s, -1) or (g == 0 and s is not None) for g, s in zip(given, same)) and given.count(-1) < 2
        if kept:
            return dataclasses.replace(x, layout=MAP if x.layout == VECTOR else x.layout)
    raise Refused(f"it makes {x.text()} ({x.layout}) a tensor of extents {['?' if t is None else t for t in target]}; lrcnn has Flatten, which makes "
                  "a vector of each image")


@operator("Squeeze", "Unsqueeze")
def squeeze(b, node):
    x = b.value(node)
    axes = ints(b.graph, node, 1, "axes")
    wanted, result = ([2, 3], VECTOR) if node.op == "Squeeze" else ([2, 3], MAP)
    if x.single() and axes is not None and sorted(a % 4 for a in axes) == wanted and (x.layout == VECTOR) == (node.op == "Unsqueeze"):
        return dataclasses.replace(x, layout=result)
    raise Refused(f"it takes axes {axes} of {x.text()} ({x.layout}); only those of a single row and column may go or come, axes 2 and 3 at once")


def linear_layer(b, node, x, weight, bias):
    """weight [K,F]. On a vector a Linear, on a map with channels last a 1x1 convolution."""
    if x.layout == MAP:
        raise Refused("it multiplies the rows of a map by a matrix; lrcnn's Linear reads vectors, its 1x1 convolution channels")
    if x.channels is not None and x.channels != weight.shape[1]:
        raise Refused(f"its input {x.text()} has {x.channels} features, its matrix is of {weight.shape[1]}")
    outputs = weight.shape[0]
    parameters = [("weight", weight)] + ([("bias", bias.reshape(-1))] if bias is not None else [])
    if bias is not None and bias.size != outputs:
        raise Refused(f"its bias has {bias.size} elements; lrcnn's Linear has one for each output, {outputs}")
    if x.layout == VECTOR:
        text = f"Linear<{outputs}>" if bias is not None else f"Linear<{outputs}, false>"
        return b.add(node, "linear", text, x, parameters, channels=outputs)
    parameters[0] = ("weight", weight.reshape(*weight.shape, 1, 1))
    options = "" if bias is not None else ", ConvOptions{.bias = false}"
    return b.add(node, "conv", f"Conv<{outputs}, Window{{.kernel = 1}}{options}>", x, parameters, channels=outputs)


@operator("Gemm")
def gemm(b, node):
    x, matrix, bias = b.value(node), b.constant(node, 1, "matrix"), b.constant(node, 2, "bias")
    if node.get("transA", 0) or x.layout != VECTOR:
        raise Refused("its first matrix is transposed, or no batch of vectors; lrcnn's Linear reads vectors")
    if matrix is None or matrix.ndim != 2:
        raise Refused("it has no constant matrix; lrcnn's Linear has one")
    weight = matrix if node.get("transB", 0) else np.ascontiguousarray(matrix.T)
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    weight = weight if alpha == 1 else (weight * weight.dtype.type(alpha))
    bias = bias if bias is None or beta == 1 else bias * bias.dtype.type(beta)
    if bias is not None and bias.size == 1 and weight.shape[0] != 1:
        bias = np.full(weight.shape[0], bias.reshape(())[()], dtype=bias.dtype)
    return linear_layer(b, node, x, weight, bias)


@operator("MatMul")
def matmul(b, node):
    x, matrix, bias = b.value(node), b.constant(node, 1, "matrix"), b.constant(node, 2, "bias")
    if matrix.ndim != 2:
        raise Refused(f"its matrix has {matrix.ndim} extents; lrcnn's Linear has 2")
    return linear_layer(b, node, x, np.ascontiguousarray(matrix.T), bias)
