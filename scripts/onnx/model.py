"""An ONNX file as a graph of nodes, constants and one input."""
import ast
import dataclasses
import os

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from faults import ImportFault

OPSETS = range(11, onnx.defs.onnx_opset_version() + 1)


@dataclasses.dataclass(eq=False)
class Node:
    op: str
    name: str
    inputs: list   # names of tensors; "" for one that is left out
    outputs: list
    attributes: dict
    domain: str = ""
    scopes: list = dataclasses.field(default_factory=list)   # of modules, outermost first, where the exporter notes them
    stands_for: list = dataclasses.field(default_factory=list)   # nodes that it took the place of

    def __getitem__(self, attribute):
        return self.attributes[attribute]

    def get(self, attribute, default=None):
        return self.attributes.get(attribute, default)


@dataclasses.dataclass
class Graph:
    nodes: list          # in an order in which each comes after what it reads
    constants: dict      # arrays by name
    input: str
    input_shape: list    # extents; None where they are not fixed
    output: str
    shapes: dict         # of tensors as far as ONNX infers them: extents or names of them
    opset: int
    origin: dict         # of a constant: the name of the initialiser that it was made from
    files: list          # that the model was read from

    def readers(self):
        """For each tensor the nodes that read it; the graph's output is read by None, too."""
        found = {self.output: [None]}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    found.setdefault(name, []).append(node)
        return found

    def producers(self):
        return {name: node for node in self.nodes for name in node.outputs if name}

    def prune(self):
        """Leaves out nodes that the output does not need."""
        needed, kept = {self.output}, []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
                kept.append(node)
        self.nodes = kept[::-1]

    def describe_inputs(self, node):
        """ "x [1,3,8,8], conv.weight [16,3,3,3]" """
        return ", ".join(f"{name} {self.shape_text(name)}" for name in node.inputs if name) or "nothing"

    def shape_text(self, name):
        if name in self.constants:
            shape = self.constants[name].shape
        elif name == self.input:
            shape = self.input_shape
        elif name in self.shapes:
            shape = self.shapes[name]
        else:
            return "of unknown shape"
        return "[" + ",".join("?" if extent is None else str(extent) for extent in shape) + "]"


def array_of(tensor, path):
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ImportFault(f"'{path}' is damaged: a tensor is of an unknown type, or has not as many bytes as its shape says ({reason})",
                          "an ONNX file has all bytes of its tensors", "export the model again, or fetch it again") from None


def attribute_value(attribute, path):
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return array_of(value, path)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def module_scopes(proto):
    """The modules that PyTorch's exporter notes for a node, without the node's own name: ["layer1", "layer1.0", "layer1.0.conv1"]"""
    for entry in proto.metadata_props:
        if entry.key == "pkg.torch.onnx.name_scopes":
            try:
                scopes = ast.literal_eval(entry.value)
            except (ValueError, SyntaxError):
                return []
            return [scope for scope in scopes[:-1] if isinstance(scope, str) and scope]
    return []


def external_files(model, folder):
    """Files beside the model that have its tensors."""
    return sorted({os.path.join(folder, entry.value) for tensor in model.graph.initializer for entry in tensor.external_data
                   if entry.key == "location"})


