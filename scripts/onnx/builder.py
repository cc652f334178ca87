"""From nodes to layers: what each operator becomes is said in spatial.py, vectors.py and pointwise.py.

A handler gets a node and returns the value of its first output. It raises Refused where lrcnn has no such layer; then the node is noted with the
reason, and what depends on it alone is passed over in silence, so that one run finds all that is lacking.
"""
import re

from faults import DAMAGED, NotExpressible, Refused
from nest import Dominators
from network import MAP, VECTOR, Layer, Value
from patterns import reshape_target

OPERATORS = {}
MODULE = re.compile(r"[A-Za-z_]\w*(\.\w+)*\Z", re.ASCII)
PARAMETER = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\.(?:weight|bias|running_mean|running_var|layer_scale)\Z", re.ASCII)


def operator(*names):
    """Registers the handler of operators."""
    def register(handler):
        for name in names:
            OPERATORS[name] = handler
        return handler
    return register


class Builder:
    def __init__(self, graph, partial):
        self.graph, self.partial = graph, partial
        self.layers, self.refused = [], []
        n, c, h, w = graph.input_shape
        self.values = {graph.input: Value(-1, c, h, w)}
        self.readers = graph.readers()
        self.weight_uses = {}
        for node in graph.nodes:
            for name in node.inputs:
                if name in graph.constants:
                    origin = graph.origin.get(name, name)
                    self.weight_uses[origin] = self.weight_uses.get(origin, 0) + 1

    def build(self):
        """Goes through all nodes. Returns the value of the network's output. Raises NotExpressible with all nodes that lrcnn lacks."""
        for node in self.graph.nodes:
            self.visit(node)
        if self.refused:
            raise NotExpressible(self.refused)
        return self.values[self.graph.output]

    def visit(self, node):
        if any(name in self.values and self.values[name] is None for name in node.inputs):
            value = None   # of a refused node
        else:
            try:
                handler = None if node.domain else OPERATORS.get(node.op)
                if handler is None:
                    raise Refused(f"lrcnn has no layer for operator {node.domain + '.' if node.domain else ''}{node.op}")
                value = handler(self, node)
            except Refused as reason:
                self.refused.append((node, str(reason)))
                value = None
            except DAMAGED:
                self.refused.append((node, "its attributes or inputs are not those of the operator; the file may be damaged"))
                value = None
        for name in node.outputs:
            if name:
                self.values[name] = value
        for name in node.outputs[1:]:
            if self.readers.get(name) and value is not None:
                self.refused.append((node, f"only its first output is known, but '{name}' is read"))
                self.values[name] = None

    def value(self, node, place=0, layout=None):
        """What an input is; it has to be computed, and in that layout if one is named."""
        name = node.inputs[place] if place < len(node.inputs) else ""
        value = self.values.get(name)
        if value is None:
            what = "a constant" if name in self.graph.constants else "made of shapes" if name in self.partial else "not given"
            raise Refused(f"input {place + 1} is {what}; a layer reads what is computed from the image")
        if layout is not None and value.layout != layout and not (value.layout in (MAP, VECTOR) and value.single() and layout in (MAP, VECTOR)):
            raise Refused(f"its input is {value.layout}; this layer reads {layout}")
        return value

    def is_constant(self, node, place):
        return place < len(node.inputs) and node.inputs[place] in self.graph.constants

    def constant(self, node, place, what):
        """A constant input; None if it is left out."""
        if place >= len(node.inputs) or not node.inputs[place]:
            return None
        if not self.is_constant(node, place):
            raise Refused(f"its {what} is computed; lrcnn's layers have constant ones")
        return self.graph.constants[node.inputs[place]]

    def target(self, node):
        return reshape_target(self.graph, self.partial, node)

    def only_reader(self, node):
        """The one node that reads a node's output, if there is one."""
        readers = self.readers.get(node.outputs[0], [])
        return readers[0] if len(readers) == 1 else None

    def has_one_reader(self, value):
        """Whether one node alone reads what a value's layer makes, under any of the names that nodes which change nothing give it."""
        return all(len(self.readers.get(name, [])) <= 1 for name, other in self.values.items() if other is not None and other.layer == value.layer)

    def branches(self, values):
        """Values in runs of neighbours that have come through a layer which the others have not: a join within a join, whose exporter has written
        Concat(a, Concat(b, c)) as Concat(a, b, c)."""
        if len(values) < 3:
            return [[value] for value in values]
        above = Dominators(self.layers)
        begin = above.of([value.layer for value in values])
        runs = []
        for value in values:
            if runs and above.depth[above.of([v.layer for v in runs[-1]] + [value.layer])] > above.depth[begin]:
                runs[-1].append(value)
            else:
                runs.append([value])
        return runs

    def add(self, node, kind, text, value, parameters=(), *, channels=None, extents=None, layout=None):
        """A layer behind `value`; what is not said is as there."""
        made = Layer(kind, text, [value.layer], node, list(parameters), path=self.path(node))
        return self.put(made, channels if channels is not None else value.channels, *(extents or (value.height, value.width)),
                        layout or value.layout)

    def join(self, node, kind, values, channels):
        """A join of values. It has the first one's extents."""
        first = values[0]
        inputs = [v.layer for v in values]
        if len(set(inputs)) < len(inputs):
            raise Refused("two of its inputs are the same tensor; a join has branches of its own")
        return self.put(Layer(kind.lower(), kind, inputs, node, join=True, path=self.path(node)), channels, first.height, first.width, first.layout)

    def put(self, layer, channels, height, width, layout):
        for extent in (height, width):
            if extent is not None and extent < 1:
                raise Refused("nothing is left of its input")
        self.layers.append(layer)
        return Value(len(self.layers) - 1, channels, height, width, layout)

    def path(self, node):
        """The module that a node comes from, as far as its exporter tells: "layer1.0.conv1"; otherwise empty."""
        if node.name.startswith("/"):   # PyTorch's TorchScript exporter: /layer1/layer1.0/conv1/Conv
            groups = []
            for part in node.name.split("/")[1:-1]:
                if groups and part.startswith(groups[-1] + "."):
                    groups[-1] = part
                else:
                    groups.append(part)
            path = ".".join(groups)
            if MODULE.match(path):
                return path
        for name in node.inputs[1:] + node.inputs[:1]:
            origin = self.graph.origin.get(name, "")
            found = PARAMETER.match(origin)
            if found and name in self.graph.constants and self.weight_uses.get(origin) == 1:
                return found.group(1)
        return node.scopes[-1] if node.scopes and MODULE.match(node.scopes[-1]) else ""
