"""Activations that are several nodes: see patterns.py."""
import math

import numpy as np

from model import is_number


def silu(m, node):
    """x * sigmoid(x)"""
    if node.op != "Mul":
        return None
    for x, gate in (node.inputs, node.inputs[::-1]):
        sigmoid = m.made_by(gate, "Sigmoid")
        if sigmoid and sigmoid.inputs[0] == x:
            return [sigmoid, node], "Silu", [x], {}
    return None


def clipped(m, name):
    """min(max(x + 3, 0), 6): x and the nodes"""
    clip = m.made_by(name, "Clip")
    if not clip or not (is_number(clip_limit(m, clip, 1, "min"), 0) and is_number(clip_limit(m, clip, 2, "max"), 6)):
        return None
    add = m.made_by(clip.inputs[0], "Add")
    x = m.by_number(add, "Add", 3)
    return x and (x, [add, clip])


def clip_limit(m, node, place, attribute):
    if len(node.inputs) > place and node.inputs[place]:
        return m.constant(node.inputs[place])
    value = node.get(attribute)
    return None if value is None else np.asarray(value)


def sixth(m, name):
    """min(max(x + 3, 0), 6) / 6, in one of its forms: x and the nodes"""
    hard = m.made_by(name, "HardSigmoid")
    if hard and is_hardsigmoid(hard.get("alpha", 0.2), hard.get("beta", 0.5)):
        return hard.inputs[0], [hard]
    node = m.producers.get(name)
    inner = m.by_number(node, "Div", 6) or m.by_number(node, "Mul", 1 / 6)
    found = clipped(m, inner) if inner else None
    return found and (found[0], [*found[1], node])


def is_hardsigmoid(alpha, beta):
    """Whether max(0, min(1, alpha x + beta)) is PyTorch's."""
    return math.isclose(alpha, 1 / 6, rel_tol=1e-6) and math.isclose(beta, 0.5)


def hardsigmoid(m, node):
    """min(max(x + 3, 0), 6) / 6"""
    found = sixth(m, node.outputs[0]) if node.op in ("Div", "Mul") else None
    return found and (found[1], "HardSigmoid", [found[0]], {"alpha": 1 / 6, "beta": 0.5})


def hardswish(m, node):
    """x * min(max(x + 3, 0), 6) / 6"""
    inner = m.by_number(node, "Div", 6) or m.by_number(node, "Mul", 1 / 6)
    product = m.made_by(inner, "Mul") if inner else None
    if product:
        for x, other in (product.inputs, product.inputs[::-1]):
            found = clipped(m, other)
            if found and found[0] == x:
                return [*found[1], product, node], "HardSwish", [x], {}
    if node.op != "Mul":
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        found = sixth(m, other)
        if found and found[0] == x:
            return [*found[1], node], "HardSwish", [x], {}
    return None


def gelu(m, node):
    """x * (1 + erf(x / sqrt(2))) / 2, the factors in any order"""
    if node.op != "Mul":
        return None
    factors, products = [], []

    def collect(name):
        product = m.made_by(name, "Mul")
        inner = product is node or (product and len(m.readers.get(name, [])) == 1 and not m.made_by(name, "Erf"))
        if inner and len(products) < 2:
            products.append(product)
            for factor in product.inputs:
                collect(factor)
        else:
            factors.append(name)

    collect(node.outputs[0])
    if len(factors) != 3 or sum(is_number(m.constant(f), 0.5) for f in factors) != 1:
        return None
    rest = [f for f in factors if not is_number(m.constant(f), 0.5)]
    for x, other in (rest, rest[::-1]):
        add = m.made_by(other, "Add")
        erf = m.made_by(m.by_number(add, "Add", 1) or "", "Erf") if add else None
        scaled = m.producers.get(erf.inputs[0]) if erf else None
        if scaled is None:
            continue
        if x in (m.by_number(scaled, "Div", math.sqrt(2)), m.by_number(scaled, "Mul", math.sqrt(0.5))):
            return [scaled, erf, add, *products], "Gelu", [x], {}
    return None