def load(path):
    """The model of a file, with the files that it was read from."""
    if os.path.isdir(path):
        raise ImportFault(f"'{path}' is a folder", "a model is one file", "name the .onnx file in it")
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ImportFault(f"cannot read '{path}' ({error.strerror})", "the model has to be readable", "correct the name, or its rights") from None
    refuse_other_types(path, data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise ImportFault(f"'{path}' is no ONNX file, or is damaged ({str(error).splitlines()[0]})", "an ONNX file is one protobuf message",
                          "export the model again, or fetch it again") from None
    if not model.graph.node or not model.opset_import:
        raise ImportFault(f"'{path}' is no ONNX model, or is damaged: it has no {'nodes' if model.opset_import else 'opset'}",
                          "a model says its opset and has nodes", "export the model again, or fetch it again")
    folder = os.path.dirname(os.path.abspath(path))
    files = [path]
    try:
        files += external_files(model, folder)
        onnx.load_external_data_for_model(model, folder)
    except (OSError, ValueError, onnx.checker.ValidationError, RuntimeError) as error:
        raise ImportFault(f"tensors of '{path}' cannot be read from the files beside it ({str(error).splitlines()[0]})",
                          "a model with external data needs its files in its folder, whole", "copy them along, or export the model again") from None
    return model, files


def refuse_other_types(path, data):
    if not data:
        raise ImportFault(f"'{path}' is empty", "an ONNX file is one protobuf message", "export the model again, or fetch it again")
    kinds = {b"PK\x03\x04": "an archive, such as torch.save() writes", b"\x80\x02": "a pickle", b"\x89HDF": "an HDF5 file, such as Keras writes",
             b"version https://git-lfs": "a pointer of Git LFS, not the file itself"}
    for begin, kind in kinds.items():
        if data.startswith(begin):
            raise ImportFault(f"'{path}' is {kind}", "a model is an ONNX file", "export it, in PyTorch with torch.onnx.export()")
    of_weights = data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8   # a header of that length
    if data[4:8] == b"TFL3" or of_weights:
        kind = "a TensorFlow Lite file" if data[4:8] == b"TFL3" else "a safetensors file, which has weights and no network"
        raise ImportFault(f"'{path}' is {kind}", "a model is an ONNX file", "export it, in PyTorch with torch.onnx.export()")


def opset_of(model, path):
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if entry.version in OPSETS:
                return entry.version
            raise ImportFault(f"'{path}' uses opset {entry.version}", f"opsets {OPSETS[0]} to {OPSETS[-1]} are known",
                              "export the model again with an opset of these")
    raise ImportFault(f"'{path}' does not say its version of ONNX's own operators", f"opsets {OPSETS[0]} to {OPSETS[-1]} are known",
                      "export the model again")


def extents(value):
    """Extents of a typed value; None for those that are not fixed, which some exporters write as 0 or -1."""
    return [d.dim_value if d.dim_value > 0 else None for d in value.type.tensor_type.shape.dim]


def inferred_shapes(model):
    """Shapes as ONNX infers them, for messages and for what asks for a shape; nothing where it cannot."""
    try:
        small = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:   # shapes are a help; a model that ONNX's inference does not follow may be one that the importer follows
        small = model
    shapes = {}
    for value in [*small.graph.value_info, *small.graph.output]:
        if value.type.tensor_type.HasField("shape"):
            shapes[value.name] = [d.dim_value if d.dim_value > 0 else d.dim_param or None for d in value.type.tensor_type.shape.dim]
    return shapes


def only(names, what, change, path):
    """The name, if there is one."""
    if len(names) != 1:
        listed = ", ".join(f"'{name}'" for name in names) or "none"
        raise ImportFault(f"'{path}' has {len(names)} {what}s ({listed})", f"a network has one {what}", change)
    return names[0]


def read(path, output=None):
    """The graph of a file. output: the tensor that is the network's output; None: the model's only one."""
    model, files = load(path)
    opset = opset_of(model, path)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    constants = {tensor.name: array_of(tensor, path) for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constants]
    name = only([value.name for value in inputs], "input", "export it with one", path)
    shape = extents(inputs[0])
    if len(shape) != 4:
        raise ImportFault(f"input '{name}' of '{path}' has {len(shape)} extents", "a network reads maps, [N,C,H,W]", "import a network of images")
    outputs = [value.name for value in model.graph.output]
    chosen = output or only(outputs, "output", "export it with one, or name one with --output TENSOR", path)
    if any(isinstance(text, bytes) for p in model.graph.node for text in (p.name, p.op_type, p.domain, *p.input, *p.output)):
        raise ImportFault(f"'{path}' is damaged: a node has a name that is no text", "names are UTF-8", "export the model again, or fetch it again")
    nodes = [Node(p.op_type, p.name or (p.output[0] if p.output else ""), list(p.input), list(p.output),
                  {a.name: attribute_value(a, path) for a in p.attribute}, "" if p.domain == "ai.onnx" else p.domain, module_scopes(p))
             for p in model.graph.node]
    graph = Graph(nodes, constants, name, shape, chosen, inferred_shapes(model), opset, {n: n for n in constants}, files)
    check_order(graph, path)
    if chosen not in graph.producers():
        raise ImportFault(f"'{path}' has no tensor '{chosen}' that a node computes", "the output is one of the model's tensors",
                          "name one of them with --output TENSOR")
    graph.prune()
    return graph


def check_order(graph, path):
    known = {"", graph.input, *graph.constants}
    for node in graph.nodes:
        for name in node.inputs:
            if name not in known:
                raise ImportFault(f"'{path}' is damaged: node '{node.name}' reads '{name}', which nothing before it computes",
                                  "nodes come after what they read", "export the model again")
        known.update(node.outputs)


def is_number(array, value):
    """Whether a constant is one number, within what float32 tells apart."""
    return array is not None and array.size == 1 and bool(np.isclose(float(array.reshape(())), value, rtol=1e-6, atol=0))
