"""Small ONNX models for the tests of scripts/import, made of nodes; weights are drawn from a seed."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(19)


class Model:
    """A model under construction. node() returns the name of the node's output."""

    def __init__(self, shape, opset=17, name="model"):
        self.shape, self.opset, self.name = shape, opset, name
        self.nodes, self.initializers, self.count = [], [], 0

    def constant(self, array, name=None):
        self.count += 1
        name = name or f"c{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, name=None, low=-0.5, high=0.5):
        return self.constant(RNG.uniform(low, high, shape).astype(np.float32), name)

    def ints(self, *values):
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value):
        return self.constant(np.array(value, dtype=np.float32))

    def node(self, op, *inputs, outputs=1, name="", domain="", **attributes):
        self.count += 1
        names = [f"t{self.count}" + ("" if i == 0 else f"_{i}") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=name or f"{op}_{self.count}", domain=domain, **attributes))
        return names[0]

    def conv(self, x, channels, to, kernel=3, name=None, bias=True, groups=1, **attributes):
        """A convolution; kernel: a number or a pair."""
        k = (kernel, kernel) if isinstance(kernel, int) else kernel
        attributes.setdefault("pads", [k[0] // 2, k[1] // 2, k[0] // 2, k[1] // 2])
        if "auto_pad" in attributes:
            del attributes["pads"]
        inputs = [self.weight(to, channels // groups, *k, name=name and name + ".weight")]
        inputs += [self.weight(to, name=name and name + ".bias")] if bias else []
        return self.node("Conv", x, *inputs, group=groups, kernel_shape=list(k), **attributes)

    def norm(self, op, x, channels, name=None, **attributes):
        inputs = [self.weight(channels, name=name and name + ".weight", low=0.5, high=1.5), self.weight(channels, name=name and name + ".bias")]
        if op == "BatchNormalization":
            inputs += [self.weight(channels), self.weight(channels, low=0.5, high=1.5)]
        return self.node(op, x, *inputs, **attributes)

    def finish(self, *outputs, rank=4):
        """The model, checked by ONNX itself."""
        graph = helper.make_graph(self.nodes, self.name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(o, TensorProto.FLOAT, [None] * rank) for o in outputs], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        if all(not n.domain for n in self.nodes):
            onnx.checker.check_model(model)
        return model


def conv_variants():
    """Strides, groups, dilation, padding of each side on its own, auto_pad, a Pad before."""
    m = Model(["n", 4, 13, 11], 11)
    y = m.conv("x", 4, 8, strides=[2, 1], pads=[0, 1, 2, 0])
    y = m.conv(y, 8, 8, (1, 3), groups=4, bias=False, pads=[0, 1, 0, 1])
    y = m.conv(y, 8, 6, dilations=[2, 1], auto_pad="SAME_UPPER")
    y = m.conv(m.node("Pad", y, m.ints(0, 0, 1, 0, 0, 0, 0, 2)), 6, 4, pads=[0, 0, 0, 0])
    return m.finish(m.node("Pad", y, m.ints(0, 0, 1, 2, 0, 0, 0, 0), mode="reflect"))


def same_with_stride():
    m = Model([1, 3, 13, 16])
    y = m.conv("x", 3, 4, strides=[2, 2], auto_pad="SAME_UPPER")
    return m.finish(m.conv(y, 4, 5, 4, strides=[3, 3], auto_pad="SAME_LOWER"))


def pools():
    """Also rounded up, with padding that counts and that does not, of the whole map."""
    m = Model([2, 4, 17, 15])
    y = m.node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = m.node("AveragePool", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    y = m.node("AveragePool", y, kernel_shape=[2, 3], pads=[1, 1, 0, 1])
    y = m.node("MaxPool", m.conv(y, 4, 6), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    return m.finish(m.node("AveragePool", y, kernel_shape=[5, 4]))


def activations(opset=17):
    """Each between convolutions, so that its place shows."""
    m = Model([1, 3, 6, 6], opset)
    y = m.conv("x", 3, 4)
    for make in (lambda y: m.node("Relu", y), lambda y: m.node("LeakyRelu", y, alpha=0.2), lambda y: m.node("Sigmoid", y),
                 lambda y: m.node("Clip", y, m.number(0), m.number(6)), lambda y: m.node("Mul", y, m.node("Sigmoid", y)),
                 lambda y: m.node("Mul", m.node("HardSigmoid", y, alpha=1 / 6, beta=0.5), y), lambda y: hardswish(m, y, m.node),
                 lambda y: gelu(m, y, True), lambda y: gelu(m, y, False)):
        y = m.conv(make(y), 4, 4)
    return m.finish(m.node("HardSwish", y) if opset >= 14 else y)


def hardswish(m, y, node):
    return node("Div", node("Mul", y, node("Clip", node("Add", y, m.number(3)), m.number(0), m.number(6))), m.number(6))


def gelu(m, y, half_last):
    erf = m.node("Add", m.node("Erf", m.node("Div", y, m.number(np.sqrt(2)))), m.number(1))
    if half_last:
        return m.node("Mul", m.node("Mul", y, erf), m.number(0.5))
    return m.node("Mul", m.node("Mul", m.number(0.5), y), erf)


def norms(opset=17):
    """Batch, instance, group and layer norms, as operators and written out."""
    m = Model([2, 8, 5, 4], opset)
    y = m.norm("BatchNormalization", m.conv("x", 8, 8, bias=False), 8, epsilon=1e-3, momentum=0.99)
    y = m.norm("InstanceNormalization", y, 8)
    ones, zeros = m.constant(np.ones(4, np.float32)), m.constant(np.zeros(4, np.float32))
    y = m.node("Reshape", m.node("InstanceNormalization", m.node("Reshape", y, m.ints(0, 4, -1)), ones, zeros), m.ints(2, 8, 5, 4))
    y = m.node("Add", m.node("Mul", y, m.weight(8, 1, 1)), m.weight(8, 1, 1))
    for axis, shape in ((1, (8, 1, 1)), (-1, (8,))):
        y = m.node("Transpose", y, perm=[0, 2, 3, 1]) if axis == -1 else y
        axes = {"axes": [axis]} if opset < 18 else {}
        given = [m.ints(axis)] if opset >= 18 else []
        centred = m.node("Sub", y, m.node("ReduceMean", y, *given, **axes))
        variance = m.node("ReduceMean", m.node("Pow", centred, m.number(2)), *given, **axes)
        y = m.node("Div", centred, m.node("Sqrt", m.node("Add", variance, m.number(1e-6))))
        y = m.node("Add", m.node("Mul", y, m.weight(*shape)), m.weight(*shape))
    y = m.norm("LayerNormalization", y, 8, axis=-1) if opset >= 17 else y
    y = m.node("Add", m.node("MatMul", y, m.weight(8, 6)), m.weight(6))
    y = m.node("Transpose", y, perm=[0, 3, 1, 2])
    return m.finish(m.norm("GroupNormalization", y, 6, num_groups=3) if opset >= 21 else y)


def residual():
    """Blocks with and without a projection, named as PyTorch names them; extents that are not fixed."""
    m = Model(["batch", 3, "h", "w"], 15)   # before opset 14, ONNX's reference implementation takes a batch norm's statistics from the batch
    y = m.node("Relu", m.norm("BatchNormalization", m.conv("x", 3, 8, name="stem.conv", bias=False), 8, name="stem.bn"))
    for i, (channels, stride) in enumerate(((8, 1), (12, 2))):
        body = m.node("Relu", m.conv(y, 8, channels, name=f"layer1.{i}.conv1", strides=[stride, stride]))
        body = m.conv(body, channels, channels, name=f"layer1.{i}.conv2")
        shortcut = m.conv(y, 8, channels, 1, name=f"layer1.{i}.down.0", strides=[stride, stride]) if stride > 1 else y
        y = m.node("Relu", m.node("Add", body, shortcut))
    y = m.node("Flatten", m.node("GlobalAveragePool", y))
    return m.finish(m.node("Gemm", y, m.weight(5, 12, name="fc.weight"), m.weight(5, name="fc.bias"), transB=1), rank=2)


def dense():
    """Concatenations of all that was before, and a sum of three."""
    m = Model([2, 4, 6, 6])
    features = ["x"]
    for i in range(3):
        whole = m.node("Concat", *features, axis=1) if i else "x"
        features.append(m.node("Relu", m.conv(whole, 4 + 3 * i, 3)))
    y = m.node("Concat", *features, axis=1)
    branches = [m.conv(y, 13, 5, kernel) for kernel in (1, 3, 5)]
    return m.finish(m.node("Sum", *branches))


def inception():
    m = Model([1, 3, 9, 9])
    y = m.conv("x", 3, 8)
    pooled = m.node("MaxPool", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])
    parts = [m.conv(y, 8, 4, 1), m.conv(m.node("Relu", m.conv(y, 8, 3, 1)), 3, 5), m.conv(pooled, 8, 2, 1)]
    return m.finish(m.node("Concat", *parts, axis=1))


def unet():
    """Long skips, transposed convolutions, upsampling of both kinds, a crop."""
    m = Model([1, 2, 16, 12], 13)
    top = m.node("Relu", m.conv("x", 2, 4))
    middle = m.node("Relu", m.conv(m.node("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2]), 4, 8))
    y = m.conv(m.node("MaxPool", middle, kernel_shape=[2, 2], strides=[2, 2]), 8, 8)
    y = m.node("ConvTranspose", y, m.weight(8, 6, 2, 2), m.weight(6), strides=[2, 2], kernel_shape=[2, 2])
    y = m.conv(m.node("Concat", middle, y, axis=1), 14, 4)
    y = m.node("Resize", y, "", m.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest", nearest_mode="floor",
               coordinate_transformation_mode="asymmetric")
    y = m.conv(m.node("Concat", top, y, axis=1), 8, 3)
    y = m.node("Resize", y, "", m.constant(np.array([1, 1, 2, 3], np.float32)), mode="linear", coordinate_transformation_mode="half_pixel")
    return m.finish(m.node("Slice", y, m.ints(1, 2), m.ints(-2, 2**31), m.ints(2, 3)))


def squeeze_excitation():
    """Factors from convolutions on a pixel, and from linear layers; a product for each channel; channel shuffle."""
    m = Model([2, 8, 6, 5])
    y = m.conv("x", 8, 8)
    gate = m.node("Sigmoid", m.conv(m.node("Relu", m.conv(m.node("GlobalAveragePool", y), 8, 2, 1)), 2, 8, 1))
    y = m.conv(m.node("Mul", gate, y), 8, 8)
    vector = m.node("Reshape", m.node("ReduceMean", y, axes=[2, 3]), m.ints(2, 8))
    vector = m.node("Relu", m.node("Gemm", vector, m.weight(8, 4), m.weight(4)))
    vector = m.node("Add", m.node("MatMul", vector, m.weight(4, 8)), m.weight(8))
    factors = m.node("Unsqueeze", m.node("Unsqueeze", m.node("Sigmoid", vector), m.ints(-1)), m.ints(3))   # as f[:, :, None, None] is exported
    y = m.node("Mul", m.node("Mul", y, factors), m.weight(8, 1, 1))
    y = m.node("Reshape", m.node("Transpose", m.node("Reshape", y, m.ints(2, 2, 4, 6, 5)), perm=[0, 2, 1, 3, 4]), m.ints(2, 8, 6, 5))
    return m.finish(m.conv(y, 8, 3))


def flattened():
    """A view by the shape of its input, as exporters write x.view(x.size(0), -1); dropout; a bias that is added."""
    m = Model(["n", 3, 8, 8], 12)
    y = m.node("Add", m.conv("x", 3, 4, bias=False, strides=[2, 2]), m.weight(4, 1, 1))
    batch = m.node("Unsqueeze", m.node("Gather", m.node("Shape", y), m.constant(np.array(0, np.int64))), axes=[0])
    y = m.node("Reshape", y, m.node("Concat", batch, m.ints(-1), axis=0))
    y = m.node("Dropout", m.node("Relu", m.node("Gemm", y, m.weight(64, 10), m.weight(10), alpha=0.5, beta=2.0)), m.number(0.2))
    return m.finish(m.node("Identity", m.node("MatMul", y, m.weight(10, 3))), rank=2)


def as_exported():
    """What PyTorch's exporters write: padding by a ConstantOfShape, a channel shuffle and a group norm by the shape of their input, output padding of a
    transposed convolution, extents worked out one by one, and a global pooling of what has one pixel at these extents."""
    m = Model(["n", 4, "h", "w"], 13)
    zeros = m.node("ConstantOfShape", m.ints(2), value=onnx.numpy_helper.from_array(np.zeros(1, np.int64)))
    pads = m.node("Concat", zeros, m.ints(1, 0), zeros, m.ints(0, 2), axis=0)
    y = m.conv(m.node("Pad", "x", pads), 4, 8)
    extent = [m.node("Gather", m.node("Shape", y), m.constant(np.array(i, np.int64))) for i in range(4)]
    of = [m.node("Unsqueeze", e, m.ints(0)) for e in extent]
    half = m.node("Reshape", m.node("Div", extent[1], m.constant(np.array(2, np.int64))), m.ints(-1))
    grouped = m.node("Reshape", y, m.node("Concat", of[0], m.ints(2), half, of[2], of[3], axis=0))
    y = m.node("Reshape", m.node("Transpose", grouped, perm=[0, 2, 1, 3, 4]), m.node("Concat", of[0], m.ints(-1), of[2], of[3], axis=0))
    ones, none = m.constant(np.ones(2, np.float32)), m.constant(np.zeros(2, np.float32))
    y = m.node("Reshape", m.node("InstanceNormalization", m.node("Reshape", y, m.ints(0, 2, -1)), ones, none), m.node("Shape", y))
    y = m.node("Relu", m.node("Add", m.node("Mul", y, m.weight(8, 1, 1)), m.weight(1, 8, 1, 1)))
    y = m.node("ConvTranspose", y, m.weight(8, 6, 3, 3), m.weight(6), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    return m.finish(m.conv(m.node("GlobalAveragePool", y), 6, 3, 1))


def one_pixel():
    """A map that has one pixel at the extents of the export, which its global pooling does not depend on."""
    m = Model([2, 3, 4, 4], 17)
    y = m.conv(m.conv("x", 3, 4, strides=[2, 2]), 4, 4, strides=[2, 2])
    return m.finish(m.conv(m.node("GlobalAveragePool", y), 4, 3, 1))


def plain_norms():
    """Group and layer norms without weights; a mean over columns of the mean over rows, with and without its axes."""
    m = Model([2, 8, 5, 4], 13)
    ones, zeros = m.constant(np.ones(4, np.float32)), m.constant(np.zeros(4, np.float32))
    y = m.node("InstanceNormalization", m.node("Reshape", m.conv("x", 8, 8), m.ints(0, 4, -1)), ones, zeros)
    y = m.conv(m.node("Reshape", y, m.ints(2, 8, 5, 4)), 8, 8)
    centred = m.node("Sub", y, m.node("ReduceMean", y, axes=[1]))
    variance = m.node("ReduceMean", m.node("Pow", centred, m.number(2)), axes=[1])
    y = m.conv(m.node("Div", centred, m.node("Sqrt", m.node("Add", variance, m.number(1e-5)))), 8, 6)
    factors = m.node("Sigmoid", m.conv(m.node("ReduceMean", m.node("ReduceMean", y, axes=[3]), axes=[2]), 6, 6, 1))
    y = m.node("ReduceMean", m.node("ReduceMean", m.node("Mul", y, factors), axes=[2], keepdims=0), axes=[-1], keepdims=0)
    return m.finish(m.node("MatMul", y, m.weight(6, 3)), rank=2)


def gates():
    """MobileNetV3's squeeze-and-excitation with the gate as one node and as several; constants for all channels; the larger of a number and 0."""
    m = Model([2, 4, 6, 5], 14)
    y = m.node("HardSwish", m.conv("x", 4, 8))
    def excited(y, hard):
        return m.node("Mul", hard(m.conv(m.node("Relu", m.conv(m.node("GlobalAveragePool", y), 8, 4, 1)), 4, 8, 1)), y)
    y = m.conv(excited(y, lambda z: m.node("HardSigmoid", z, alpha=1 / 6, beta=0.5)), 8, 8)
    y = m.conv(excited(y, lambda z: m.node("Div", m.node("Clip", m.node("Add", z, m.number(3)), m.number(0), m.number(6)), m.number(6))), 8, 8)
    y = m.node("Div", m.node("Sub", m.conv(y, 8, 4), m.number(0.25)), m.number(2))
    return m.finish(m.node("Mul", m.node("Max", m.number(0), m.conv(y, 4, 3)), m.number(0.5)))


def concat_of_concats():
    """Branches that part again, in one Concat, as PyTorch's exporter writes Inception's."""
    m = Model([1, 3, 9, 9])
    y = m.conv("x", 3, 8)
    two = m.node("Relu", m.conv(y, 8, 3, 1))
    deep = m.conv(m.node("Relu", m.conv(y, 8, 4, 1)), 4, 4)
    parts = [m.conv(y, 8, 2, 1), m.conv(two, 3, 2, (1, 3)), m.conv(two, 3, 3, (3, 1)), m.conv(deep, 4, 2, (1, 3)), m.conv(deep, 4, 3, (3, 1)),
             m.conv(m.node("MaxPool", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]), 8, 2, 1)]
    return m.finish(m.node("Concat", *parts, axis=1))


def pools_of_pools():
    """YOLO's SPPF: each pool is read by the next one and by the Concat."""
    m = Model([1, 3, 9, 9])
    parts = [m.conv("x", 3, 4)]
    for _ in range(3):
        parts.append(m.node("MaxPool", parts[-1], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]))
    return m.finish(m.conv(m.node("Concat", *parts, axis=1), 16, 5))


# Models with the shape of an input for them.
MODELS = {
    "conv_variants": (conv_variants, (2, 4, 13, 11)),
    "same_with_stride": (same_with_stride, (1, 3, 13, 16)),
    "pools": (pools, (2, 4, 17, 15)),
    "activations": (activations, (1, 3, 6, 6)),
    "activations_11": (lambda: activations(11), (1, 3, 6, 6)),
    "norms": (norms, (2, 8, 5, 4)),
    "norms_11": (lambda: norms(11), (2, 8, 5, 4)),
    "norms_21": (lambda: norms(21), (2, 8, 5, 4)),
    "residual": (residual, (2, 3, 10, 8)),
    "dense": (dense, (2, 4, 6, 6)),
    "inception": (inception, (1, 3, 9, 9)),
    "unet": (unet, (1, 2, 16, 12)),
    "squeeze_excitation": (squeeze_excitation, (2, 8, 6, 5)),
    "flattened": (flattened, (3, 3, 8, 8)),
    "as_exported": (as_exported, (2, 4, 7, 5)),
    "one_pixel": (one_pixel, (2, 3, 4, 4)),
    "plain_norms": (plain_norms, (2, 8, 5, 4)),
    "gates": (gates, (2, 4, 6, 5)),
    "concat_of_concats": (concat_of_concats, (1, 3, 9, 9)),
    "pools_of_pools": (pools_of_pools, (1, 3, 9, 9)),
}
