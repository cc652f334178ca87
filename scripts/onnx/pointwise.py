"""Operators on each element: activations, norms, dropout, sums, products, concatenations."""
import numpy as np

from activation_patterns import is_hardsigmoid
from builder import operator
from faults import Refused
from network import LAST, MAP, VECTOR, ratio


def activation(name, text, kind):
    @operator(name)
    def handler(b, node):
        return b.add(node, kind, text, b.value(node))
    return handler


activation("Relu", "ReLU", "relu")
activation("Sigmoid", "Sigmoid", "sigmoid")
activation("Silu", "SiLU", "silu")
activation("HardSwish", "Hardswish", "hardswish")


@operator("HardSigmoid")
def hardsigmoid(b, node):
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    if not is_hardsigmoid(alpha, beta):
        raise Refused(f"it is max(0, min(1, {alpha:g} x + {beta:g})); lrcnn's Hardsigmoid is PyTorch's, with 1/6 and 0.5")
    return b.add(node, "hardsigmoid", "Hardsigmoid", b.value(node))


@operator("Gelu")
def gelu(b, node):
    if node.get("approximate", "none") != "none":
        raise Refused(f"it approximates GELU ({node['approximate']}); lrcnn's is the exact one, with erf")
    return b.add(node, "gelu", "GELU", b.value(node))


@operator("Swish")
def swish(b, node):
    if node.get("alpha", 1.0) != 1:
        raise Refused(f"its alpha is {node['alpha']:g}; lrcnn's SiLU has 1")
    return b.add(node, "silu", "SiLU", b.value(node))


@operator("LeakyRelu")
def leaky_relu(b, node):
    slope = node.get("alpha", 0.01)
    text = "LeakyReLU<>" if ratio(slope) == "std::ratio<1, 100>" else f"LeakyReLU<{ratio(slope)}>"
    return b.add(node, "leaky_relu", text, b.value(node))


@operator("Clip")
def clip(b, node):
    low, high = (b.constant(node, place, what) if len(node.inputs) > place and node.inputs[place] else node.get(what)
                 for place, what in ((1, "min"), (2, "max")))
    low, high = (None if v is None else float(np.asarray(v).reshape(())) for v in (low, high))
    if low == 0 and high == 6:
        return b.add(node, "relu6", "ReLU6", b.value(node))
    if low == 0 and (high is None or high >= 3e38):
        return b.add(node, "relu", "ReLU", b.value(node))
    raise Refused(f"it keeps numbers between {low} and {high}; lrcnn has ReLU6, between 0 and 6, and ReLU, from 0 on")


@operator("Max")
def maximum(b, node):
    found = constant_operand(b, node) if len(node.inputs) == 2 else None
    if found is None or np.any(found[1] != 0) or found[1].size != 1:
        raise Refused("it takes the larger of two tensors; lrcnn has ReLU, the larger of a number and 0")
    return b.add(node, "relu", "ReLU", found[0])


@operator("Identity")
def identity(b, node):
    return b.value(node)


@operator("Cast")
def cast(b, node):
    if node["to"] not in (1, 10, 11, 16):   # FLOAT, FLOAT16, DOUBLE, BFLOAT16
        raise Refused("it makes whole numbers of its input; lrcnn's layers compute with one type of floating numbers")
    return b.value(node)


@operator("Dropout")
def dropout(b, node):
    probability = b.constant(node, 1, "probability") if len(node.inputs) > 1 and node.inputs[1] else node.get("ratio", 0.5)
    probability = float(np.asarray(probability).reshape(()))
    text = "" if probability == 0.5 else ratio(probability)
    return b.value(node) if probability == 0 else b.add(node, "dropout", f"Dropout<{text}>", b.value(node))


def norm_parameters(b, node, channels, names=("weight", "bias")):
    """Constants of a norm, one number for each channel."""
    parameters = []
    for place, name in enumerate(names, 1):
        array = b.constant(node, place, name)
        if array is not None:
            if channels is not None and array.size != channels:
                raise Refused(f"its {name} has {array.size} elements; lrcnn's norms have one for each channel, {channels}")
            parameters.append((name, array.reshape(-1)))
    return parameters


def norm_text(plain, full, epsilon, parameters, first=(), momentum=None):
    """The shortest descriptor of a norm: `plain` for the usual options, else `full` with those that are needed."""
    arguments = ["NormOptions{}" if parameters else "NormOptions{.affine = false}"]
    if not epsilon >= 1e-18:
        raise Refused(f"its epsilon is {epsilon:g}; lrcnn's norms have one of at least 1e-18")
    if ratio(epsilon) != "std::ratio<1, 100000>" or momentum:
        arguments.append(ratio(epsilon))
    if momentum:
        arguments.append(momentum)
    if arguments == ["NormOptions{}"]:
        return plain
    return f"{full}<{', '.join([*first, *arguments])}>"


