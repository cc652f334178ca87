"""scripts/import MODEL.onnx [--header FILE] [--weights FILE] [--namespace NAME] [--name NAME] [--output TENSOR]

Writes a C++ header with the network of an ONNX file as a type of lrcnn, and a safetensors file with its weights. Without names of files these are
called after the model and lie in the current folder. Status: 0; 1 for a file or an argument that cannot be used; 2 if the model has nodes that
lrcnn has no layers for, or that no type says, all of which are listed; nothing is written then.
"""
import argparse
import os
import sys

import fold
import header
import model
import names
import nest
import outputs
import patterns
from builder import Builder
from faults import ImportFault, NotExpressible
import pointwise   # noqa: F401  these three register operators
import spatial     # noqa: F401
import vectors     # noqa: F401


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        raise ImportFault(f"{message}", "scripts/import takes one model and the options that --help lists", "correct the command")


def arguments(given):
    parser = Arguments(prog="scripts/import", description=__doc__.split("\n\n")[1], allow_abbrev=False)
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("--header", metavar="FILE", help="the header that is written; MODEL.hpp")
    parser.add_argument("--weights", metavar="FILE", help="the safetensors file that is written; MODEL.safetensors")
    parser.add_argument("--namespace", metavar="NAME", help="of the type; the model's name")
    parser.add_argument("--name", metavar="NAME", default="Net", help="of the type; Net")
    parser.add_argument("--output", metavar="TENSOR", help="the tensor that is the network's output; the model's only output")
    chosen = parser.parse_args(given)
    stem = os.path.splitext(os.path.basename(chosen.model))[0] or "model"
    chosen.header = chosen.header or stem + ".hpp"
    chosen.weights = chosen.weights or stem + ".safetensors"
    chosen.namespace = chosen.namespace or header.identifier(stem)
    for option in (chosen.namespace, chosen.name):
        if header.identifier(option) != option:
            raise ImportFault(f"'{option}' is no name for a type or namespace in C++",
                              "a name has letters, digits and underscores, and neither C++ nor lrcnn has it",
                              f"write {header.identifier(option)}, for example")
    return chosen


def network(path, output=None):
    """The layers of a model in an order, its parts, shapes of input and output, and notices."""
    graph = model.read(path, output)
    partial = fold.fold(graph)
    patterns.recognise(graph, partial)
    graph.prune()   # what computed the shapes that groups of nodes had among them
    patterns.nest_concatenations(graph)
    builder = Builder(graph, partial)
    try:
        value = builder.build()
        parts = nest.nest(builder.layers, value.layer)
    except NotExpressible as found:
        raise NotExpressible([(node, reason, graph.describe_inputs(node)) for node, reason in found.nodes]) from None
    if not parts:
        raise ImportFault(f"'{path}' has no layers: its output is its input", "a network has at least one layer", "export another model")
    notices = names.give_names(parts, builder.layers)
    return graph, builder.layers, parts, value, notices


def refusal(path, nodes):
    """The message that lists nodes which cannot be expressed."""
    lines = [f"lrcnn: {len(nodes)} node{'s' * (len(nodes) != 1)} of '{path}' cannot be expressed; a network is made of lrcnn's layers, nested in "
             "Sequential, Sum, Concat and Scale; change the model, or take its part up to a tensor with --output; nothing is written"]
    for node, reason, inputs in nodes:
        lines.append(f"  {node.domain + '.' if node.domain else ''}{node.op} '{node.name}' of {inputs}: {reason}")
    return "\n".join(lines)


def convert(chosen):
    """Reads, converts, writes. Returns what was done, as text."""
    outputs.check([chosen.header, chosen.weights], [chosen.model])
    graph, layers, parts, value, notices = network(chosen.model, chosen.output)
    outputs.check([chosen.header, chosen.weights], graph.files)
    tensors = [(f"{layers[i].name}.{name}", array) for i in nest.order(parts) for name, array in layers[i].parameters]
    n, c, h, w = graph.input_shape
    extents = None if None in (c, h, w) else (n or 1, c, h, w)
    shown = lambda *all: "[" + ",".join(s if isinstance(s, str) else "?" if s is None else str(s) for s in all) + "]"
    shapes = shown("N", c, "H" if h is None else h, "W" if w is None else w), shown("N", value.channels, value.height, value.width)
    text = header.header(names.Scoping(layers).group(parts), layers, source=os.path.basename(chosen.model), weights=os.path.basename(chosen.weights),
                         namespace=chosen.namespace, name=chosen.name, shapes=shapes, extents=extents)
    outputs.write([(chosen.weights, outputs.safetensors(tensors)), (chosen.header, [text.encode()])])
    count = sum(array.size for _, array in tensors)
    number = len(list(nest.order(parts)))
    return [*(f"lrcnn: {notice}" for notice in notices),
            f"{chosen.namespace}::{chosen.name}: {number} layer{'s' * (number != 1)} beside joins, {count} parameters; wrote {chosen.header} and "
            f"{chosen.weights}"]


def main(given):
    try:
        chosen = arguments(given)
        print("\n".join(convert(chosen)))
    except ImportFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except NotExpressible as found:
        print(refusal(chosen.model, found.nodes), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
