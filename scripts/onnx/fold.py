"""What a graph computes from constants and from shapes is computed here, once.

A shape may have extents that are not fixed: `Partial` is such a list of numbers, with None for what is not known. Nodes whose inputs are all
known become constants, by ONNX's own reference implementation.
"""
import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from faults import DAMAGED, ImportFault

DRAWS = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}


class Partial:
    """A vector of numbers, or a single one, some of which are not known."""

    def __init__(self, values, dtype=np.dtype(np.int64)):
        self.dtype = dtype
        self.values = np.frompyfunc(lambda v: None if v is None else dtype.type(v), 1, 1)(np.array(values, dtype=object))
        self.values = np.asarray(self.values, dtype=object)   # a single number, too

    def known(self):
        return all(value is not None for value in self.values.reshape(-1))


def evaluate(node, arrays, opset):
    """The outputs of a node of ONNX's own operators on constants."""
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for name, a in arrays.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.outputs if name]
    attributes = {key: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value for key, value in node.attributes.items()}
    proto = helper.make_node(node.op, node.inputs, node.outputs, **attributes)
    graph = helper.make_graph([proto], "constant", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return dict(zip((o.name for o in outputs), ReferenceEvaluator(model).run(None, arrays)))


def constant_of(node):
    """The value of a Constant node."""
    for key, value in node.attributes.items():
        if key == "value":
            return np.asarray(value)
        if key in ("value_float", "value_floats"):
            return np.asarray(value, dtype=np.float32)
        if key in ("value_int", "value_ints"):
            return np.asarray(value, dtype=np.int64)
    return None


def ints(graph, node, place, attribute):
    """Whole numbers that are an input in later opsets and an attribute in earlier ones; None if they are not given or not constant."""
    if len(node.inputs) > place and node.inputs[place]:
        array = graph.constants.get(node.inputs[place])
        return None if array is None else [int(v) for v in np.asarray(array).reshape(-1)]
    value = node.get(attribute)
    return None if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


class Folding:
    def __init__(self, graph):
        self.graph = graph
        self.partial = {}

    def value(self, name):
        """Numbers that are known in part, or all of them; None if nothing is known."""
        if name in self.partial:
            return self.partial[name]
        array = self.graph.constants.get(name)
        return Partial(array, array.dtype) if array is not None and array.dtype.kind in "iuf" and array.ndim <= 1 else None

    def shape(self, node):
        """Shape: the extents of its input, those that are fixed."""
        name = node.inputs[0]
        shape = self.graph.input_shape if name == self.graph.input else self.graph.shapes.get(name)
        if shape is None:
            return None
        whole = [extent if isinstance(extent, int) else None for extent in shape]
        return whole[node.get("start", 0):node.get("end")]

    def of_shapes(self, node):
        """What a node makes of numbers that are partly known; None if it is no such node."""
        if node.op == "Shape":
            extents = self.shape(node)
            return None if extents is None else Partial(extents)
        if not any(name in self.partial for name in node.inputs):
            return None
        known = [self.value(name) if name else None for name in node.inputs]   # by place; None for one that is left out, too
        if known[0] is None:
            return None
        if node.op == "Cast":
            dtype = helper.tensor_dtype_to_np_dtype(node["to"])
            return Partial(known[0].values, dtype) if dtype.kind in "iuf" else None
        if any(value is None and name for name, value in zip(node.inputs, known)):
            return None
        inputs = [None if value is None else value.values for value in known]
        if node.op in ("Gather", "Slice") and any(None in value.reshape(-1) for value in inputs[1:] if value is not None):
            return None
        values = self.arranged(node, inputs)
        if values is None and all(value is None or value.dtype == known[0].dtype for value in known):
            values = self.arithmetic(node.op, inputs, known[0].dtype)
        return None if values is None else Partial(values, known[0].dtype)

    def arranged(self, node, inputs):
        """What a node makes of such numbers that takes some of them, or puts them one behind the other; None if it is no such node."""
        first = inputs[0]
        if node.op == "Identity":
            return first
        if node.op == "Unsqueeze":
            return first.reshape(-1) if first.ndim == 0 else None
        if node.op == "Squeeze":
            return first.reshape(()) if first.size == 1 else None
        if node.op == "Reshape" and first.size == 1 and inputs[1].tolist() in ([-1], [1], []):
            return first.reshape(inputs[1].size * [1])
        if node.op == "Floor" and all(v is None or v == int(v) for v in first.reshape(-1)):
            return first
        if node.op == "Gather" and first.ndim == 1 and node.get("axis", 0) == 0:
            return np.asarray(first[inputs[1].astype(np.int64)], dtype=object)
        if node.op == "Concat" and all(value.ndim == 1 for value in inputs):
            return np.concatenate(inputs)
        if node.op == "Slice" and first.ndim == 1:
            return self.part(first, *(None if value is None else [int(v) for v in value.reshape(-1)] for value in inputs[1:]))
        return None

    @staticmethod
    def part(values, starts, ends, axes=None, steps=None):
        """What a Slice takes of a list. Raises ValueError if these are not numbers for its one axis."""
        [start], [end], [axis], [step] = starts, ends, [0] if axes is None else axes, [1] if steps is None else steps
        if axis not in (0, -1):
            raise ValueError(f"a list has no axis {axis}")
        return values[slice(start, end, step)]

    @staticmethod
    def arithmetic(op, inputs, dtype):
        quotient = (lambda a, b: a / b) if dtype.kind == "f" else (lambda a, b: int(a / b))
        work = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "Div": quotient}.get(op)
        if work is None or len(inputs) != 2:
            return None
        made = np.frompyfunc(lambda a, b: None if a is None or b is None else work(a, b), 2, 1)(*inputs)
        return np.asarray(made, dtype=object)   # of single numbers, too

    def fold(self, node):
        """Whether the node's outputs are known now."""
        if node.domain or any(isinstance(v, (onnx.GraphProto, onnx.SparseTensorProto)) for v in node.attributes.values()):
            return False
        try:
            return self.fold_known(node)
        except DAMAGED as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ImportFault(f"node '{node.name}' ({node.op}) of constants or shapes cannot be computed ({reason})",
                              "what a model computes from these is computed once", "export the model again, or fetch it again") from None

    def fold_known(self, node):
        """fold() for a node of ONNX's own operators. Raises one of DAMAGED if its attributes or inputs are not those of the operator."""
        constants = self.graph.constants
        if node.op == "Constant":
            value = constant_of(node)
            if value is not None:
                constants[node.outputs[0]] = value
            return value is not None
        given = [name for name in node.inputs if name]
        if given and all(name in constants for name in given) and node.op not in DRAWS:
            return self.fold_constants(node, given)
        partial = self.of_shapes(node)
        if partial is None:
            return False
        self.partial[node.outputs[0]] = partial
        if partial.known():
            constants[node.outputs[0]] = np.array(partial.values, dtype=partial.dtype)
        return True

    def fold_constants(self, node, given):
        constants, origin = self.graph.constants, self.graph.origin
        if node.op == "Identity":
            found = {node.outputs[0]: constants[given[0]]}
        else:
            try:
                found = evaluate(node, {name: constants[name] for name in given}, self.graph.opset)
            except Exception as error:   # whatever ONNX's implementation of that operator raises
                raise ImportFault(f"node '{node.name}' ({node.op}) of constants cannot be computed ({str(error).splitlines()[0]})",
                                  "what a model computes from constants is computed once", "export it with constants folded") from None
        constants.update({name: np.asarray(value) for name, value in found.items()})
        if node.op in ("Identity", "Transpose", "Cast"):
            origin[node.outputs[0]] = node.outputs[0] if node.op == "Identity" and "." in node.outputs[0] else origin.get(given[0], given[0])
        return True


def fold(graph):
    """Nodes of constants and shapes become constants. Returns the partly known numbers, Partials by name."""
    folding = Folding(graph)
    graph.nodes = [node for node in graph.nodes if not folding.fold(node)]
    graph.prune()
    return folding.partial