@operator("BatchNormalization")
def batch_norm(b, node):
    x = b.value(node)
    if x.layout == LAST:
        raise Refused("its input has channels last, so that it normalises columns; lrcnn's BatchNorm normalises channels")
    parameters = norm_parameters(b, node, x.channels, ("weight", "bias", "running_mean", "running_var"))
    momentum = ratio(node.get("momentum", 0.9), complement=True)
    momentum = "" if momentum == "std::ratio<1, 10>" else momentum
    text = norm_text("BatchNorm", "BatchNormWith", node.get("epsilon", 1e-5), parameters, momentum=momentum)
    return b.add(node, "batch_norm", text, x, parameters)


@operator("InstanceNormalization")
def instance_norm(b, node):
    x = b.value(node, 0, MAP)
    parameters = norm_parameters(b, node, x.channels)
    text = norm_text("InstanceNorm", "InstanceNormWith", node.get("epsilon", 1e-5), parameters)
    return b.add(node, "instance_norm", text, x, parameters)


@operator("GroupNormalization")
def group_norm(b, node):
    x, groups = b.value(node, 0, MAP), node["num_groups"]
    if groups < 1:
        raise Refused(f"it has {groups} groups; lrcnn's GroupNorm has at least one")
    parameters = norm_parameters(b, node, None)
    if parameters and b.graph.opset < 21 and not node.stands_for:   # until then the operator had a weight for each group
        if x.channels is None:
            raise Refused("its weights are of groups, and the channels are not known")
        parameters = [(name, np.repeat(array, x.channels // groups)) for name, array in parameters]
    if parameters and x.channels is not None and parameters[0][1].size != x.channels:
        raise Refused(f"its weight has {parameters[0][1].size} elements; lrcnn's norms have one for each channel, {x.channels}")
    text = norm_text(f"GroupNorm<{groups}>", "GroupNorm", node.get("epsilon", 1e-5), parameters, first=[str(groups)])
    return b.add(node, "group_norm", text, x, parameters)


@operator("LayerNormalization", "ChannelsFirstLayerNormalization")
def layer_norm(b, node):
    x = b.value(node)
    axis = node.get("axis", -1) % x.rank()
    fits = x.layout == MAP if node.op.startswith("Channels") else axis == {LAST: 3, VECTOR: 1}.get(x.layout)
    if not fits:
        raise Refused(f"it normalises over axes from {node.get('axis', -1)} of a tensor that is {x.layout}; lrcnn's LayerNorm normalises over the "
                      "channels of a pixel")
    parameters = norm_parameters(b, node, x.channels)
    if len(parameters) == 1:
        parameters.append(("bias", np.zeros_like(parameters[0][1])))
    text = norm_text("LayerNorm", "LayerNormWith", node.get("epsilon", 1e-5), parameters)
    return b.add(node, "layer_norm", text, x, parameters)


def per_channel(array, x):
    """A constant that has a number for each channel of x, or one for all, as a vector; otherwise None."""
    axis = {MAP: 3, LAST: 1, VECTOR: 1}[x.layout]   # from the end
    if x.channels is None:
        return None
    if array.size == 1 and array.ndim <= x.rank():
        return np.full(x.channels, array.reshape(()))
    if array.size != x.channels:
        return None
    shape = (1,) * max(0, axis - array.ndim) + array.shape
    return array.reshape(-1) if shape[len(shape) - axis] == x.channels else None


def constant_operand(b, node):
    """Of a node with a constant: what is computed, and the constant; None if both are computed."""
    places = [place for place in (0, 1) if b.is_constant(node, place)]
    if not places:
        return None
    return b.value(node, 1 - places[0]), b.graph.constants[node.inputs[places[0]]]


def add_constant(b, node, x, array):
    """A number for each channel becomes part of the bias of the layer before."""
    bias = per_channel(array, x)
    layer = b.layers[x.layer] if x.layer >= 0 else None
    kinds = ("conv", "conv_transpose", "linear", "batch_norm", "group_norm", "instance_norm", "layer_norm")
    if bias is None or layer is None or not b.has_one_reader(x) or layer.kind not in kinds or not layer.parameters:
        raise Refused("it adds a constant; lrcnn has biases, one for each channel, of convolutions, linear layers and norms")
    parameters = dict(layer.parameters)
    if "bias" not in parameters:
        layer.text = without_no_bias(layer.text)
    parameters["bias"] = parameters["bias"] + bias if "bias" in parameters else bias
    order = ("weight", "bias", "running_mean", "running_var")
    layer.parameters = sorted(parameters.items(), key=lambda item: order.index(item[0]))
    return x


def without_no_bias(text):
    """The descriptor with a bias of one without."""
    return text.replace(", ConvOptions{.bias = false}", "").replace(", .bias = false}", "}").replace(", false>", ">")


@operator("Add", "Sum")
def add(b, node):
    found = constant_operand(b, node) if len(node.inputs) == 2 else None
    if found:
        return add_constant(b, node, *found)
    values = [b.value(node, place) for place in range(len(node.inputs))]
    first = values[0]
    for other in values[1:]:
        for a, c in ((first.channels, other.channels), (first.height, other.height), (first.width, other.width)):
            if a is not None and c is not None and a != c:
                raise Refused(f"it adds {other.text()} to {first.text()}; lrcnn's Sum adds tensors of one shape")
        if other.single() != first.single():   # one has rows and columns that are not fixed
            raise Refused(f"it adds {other.text()} to {first.text()}; lrcnn's Sum adds tensors of one shape")
        if other.layout != first.layout:
            raise Refused(f"it adds a tensor that is {other.layout} to one that is {first.layout}")
    return first if len(values) == 1 else b.join(node, "Sum", values, first.channels)


def constant_second(b, node, otherwise):
    """Of a node with a constant behind what is computed: both. Refuses others for the reason `otherwise`."""
    if len(node.inputs) != 2 or b.is_constant(node, 0) or not b.is_constant(node, 1):
        raise Refused(otherwise)
    return b.value(node), b.graph.constants[node.inputs[1]]


@operator("Sub")
def sub(b, node):
    x, array = constant_second(b, node, "it takes one tensor from another, or from a constant; lrcnn's Sum adds")
    return add_constant(b, node, x, -array)


def scale_constant(b, node, x, array):
    """Multiplied by a number for each channel."""
    factors = per_channel(array, x)
    if factors is None:
        raise Refused("it multiplies by a constant that has not one number for each channel; lrcnn's LayerScale has")
    return b.add(node, "layer_scale", "LayerScale<>", x, [("layer_scale", factors)])


@operator("Div")
def div(b, node):
    x, divisor = constant_second(b, node, "it divides by what is computed; lrcnn's Scale multiplies, and LayerScale by constants")
    with np.errstate(all="ignore"):
        factors = (1 / divisor.astype(np.float64)).astype(np.float32)
    if not np.all(np.isfinite(factors)):
        raise Refused("it divides by a number whose reciprocal is none in float32; lrcnn's LayerScale multiplies by numbers that are finite")
    return scale_constant(b, node, x, factors)


@operator("Mul")
def mul(b, node):
    found = constant_operand(b, node)
    if found:
        return scale_constant(b, node, *found)
    a, c = b.value(node, 0), b.value(node, 1)
    x, factors = (c, a) if a.single() and not c.single() else (a, c)
    if not factors.single() or factors.layout != x.layout or None not in (x.channels, factors.channels) and x.channels != factors.channels:
        raise Refused(f"it multiplies {a.text()} by {c.text()}; lrcnn's Scale multiplies a map by a factor for each channel, [N,C,1,1]")
    return b.join(node, "Scale", [x, factors], x.channels)


@operator("Expand")
def expand(b, node):
    x = b.value(node, 0, MAP)
    reader = b.only_reader(node)
    if not x.single() or reader is None or reader.op != "Mul":
        raise Refused("it repeats rows or columns; lrcnn does so for the factors of a product alone")
    return x


@operator("Concat")
def concat(b, node):
    values = [b.value(node, place) for place in range(len(node.inputs))]
    first = values[0]
    axis = node["axis"] % first.rank()
    if axis != {MAP: 1, LAST: 3, VECTOR: 1}[first.layout] or any(v.layout != first.layout for v in values):
        raise Refused(f"it joins tensors along axis {node['axis']}; lrcnn's Concat joins channels")
    for other in values[1:]:
        if any(None not in pair and pair[0] != pair[1] for pair in ((first.height, other.height), (first.width, other.width))):
            raise Refused(f"it joins {other.text()} to {first.text()}; the branches of a Concat have the same rows and columns")
    return first if len(values) == 1 else joined(b, node, values)


def joined(b, node, values):
    """A Concat; of neighbours that have come through a layer of their own, Concats of their own."""
    values = [run[0] if len(run) == 1 else joined(b, node, run) for run in b.branches(values)]
    channels = None if any(v.channels is None for v in values) else sum(v.channels for v in values)
    return b.join(node, "Concat", values, channels)
