"""Groups of nodes that together are one operator become one node.

Exporters write SiLU, Hardswish, GELU, LayerNorm, GroupNorm, channel shuffle and a matrix product with a bias as several nodes each. The
nodes that take their place are called after ONNX's own operators where there is one (Gelu, HardSwish, LayerNormalization, ...), otherwise
Silu, ChannelShuffle and ChannelsFirstLayerNormalization. A group is replaced only if nothing outside it reads what is inside.
"""
import math

import numpy as np

from activation_patterns import gelu, hardsigmoid, hardswish, silu
from faults import DAMAGED
from fold import ints
from model import Node, is_number


class Matcher:
    """The graph as patterns ask for it. It is of one moment: replacing anything makes a new one necessary."""

    def __init__(self, graph, partial):
        self.graph, self.partial = graph, partial
        self.producers, self.readers = graph.producers(), graph.readers()

    def constant(self, name):
        return self.graph.constants.get(name)

    def extents(self, name):
        """Those that ONNX infers for a tensor; None if it knows nothing of it. Extents that are not fixed are no int."""
        return self.graph.input_shape if name == self.graph.input else self.graph.shapes.get(name)

    def made_by(self, name, *ops):
        """The node that makes a tensor, if it is one of these."""
        node = self.producers.get(name)
        return node if node is not None and node.op in ops and not node.domain else None

    def only_reader(self, node, *ops):
        """The one node that reads what a node makes, if there is one and it is one of these."""
        readers = self.readers.get(node.outputs[0], [])
        reader = readers[0] if len(readers) == 1 else None
        return reader if reader is not None and reader.op in ops and not reader.domain else None

    def operands(self, node):
        """Of a node with two inputs: what is computed and what is constant; None if it is not one of each."""
        if len(node.inputs) != 2:
            return None
        a, b = node.inputs
        if self.constant(b) is not None and self.constant(a) is None:
            return a, self.constant(b)
        if self.constant(a) is not None and self.constant(b) is None and node.op in ("Add", "Mul"):
            return b, self.constant(a)
        return None

    def by_number(self, node, op, value):
        """What a node of that kind adds a number to, multiplies or divides by it."""
        if node is None or node.op != op:
            return None
        found = self.operands(node)
        return found[0] if found and is_number(found[1], value) else None

    def closed(self, nodes, last):
        """Whether nothing outside a group reads what is inside."""
        inside = set(map(id, nodes))
        return all(reader is not None and id(reader) in inside
                   for node in nodes if node is not last for name in node.outputs for reader in self.readers.get(name, []))


def normalised(m, node):
    """(x - mean) / sqrt(variance + epsilon) over one axis: x, axis, epsilon and the nodes"""
    if node.op != "Div":
        return None
    centred, root = m.made_by(node.inputs[0], "Sub"), m.made_by(node.inputs[1], "Sqrt")
    add = m.made_by(root.inputs[0], "Add") if root else None
    found = m.operands(add) if centred and add else None
    if not found or found[1].size != 1:
        return None
    variance = m.made_by(found[0], "ReduceMean")
    mean = m.made_by(centred.inputs[1], "ReduceMean")
    if not variance or not mean or mean.inputs[0] != centred.inputs[0]:
        return None
    square = m.made_by(variance.inputs[0], "Pow", "Mul")
    if not square or square.inputs[0] != centred.outputs[0]:
        return None
    if square.op == "Pow" and not is_number(m.constant(square.inputs[1]), 2) or square.op == "Mul" and square.inputs[1] != square.inputs[0]:
        return None
    axes = [ints(m.graph, reduce, 1, "axes") for reduce in (mean, variance)]
    if axes[0] != axes[1] or axes[0] is None or len(axes[0]) != 1 or not all(r.get("keepdims", 1) for r in (mean, variance)):
        return None
    return centred.inputs[0], axes[0][0], float(found[1].reshape(())), [mean, centred, square, variance, add, root, node]


def is_along(array, axis):
    """Whether a constant has a number for each element of that axis and none for others: of the channels of a map, or of the last axis."""
    return array.ndim in (3, 4) and array.shape[-2:] == (1, 1) and array.shape[:-3] in ((), (1,)) if axis == 1 else array.ndim == 1


def with_weights(m, nodes, names, axis):
    """A group with a product and a sum of constants along an axis behind it: the nodes, and the names of the constants."""
    last = nodes[-1]
    product = m.only_reader(last, "Mul")
    found = m.operands(product) if product else None
    add = m.only_reader(product, "Add") if found else None
    if not add or not m.operands(add):
        return None
    constants = [o.inputs[0] if m.constant(o.inputs[0]) is not None else o.inputs[1] for o in (product, add)]
    if not all(is_along(m.constant(name), axis) for name in constants):
        return None
    names += constants
    return [*nodes, product, add]


