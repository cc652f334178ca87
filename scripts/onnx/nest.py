"""A graph of layers as parts within parts: Sequential, Sum, Concat, Scale.

The last layer is followed back to the input. A layer with one input comes behind the chain that makes it. A join begins at the last tensor
through which all of its branches go, its immediate dominator; each branch is a chain from there. If a layer turns out to be in two branches, no
nesting says the graph.
"""
import dataclasses

from faults import NotExpressible


@dataclasses.dataclass
class Leaf:
    layer: int


@dataclasses.dataclass
class Join:
    kind: str       # "Sum", "Concat" or "Scale"
    layer: int
    branches: list  # chains; an empty one is the Identity


class Dominators:
    """For each layer the last tensor before it through which everything goes from the network's input, its immediate dominator: a layer, or -1."""

    def __init__(self, layers):
        self.above, self.depth = {}, {-1: 0}
        for i, layer in enumerate(layers):
            found = self.of(layer.inputs)
            self.above[i], self.depth[i] = found, self.depth[found] + 1

    def of(self, tensors):
        """The last tensor through which everything goes to all of these; one of them, if the others come through it."""
        found = tensors[0]
        for other in tensors[1:]:
            while found != other:
                if self.depth[found] < self.depth[other]:
                    found, other = other, found
                found = self.above[found]
        return found


def nest(layers, output):
    """The chain from the network's input to `output`, a list of Leafs and Joins. Raises NotExpressible with the nodes that stand in two parts."""
    above, emitted, shared = Dominators(layers).above, set(), []

    def chain(end, begin):
        parts = []
        while end != begin:
            layer = layers[end]
            if end in emitted:
                shared.append(end)
                break
            emitted.add(end)
            if not layer.join:
                parts.append(Leaf(end))
                end = layer.inputs[0]
            else:
                start = above[end]
                parts.append(merged(Join(layer.text, end, [chain(i, start) for i in layer.inputs])))
                end = start
        return parts[::-1]

    whole = chain(output, -1)
    if shared:
        reason = "what it gives is read in parts of the network that do not lie within one another; branches of a type begin and end together"
        raise NotExpressible([(layers[i].node, reason) for i in sorted(set(shared))])
    return whole


def merged(join):
    """Sum<Sum<A, B>, C> as Sum<A, B, C>, which has the same layers; likewise Concat. x + Body(x) as Residual<Body>, which is Body(x) + x."""
    first = join.branches[0]
    if join.kind == "Sum" and len(join.branches) == 2 and not first:
        return Join(join.kind, join.layer, join.branches[::-1])
    if join.kind != "Scale" and len(first) == 1 and isinstance(first[0], Join) and first[0].kind == join.kind:
        return Join(join.kind, join.layer, [*first[0].branches, *join.branches[1:]])
    return join


def order(parts):
    """Layers in the order in which lrcnn lists them."""
    for part in parts:
        if isinstance(part, Leaf):
            yield part.layer
        else:
            for branch in part.branches:
                yield from order(branch)
