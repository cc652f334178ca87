"""The C++ header: a network's type, written to be read."""
import re

from names import Scope
from nest import Join

WIDTH = 140   # of a line
LONG = 100    # characters of a part that gets a name of its own
# What a type or namespace cannot be called: C++'s own words, main, what GNU's extensions define, and the namespaces of lrcnn.
TAKEN = set("alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await co_return co_yield "
            "compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit "
            "export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
            "private protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch "
            "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq "
            "main linux unix lrcnn std resnet unet vgg detail host onednn cudnn loops policies".split())


def identifier(text):
    """A text as a C++ name."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "model"
    name = re.sub(r"_+", "_", name)
    return f"model_{name}" if name[0].isdigit() or name in TAKEN else name


class Template:
    """A type with arguments; a text is one without."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments

    def flat(self):
        return f"{self.name}<{', '.join(flat(a) for a in self.arguments)}>"


def flat(tree):
    return tree if isinstance(tree, str) else tree.flat()


def written(tree, indent, first):
    """Lines of a type: in one line if it fits, else an argument a line. first: characters before it in its first line."""
    text = flat(tree)
    if isinstance(tree, str) or first + len(text) <= WIDTH:
        return text
    inner = indent + 4
    lines, line = [], ""
    for place, argument in enumerate(tree.arguments):
        comma = "," if place + 1 < len(tree.arguments) else ">"
        one = written(argument, inner, inner) + comma
        if "\n" in one or inner + len(line) + 1 + len(one) > WIDTH:
            lines += [line] if line else []
            line = ""
        if "\n" in one:
            lines.append(one)
        else:
            line = f"{line} {one}" if line else one
    lines += [line] if line else []
    pad = "\n" + " " * inner
    return f"{tree.name}<{pad}{pad.join(lines)}"


class Printer:
    def __init__(self, layers):
        self.layers = layers

    def chain(self, parts, prefix):
        trees = [self.part(part, prefix) for part in parts]
        if not trees:
            return "Identity"
        return trees[0] if len(trees) == 1 else Template("Sequential", trees)

    def part(self, part, prefix):
        if isinstance(part, Scope):
            scope, parts = part.prefix, part.parts
            while len(parts) == 1 and isinstance(parts[0], Scope):
                scope, parts = f"{scope}.{parts[0].prefix}", parts[0].parts
            return Template("Scope", [f'"{scope}"', self.chain(parts, prefix + scope + ".")])
        if isinstance(part, Join):
            branches = [self.chain(branch, prefix) for branch in part.branches]
            if part.kind == "Sum" and len(branches) == 2:
                return Template("Residual", branches[:1] if branches[1] == "Identity" else branches)
            return Template(part.kind, branches)
        layer = self.layers[part.layer]
        return Template("Named", [f'"{layer.name[len(prefix):]}"', layer.text]) if layer.name else layer.text


class Aliases:
    """Types for parts that are long: what a scope has in it, called after the scope, and what comes more than once. Only scopes whose names differ
    in numbers alone, blocks of a stage, share one: a reader who changes it changes nothing elsewhere."""

    def __init__(self, tree, name):
        self.name, self.counts, self.names, self.made = name, {}, {}, []
        self.count(tree, "")
        self.whole = self.shortened(tree, "")

    @staticmethod
    def key(tree, scope):
        return tree.flat(), re.sub(r"\d+(?=_|$)", "#", scope)

    @staticmethod
    def within(tree, scope):
        """The scope that a part's arguments are in."""
        return f"{scope}_{identifier_part(tree.arguments[0])}" if tree.name == "Scope" else scope

    def count(self, tree, scope):
        if isinstance(tree, str):
            return
        key = self.key(tree, scope)
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.counts[key] == 1:
            for argument in tree.arguments:
                self.count(argument, self.within(tree, scope))

    def alias(self, key, tree, wanted):
        taken = set(self.names.values())
        number, name = 1, wanted
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        self.names[key] = name
        self.made.append((name, tree))
        return name

    def shortened(self, tree, scope, fills_scope=False):
        """A type with aliases in place of its long parts, which are made before it. fills_scope: it is all that a scope has in it."""
        if isinstance(tree, str):
            return tree
        key = self.key(tree, scope)
        if key in self.names:
            return self.names[key]
        made = Template(tree.name, [self.shortened(argument, self.within(tree, scope), tree.name == "Scope") for argument in tree.arguments])
        repeats = self.counts[key] > 1 and tree.name in ("Sequential", "Residual", "Concat", "Scale")
        if len(key[0]) > LONG and tree.name != "Scope" and (fills_scope or repeats):
            return self.alias(key, made, self.name + scope + ("" if fills_scope else "_part"))
        return made


def identifier_part(text):
    return re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_")


def header(parts, layers, *, source, weights, namespace, name, shapes, extents):
    """The text of the header. shapes: of input and output, as text; extents: of the input, or None if they are not fixed."""
    aliases = Aliases(Printer(layers).chain(parts, ""), name)
    tree = aliases.whole
    if isinstance(tree, str) or tree.name != "Sequential":
        tree = Template("Sequential", [tree])
    lines = ["#pragma once", f"// {source}, as a network of lrcnn; written by scripts/import.", "//", f"// Shapes:  x {shapes[0]} -> y {shapes[1]}",
             f"// Weights: {weights}, whose tensors have the names of this network's parameters",
             "#include <lrcnn/layer/layers.hpp>", "#include <lrcnn/network/graph.hpp>", f"namespace {namespace} {{", "using namespace lrcnn;"]
    for alias, part in [*aliases.made, (name, tree)]:
        begin = f"using {alias} = "
        lines.append(begin + written(part, 0, len(begin)) + ";")
    if extents:
        n, c, h, w = extents
        lines.append(f"inline constexpr Input {name[0].lower()}{name[1:]}_input{{.n = {n}, .c = {c}, .h = {h}, .w = {w}}};")
    lines.append(f"}}   // namespace {namespace}")
    return "\n".join(lines) + "\n"