def layer_norm(m, node):
    """LayerNorm over the last axis, or over the channels of a map"""
    found = normalised(m, node)
    if not found:
        return None
    x, axis, epsilon, nodes = found
    names = [x]
    nodes = with_weights(m, nodes, names, axis) or nodes
    if axis == 1:
        return nodes, "ChannelsFirstLayerNormalization", names, {"epsilon": epsilon}
    return nodes, "LayerNormalization", names, {"axis": axis, "epsilon": epsilon}


def makes(m, reshape, extents):
    """Whether a Reshape makes these extents, as far as they are known; the first one is of images, which a 0 keeps."""
    target = reshape_target(m.graph, m.partial, reshape)
    if target is None or len(target) != len(extents) or target.count(-1) > 1 or 0 in target[1:]:
        return False
    return all(t in (-1, None) or (t == 0 and i == 0) or not isinstance(extent, int) or t == extent
               for i, (t, extent) in enumerate(zip(target, extents)))


def group_norm(m, node):
    """Reshape to groups, InstanceNormalization without weights, reshape back, weights"""
    if node.op != "InstanceNormalization":
        return None
    before, after = m.made_by(node.inputs[0], "Reshape"), m.only_reader(node, "Reshape")
    scale, bias = m.constant(node.inputs[1]), m.constant(node.inputs[2])
    if not before or not after or scale is None or bias is None or not (np.all(scale == 1) and np.all(bias == 0)):
        return None
    names, extents, groups = [before.inputs[0]], m.extents(before.inputs[0]), int(scale.size)
    shape = m.made_by(after.inputs[1], "Shape")
    if extents:
        known = all(isinstance(extent, int) for extent in extents[1:])
        grouped = [extents[0], groups, math.prod(extents[1:]) // groups if known else None]
        restores = makes(m, before, grouped) and makes(m, after, extents)
    else:
        restores = makes(m, before, [None, groups, None]) and shape is not None and shape.inputs[0] == names[0]
    if not restores:
        return None
    group = [before, node, after]
    nodes = with_weights(m, group, names, 1) or group
    return nodes, "GroupNormalization", names, {"num_groups": groups, "epsilon": node.get("epsilon", 1e-5)}


def mean_of_means(m, node):
    """The mean over rows of the mean over columns, or the other way round"""
    inner = m.made_by(node.inputs[0], "ReduceMean") if node.op == "ReduceMean" else None
    extents = m.extents(inner.inputs[0]) if inner else None
    axes = [ints(m.graph, reduce, 1, "axes") for reduce in (inner, node)] if extents else None
    if not axes or any(a is None or len(a) != 1 for a in axes) or inner.get("keepdims", 1) != node.get("keepdims", 1):
        return None
    first = axes[0][0] % len(extents)
    kept = [axis for axis in range(len(extents)) if inner.get("keepdims", 1) or axis != first]
    both = sorted({first, kept[axes[1][0] % len(kept)]})
    if len(both) < 2:
        return None
    return [inner, node], "ReduceMean", [inner.inputs[0]], {"axes": both, "keepdims": node.get("keepdims", 1)}


def extents_in_turn(m, node):
    """Two extents of one that come or go one after the other, as f[:, :, None, None] is written"""
    inner = m.made_by(node.inputs[0], node.op) if node.op in ("Squeeze", "Unsqueeze") else None
    extents = m.extents(inner.inputs[0]) if inner else None
    axes = [ints(m.graph, each, 1, "axes") for each in (inner, node)] if extents else None
    if not axes or any(a is None or len(a) != 1 for a in axes):
        return None
    [first], [second], rank = axes[0], axes[1], len(extents)
    if node.op == "Squeeze":
        first %= rank
        second = [axis for axis in range(rank) if axis != first][second % (rank - 1)]
    else:
        first, second = first % (rank + 1), second % (rank + 2)
        first += first >= second
    return [inner, node], node.op, [inner.inputs[0]], {"axes": sorted([first, second])}


def channel_shuffle(m, node):
    """[N,C,H,W] as [N,g,C/g,H,W], the two transposed, and back"""
    if node.op != "Transpose" or node.get("perm") != [0, 2, 1, 3, 4]:
        return None
    before, after = m.made_by(node.inputs[0], "Reshape"), m.only_reader(node, "Reshape")
    target = reshape_target(m.graph, m.partial, before) if before else None
    extents = m.extents(before.inputs[0]) if before else None
    if not after or not target or len(target) != 5 or not extents or len(extents) != 4:
        return None
    [images, channels, *rest], groups = extents, target[1]
    if not isinstance(channels, int) or not isinstance(groups, int) or groups < 1 or channels % groups != 0:
        return None
    if not makes(m, before, [images, groups, channels // groups, *rest]) or not makes(m, after, extents):
        return None
    return [before, node, after], "ChannelShuffle", [before.inputs[0]], {"groups": groups}


def reshape_target(graph, partial, node):
    """The extents that a Reshape is given; None for those that are not known."""
    name = node.inputs[1]
    if name in graph.constants:
        return [int(v) for v in graph.constants[name].reshape(-1)]
    return [None if v is None else int(v) for v in partial[name].values.reshape(-1)] if name in partial else None


def matrix_product(m, node):
    """MatMul with a constant, and a bias behind it"""
    if node.op != "MatMul" or m.constant(node.inputs[1]) is None:
        return None
    add = m.only_reader(node, "Add")
    found = m.operands(add) if add else None
    if not found or found[1].size != m.constant(node.inputs[1]).shape[-1] or found[1].shape[-1] != found[1].size:
        return None
    bias = add.inputs[0] if m.constant(add.inputs[0]) is not None else add.inputs[1]
    return [node, add], "MatMul", [*node.inputs, bias], {}


def padded_convolution(m, node):
    """Pad with zeros before a convolution"""
    if node.op != "Conv" or node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", ""):
        return None
    pad = m.made_by(node.inputs[0], "Pad")
    if pad and len(pad.inputs) > 3 and pad.inputs[3]:   # axes of its own
        return None
    pads = ints(m.graph, pad, 1, "pads") if pad and pad.get("mode", "constant") == "constant" else None
    value = m.constant(pad.inputs[2]) if pad and len(pad.inputs) > 2 and pad.inputs[2] else np.zeros(1)
    if pads is None or len(pads) != 8 or value is None or np.any(value) or min(pads) < 0 or any(pads[:2] + pads[4:6]):
        return None
    own = node.get("pads", [0, 0, 0, 0]) if node.get("auto_pad", "NOTSET") != "VALID" else [0, 0, 0, 0]
    sides = [a + c for a, c in zip(own, pads[2:4] + pads[6:8])]
    return [pad, node], "Conv", [pad.inputs[0], *node.inputs[1:]], {**node.attributes, "auto_pad": "NOTSET", "pads": sides}


def gathered_whole(m, node):
    """Reshape to a vector, and a Gather that puts all of it back where it was: what PyTorch's exporter makes of strides"""
    indices = m.constant(node.inputs[1]) if node.op == "Gather" and node.get("axis", 0) == 0 else None
    before = m.made_by(node.inputs[0], "Reshape") if indices is not None else None
    if not before or reshape_target(m.graph, m.partial, before) != [-1]:
        return None
    whole = m.graph.shapes.get(before.inputs[0]) == list(indices.shape) and np.array_equal(indices.reshape(-1), np.arange(indices.size))
    return ([before, node], "Identity", [before.inputs[0]], {}) if whole else None


PATTERNS = [gathered_whole, padded_convolution, mean_of_means, extents_in_turn, silu, hardswish, hardsigmoid, gelu, layer_norm, group_norm, channel_shuffle,
            matrix_product]


def recognise(graph, partial):
    """Replaces all groups of the graph."""
    for pattern in PATTERNS:
        matcher, taken, replaced = Matcher(graph, partial), set(), {}
        for node in graph.nodes:
            try:
                found = pattern(matcher, node)
            except DAMAGED:   # the nodes stay as they are, and the builder says what is wrong with them
                found = None
            if not found:
                continue
            nodes, op, inputs, attributes = found
            last = max(nodes, key=graph.nodes.index)
            if taken.intersection(map(id, nodes)) or not matcher.closed(nodes, last):
                continue
            taken.update(map(id, nodes))
            anchor = node if node in nodes else last
            replaced[id(last)] = Node(op, anchor.name, inputs, list(last.outputs), attributes, scopes=anchor.scopes, stands_for=nodes)
        graph.nodes = [replaced.get(id(node), node) for node in graph.nodes if id(node) not in taken or id(node) in replaced]
    return graph


def nest_concatenations(graph):
    """Concat(a, b, c) where there is a Concat(a, b) becomes Concat(Concat(a, b), c): so networks say it that add channels layer by layer."""
    seen = {}   # inputs of Concats so far, with what they make
    for node in graph.nodes:
        if node.op != "Concat" or node.domain:
            continue
        inputs = tuple(node.inputs)
        for length in range(len(inputs) - 1, 1, -1):
            whole = seen.get((node.get("axis"), inputs[:length]))
            if whole:
                node.inputs = [whole, *inputs[length:]]
                break
        seen.setdefault((node.get("axis"), inputs), node.outputs[0])
