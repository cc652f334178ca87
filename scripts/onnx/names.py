"""Names of layers with parameters, and scopes: which neighbours have the first part of their names in common.

A name is that of the module in PyTorch, "layer1.0.conv1", where the exporter tells it, otherwise the kind and its ordinal, "conv1".
"""
import dataclasses

from nest import Join, Leaf, order

LONGEST = 47   # characters of a name in lrcnn


@dataclasses.dataclass
class Scope:
    prefix: str
    parts: list


def give_names(parts, layers):
    """Names all layers with parameters, each otherwise. Returns notices."""
    taken, counts, notices = set(), {}, []
    wanted = [layers[i] for i in order(parts)]
    paths = {layer.path for layer in wanted if layer.parameters}
    for layer in wanted:
        counts[layer.kind] = counts.get(layer.kind, 0) + 1
        if not layer.parameters:
            continue
        name = layer.path
        if len(name) > LONGEST:
            notices.append(f"the name '{name}' has more than {LONGEST} characters; its layer is called after its kind instead")
            name = ""
        if name in taken:
            notices.append(f"'{name}' is used twice; lrcnn's layers have parameters of their own, so the second one gets a copy")
            number = 2
            while f"{name}_{number}" in taken:
                number += 1
            name = f"{name}_{number}"
        if not name or len(name) > LONGEST:
            ordinal = counts[layer.kind]
            while (name := f"{layer.kind}{ordinal}") in taken | paths:
                ordinal += 1
        taken.add(name)
        layer.name = name
    return notices


class Scoping:
    def __init__(self, layers):
        self.layers, self.used = layers, set()

    def inside(self, part):
        """The layers of a part, joins included."""
        if isinstance(part, Leaf):
            return [self.layers[part.layer]]
        if isinstance(part, Scope):
            return [layer for inner in part.parts for layer in self.inside(inner)]
        return [self.layers[part.layer], *(layer for branch in part.branches for inner in branch for layer in self.inside(inner))]

    def head(self, part, prefix):
        """The next part of the name that all named layers of a part have in common below `prefix`, and whether there are any."""
        named = [layer for layer in self.inside(part) if layer.name]
        if named:
            heads = {self.below(layer.name, prefix).partition(".")[::2] for layer in named}
            first = {head for head, rest in heads if rest}
            return (first.pop() if len(first) == 1 and all(rest for _, rest in heads) else None), True
        path = self.layers[part.layer].path
        return (self.below(path, prefix).partition(".")[0] or None) if path.startswith(prefix) else None, False

    @staticmethod
    def below(name, prefix):
        return name[len(prefix):] if name.startswith(prefix) else ""

    def fits(self, prefix, parts):
        """Whether the layers of some parts that have no name of their own get short enough ones under a scope."""
        layers = [layer for part in parts for layer in self.inside(part)]
        return all(layer.name or len(prefix) + 1 + len(layer.kind) + len(str(len(layers))) <= LONGEST for layer in layers)

    def group(self, parts, prefix=""):
        """Parts, with those put into scopes that follow one another and begin alike. prefix: of the scopes around them."""
        result, i = [], 0
        while i < len(parts):
            head, named = self.head(parts[i], prefix)
            last = i
            if head and named:
                for j in range(i + 1, len(parts)):
                    other, has_names = self.head(parts[j], prefix)
                    if other == head:
                        last = j
                    elif has_names or other is not None:
                        break
            run = parts[i:last + 1]
            full = prefix + (head or "")
            single = len(run) == 1 and isinstance(run[0], Leaf)
            if head and named and not single and full not in self.used and self.fits(full, run):
                self.used.add(full)
                result.append(Scope(head, self.group(run, full + ".")))
            else:
                result += [self.within(part, prefix) for part in run]
            i = last + 1
        return result

    def within(self, part, prefix):
        if isinstance(part, Leaf):
            return part
        return Join(part.kind, part.layer, [self.group(branch, prefix) for branch in part.branches])
