"""The layers that a graph becomes: values with what is known of their shapes, and layers with their parameters."""
import dataclasses
from fractions import Fraction

import numpy as np

MAP, LAST, VECTOR = "map", "channels last", "vector"


@dataclasses.dataclass(frozen=True)
class Value:
    """What a tensor of the graph is in the network: the output of a layer, -1 for the network's input."""
    layer: int
    channels: int | None
    height: int | None
    width: int | None
    layout: str = MAP   # of the graph's tensor: [N,C,H,W], [N,H,W,C] or [N,C]; in the network all are [N,C,H,W]

    def single(self):
        """Whether it has one row and one column."""
        return self.height == 1 and self.width == 1

    def rank(self):
        """How many axes the graph's tensor has."""
        return 2 if self.layout == VECTOR else 4

    def text(self):
        extents = (self.channels, self.height, self.width)
        return "[N," + ",".join("?" if extent is None else str(extent) for extent in extents) + "]"


@dataclasses.dataclass
class Layer:
    kind: str           # as lrcnn counts unnamed ones: "conv", "pool", "relu"
    text: str           # the descriptor: "Conv<64>"; of a join "Sum", "Concat" or "Scale"
    inputs: list        # layers that it reads
    node: object        # of the graph, for messages
    parameters: list = dataclasses.field(default_factory=list)   # pairs of name and array
    join: bool = False
    path: str = ""      # of the module that it comes from: "layer1.0.relu"
    name: str = ""      # that it is given in the network; empty for a layer without parameters


def ratio(value, complement=False):
    """A number as a std::ratio: the simplest decimal that float32 does not tell from it, as far as 64 bits hold it; complement: what it lacks to 1."""
    fraction = Fraction(str(np.float32(value)))
    if complement:
        fraction = 1 - fraction
    fraction = fraction.limit_denominator(10**18)
    return f"std::ratio<{fraction.numerator}, {fraction.denominator}>"


def pair(a, b):
    return str(a) if a == b else f"{{{a}, {b}}}"


def pad_text(top, bottom, left, right):
    if top == bottom == left == right:
        return str(top)
    if top == bottom and left == right:
        return f"{{{top}, {left}}}"
    return f"{{{top}, {bottom}, {left}, {right}}}"


@dataclasses.dataclass
class Window:
    kernel: tuple
    stride: tuple = (1, 1)
    pad: tuple = (0, 0, 0, 0)   # top, bottom, left, right
    dilation: tuple = (1, 1)
    ceil: bool = False

    def text(self):
        parts = [".kernel = " + pair(*self.kernel)]
        if self.stride != (1, 1):
            parts.append(".stride = " + pair(*self.stride))
        if self.pad != (0, 0, 0, 0):
            parts.append(".pad = " + pad_text(*self.pad))
        if self.dilation != (1, 1):
            parts.append(".dilation = " + pair(*self.dilation))
        if self.ceil:
            parts.append(".ceil = true")
        return "Window{" + ", ".join(parts) + "}"

    def spans(self):
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation))

    def extent(self, axis, size):
        """Positions of the window along an axis of that extent, as lrcnn counts them; None if the extent is not known."""
        if size is None:
            return None
        begin, end = self.pad[2 * axis:2 * axis + 2]
        room, stride = size + begin + end - self.spans()[axis], self.stride[axis]
        positions = room // stride + 1
        if self.ceil and room % stride and positions * stride < size + begin:
            positions += 1
        return positions

    def transposed_extent(self, axis, size):
        if size is None:
            return None
        return (size - 1) * self.stride[axis] + self.spans()[axis] - sum(self.pad[2 * axis:2 * axis + 2])
