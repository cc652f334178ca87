#!/usr/bin/env python3
"""Writes generated_types.hpp: fifty varied network types, each with the run-time list of layers it must equal.

    generate_types.py > generated_types.hpp

The two are written independently of each other: the type in the words of the descriptors, the list field by field.
"""
import random

COUNT = 50


class Net:
    """Draws layers that fit, writing each as a type and as a Layer."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.n, self.c = self.dice.randint(1, 4), self.dice.randint(1, 6)
        self.h, self.w = self.dice.randint(6, 40), self.dice.randint(5, 24)
        self.input = (self.n, self.c, self.h, self.w)
        self.types, self.layers = [], []
        for _ in range(self.dice.randint(1, 8)):
            self.dice.choice([self.conv, self.conv, self.activation, self.activation, self.pool])()
        {0: self.vector, 1: self.pooled, 2: self.open}[self.dice.randint(0, 2)]()

    def add(self, type_text, fields):
        if self.dice.random() < 0.2:
            name = self.dice.choice(["stem", "block", "head", "x"]) + str(len(self.types))
            type_text = f'Named<"{name}", {type_text}>'
            fields = [fields[0], f'.name = "{name}"', *fields[1:]]
        self.types.append(type_text)
        self.layers.append("{" + ", ".join(fields) + "}")

    def window(self, kernel, stride, dilation, pads):
        """As a user would write it, shortest first; and in full."""
        def pair(p):
            return str(p[0]) if p[0] == p[1] else f"{{{p[0]}, {p[1]}}}"
        parts = [f".kernel = {pair(kernel)}"] if kernel != (3, 3) or self.dice.random() < 0.5 else []
        if stride != (1, 1):
            parts.append(f".stride = {pair(stride)}")
        top, bottom, left, right = pads
        if len(set(pads)) == 1:
            if top:
                parts.append(f".pad = {top}")
        elif top == bottom and left == right:
            parts.append(f".pad = {{{top}, {left}}}")
        else:
            parts.append(f".pad = {{{top}, {bottom}, {left}, {right}}}")
        if dilation != (1, 1):
            parts.append(f".dilation = {pair(dilation)}")
        full = (f".window = {{.kernel = {{{kernel[0]}, {kernel[1]}}}, .stride = {{{stride[0]}, {stride[1]}}}, "
                f".pad = {{{top}, {bottom}, {left}, {right}}}, .dilation = {{{dilation[0]}, {dilation[1]}}}}}")
        return "Window{" + ", ".join(parts) + "}", full

    def draw_window(self, pool):
        """kernel, stride, dilation, pads that fit the present extents, or None."""
        d = self.dice
        kernel = (d.randint(1, 3 if pool else 5), d.randint(1, 3))
        stride = (d.randint(1, 3), d.randint(1, 2))
        dilation = (1, 1) if pool or d.random() < 0.7 else (d.randint(1, 3), d.randint(1, 2))
        reach = [(k - 1) * e for k, e in zip(kernel, dilation)]
        pads = (d.randint(0, reach[0]), d.randint(0, reach[0]), d.randint(0, reach[1]), d.randint(0, reach[1]))
        h = (self.h + pads[0] + pads[1] - reach[0] - 1) // stride[0] + 1
        w = (self.w + pads[2] + pads[3] - reach[1] - 1) // stride[1] + 1
        return ((kernel, stride, dilation, pads), h, w) if h >= 1 and w >= 1 else None

    def conv(self):
        groups = self.dice.choice([g for g in range(1, self.c + 1) if self.c % g == 0]) if self.dice.random() < 0.4 else 1
        channels = groups * self.dice.randint(1, 4)
        bias = self.dice.random() < 0.7
        drawn = self.draw_window(pool=False)
        usual = self.dice.random() < 0.3 or not drawn
        if usual:
            text, full = self.window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
            h, w = self.h, self.w
        else:
            values, h, w = drawn
            text, full = self.window(*values)
        options = ([f".groups = {groups}"] if groups > 1 else []) + ([] if bias else [".bias = false"])
        arguments = [str(channels)]
        if not usual or options:
            arguments.append(text)
        if options:
            arguments.append("ConvOptions{" + ", ".join(options) + "}")
        self.add(f"Conv<{', '.join(arguments)}>", [".kind = Kind::conv", full, f".channels = {channels}", f".groups = {groups}",
                                                   f".bias = {'true' if bias else 'false'}"])
        self.c, self.h, self.w = channels, h, w

    def activation(self):
        kind = self.dice.choice(["ReLU", "SiLU", "LeakyReLU<>", "LeakyReLU<std::ratio<-1, 8>>", "Pointwise<Cube>"])
        if kind.startswith("Pointwise"):
            self.add(kind, [".kind = Kind::custom", ".custom = Pointwise<Cube>::layer().custom"])
            return
        value = {"ReLU": "Function::relu, 0", "SiLU": "Function::silu, 0", "LeakyReLU<>": "Function::leaky_relu, 0.01",
                 "LeakyReLU<std::ratio<-1, 8>>": "Function::leaky_relu, -0.125"}[kind]
        self.add(kind, [".kind = Kind::activation", f".activation = {{{value}}}"])

    def pool(self):
        drawn = self.draw_window(pool=True)
        if not drawn:
            return
        values, h, w = drawn
        text, full = self.window(*values)
        if self.dice.random() < 0.5:
            self.add(f"MaxPool<{text}>", [".kind = Kind::max_pool", full])
        else:
            inside = self.dice.random() < 0.5
            self.add(f"AvgPool<{text}{', false' if inside else ''}>",
                     [".kind = Kind::avg_pool", full, f".count_padding = {'false' if inside else 'true'}"])
        self.h, self.w = h, w

    def linear(self):
        channels, bias = self.dice.randint(1, 9), self.dice.random() < 0.7
        self.add(f"Linear<{channels}{'' if bias else ', false'}>",
                 [".kind = Kind::linear", f".channels = {channels}", f".bias = {'true' if bias else 'false'}"])

    def vector(self):
        self.add("Flatten", [".kind = Kind::flatten"])
        self.linear()
        if self.dice.random() < 0.5:
            self.activation()
            self.linear()

    def pooled(self):
        self.add("GlobalAvgPool", [".kind = Kind::global_avg_pool"])
        self.linear()

    def open(self):
        """A network whose output is a map."""
        if not self.types:
            self.activation()

    def nested(self):
        """The types with some runs of them in Sequentials of their own."""
        parts, i = [], 0
        while i < len(self.types):
            length = self.dice.randint(1, 3)
            run = ", ".join(self.types[i:i + length])
            wrap = self.dice.random() < 0.4
            parts.append(f"Sequential<{run}>" if wrap else run)
            i += length
        inside = ", ".join(parts)
        return f"Sequential<Sequential<{inside}>>" if self.dice.random() < 0.1 else f"Sequential<{inside}>"


def main():
    print("#pragma once")
    print("// Network types and the run-time lists that they equal. Written by generate_types.py; do not edit.")
    print("// clang-format off")
    print("#include <lrcnn/layer/activation.hpp>\n#include <lrcnn/layer/conv.hpp>\n#include <lrcnn/layer/linear.hpp>\n"
          "#include <lrcnn/layer/pointwise.hpp>\n#include <lrcnn/layer/pool.hpp>\n#include <lrcnn/network/sequential.hpp>\n"
          "#include <vector>")
    print("namespace lrcnn::testing::generated {")
    print("struct Cube {\n  static constexpr std::string_view name = \"cube\";\n"
          "  template <class T> static T value(T x) { return x * x * x; }\n"
          "  template <class T> static T derivative(T x) { return 3 * x * x; }\n};")
    print("/// One type, its input, and its list.")
    print("template <int number> struct Generated;")
    for number in range(COUNT):
        net = Net(number)
        n, c, h, w = net.input
        print(f"template <> struct Generated<{number}> {{")
        print(f"  using Net = {net.nested()};")
        print(f"  static constexpr Input input{{{n}, {c}, {h}, {w}}};")
        print("  static std::vector<Layer> list() {\n    return {" + ",\n            ".join(net.layers) + "};\n  }\n};")
    print(f"inline constexpr int count = {COUNT};")
    print("}   // namespace lrcnn::testing::generated")


if __name__ == "__main__":
    main()
