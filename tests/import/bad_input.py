#!/usr/bin/env python3
"""Tests what scripts/import says of models, files and arguments that it cannot use, and that nothing is written then.  bad_input.py ROOT"""
import contextlib
import functools
import io
import itertools
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.argv[1:] = []
sys.path[:0] = [str(ROOT / "tests/import"), str(ROOT / "scripts/onnx")]

import numpy as np
import onnx
from onnx import TensorProto, helper

import convert
import outputs
from models import MODELS, Model, residual


# What C++20 keeps for itself: [lex.key] and [lex.digraph]; the function main; what compilers define where extensions are on.
WORDS = """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await co_return
    co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq main
    linux unix""".split()


class Faults(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)

    def run_import(self, *arguments):
        """Status, and what was said on either stream."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = convert.main(list(arguments))
        return status, said.getvalue()

    def save(self, model, name="m.onnx", **options):
        onnx.save(model, name, **options)
        return name

    def refuses(self, status, *texts, arguments=("m.onnx",)):
        """The import ends with that status and these texts, and the folder is as it was."""
        before = {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}
        got, said = self.run_import(*arguments)
        for text in texts:
            self.assertIn(text, said)
        self.assertEqual(got, status, said)
        self.assertNotIn("Traceback", said)
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}, before)
        return said

    def refuses_nodes(self, build, *texts, shape=(1, 4, 8, 8), opset=17, rank=4):
        """A model made by `build` is refused for each of the texts, one a line."""
        m = Model(list(shape), opset)
        self.save(m.finish(build(m), rank=rank))
        said = self.refuses(2, "cannot be expressed", "nothing is written", *texts)
        self.assertEqual(len(said.splitlines()), 1 + len(texts), said)
        self.assertTrue(said.startswith(f"lrcnn: {len(texts)} node{'s' * (len(texts) > 1)} of 'm.onnx' cannot be expressed"), said)

    def refuses_some(self, build, text, **options):
        """A model made by `build` is refused, for this text among others."""
        m = Model(list(options.pop("shape")), options.pop("opset", 17))
        self.save(m.finish(build(m)))
        self.refuses(2, "cannot be expressed", text)

    def test_all_nodes_that_lack_are_listed_at_once(self):
        def build(m):
            y = m.node("LRN", m.conv("x", 4, 4, name="stem"), size=3, name="first")
            y = m.node("Tanh", m.conv(y, 4, 4), name="behind the first")
            z = m.node("Elu", m.conv("x", 4, 4), name="second")
            return m.node("Add", y, z)

        m = Model([1, 4, 8, 8])
        self.save(m.finish(build(m)))
        said = self.refuses(2, "LRN 'first' of ", "[1,4,8,8]: lrcnn has no layer for operator LRN", "Elu 'second' of ",
                            "lrcnn has no layer for operator Elu")
        self.assertIn("lrcnn: 2 nodes of 'm.onnx' cannot be expressed; a network is made of lrcnn's layers", said)
        self.assertNotIn("behind the first", said)

    def test_operators_of_other_domains(self):
        m = Model([1, 4, 8, 8])
        self.save(m.finish(m.node("Relu", m.node("Fancy", "x", domain="com.example"))))
        self.refuses(2, "com.example.Fancy 'Fancy_1' of x [1,4,8,8]: lrcnn has no layer for operator com.example.Fancy")

    def test_branches_that_no_type_says(self):
        def build(m):
            a, b = m.conv("x", 4, 4), m.conv("x", 4, 4)
            c = m.node("Add", a, b, name="first join")
            return m.node("Concat", c, m.node("Relu", b, name="reads b, too"), axis=1)

        self.refuses_nodes(build, "what it gives is read in parts of the network that do not lie within one another")

    def test_joins(self):
        self.refuses_nodes(lambda m: m.node("Add", y := m.conv("x", 4, 4), y),
                           "two of its inputs are the same tensor; a join has branches of its own")
        self.refuses_nodes(lambda m: m.node("Concat", m.conv("x", 4, 4), m.conv("x", 4, 4), axis=2),
                           "it joins tensors along axis 2; lrcnn's Concat joins")
        self.refuses_nodes(lambda m: m.node("Add", m.conv("x", 4, 4), m.node("GlobalAveragePool", m.conv("x", 4, 4))),
                           "it adds [N,4,1,1] to [N,4,8,8]; lrcnn's Sum adds tensors of one shape")
        self.refuses_nodes(lambda m: m.node("Mul", m.conv("x", 4, 4), m.conv("x", 4, 4)),
                           "lrcnn's Scale multiplies a map by a factor for each channel")
        for operation in ("Mul", "Div"):
            self.refuses_nodes(lambda m: m.node(operation, m.conv("x", 4, 4), m.weight(8, low=1, high=2)),
                               "it multiplies by a constant that has not one number for each channel")
        for divisor in (0, 1e-40, np.nan):
            self.refuses_nodes(lambda m: m.node("Div", m.conv("x", 4, 4), m.number(divisor)), "it divides by a number whose reciprocal is none")
        for operation, text in (("Div", "it divides by what is computed"), ("Sub", "it takes one tensor from another")):
            self.refuses_nodes(lambda m: m.node(operation, m.conv("x", 4, 4), m.conv("x", 4, 4)), text)
            self.refuses_nodes(lambda m: m.node(operation, m.number(1), m.conv("x", 4, 4)), text)
        self.refuses_nodes(lambda m: m.node("Max", m.conv("x", 4, 4), m.number(1)), "it takes the larger of two tensors")
        self.refuses_nodes(lambda m: m.node("HardSigmoid", m.conv("x", 4, 4)), "it is max(0, min(1, 0.2 x + 0.5))")
        self.refuses_nodes(lambda m: m.node("Add", m.node("Relu", m.conv("x", 4, 4)), m.weight(4, 1, 1)), "it adds a constant; lrcnn has biases")

    def test_constants_that_are_added_where_others_read_the_layer_too(self):
        """A layer's output has several names where nodes change nothing; who reads one of them reads what the layer makes."""
        text = "it adds a constant; lrcnn has biases"

        def passed_on(y, passing):
            def build(m):
                first = m.conv("x", 4, 4)
                z = passing(m, first)
                branch = m.node("Relu", first if y == "before" else z)
                return m.node("Add", branch, m.node("Relu", m.node("Add", z, m.weight(4, 1, 1))))
            return build

        def there_and_back(m, y):
            return m.node("Transpose", m.node("Transpose", y, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])

        for passing in (lambda m, y: m.node("Cast", y, to=1), lambda m, y: m.node("Dropout", y, m.number(0)), there_and_back,
                        lambda m, y: m.node("Add", y, m.weight(4, 1, 1)), lambda m, y: m.node("Identity", m.node("Cast", y, to=10))):
            self.refuses_nodes(passed_on("before", passing), text)
            self.refuses_nodes(passed_on("behind", passing), text)
        m = Model([1, 4, 8, 8])   # where nothing else reads the layer, the constants are its bias
        y = m.node("Add", m.node("Cast", m.conv("x", 4, 4, bias=False), to=1), m.weight(4, 1, 1))
        self.save(m.finish(m.node("Add", there_and_back(m, y), m.weight(4, 1, 1))))
        status, said = self.run_import("m.onnx")
        self.assertEqual(status, 0, said)
        self.assertIn("1 layer beside joins, 148 parameters", said)

    def test_windows(self):
        self.refuses_nodes(lambda m: m.node("ConvTranspose", "x", m.weight(4, 2, 3, 3), output_padding=[1, 1], strides=[2, 2]),
                           "it has output padding")
        self.refuses_nodes(lambda m: m.node("Conv", "x", m.node("Relu", "x")), "its filter is computed; lrcnn's layers have constant ones")
        self.refuses_nodes(lambda m: m.conv("x", 4, 4, strides=[2, 2], auto_pad="SAME_UPPER"), "its padding depends on extents that are not fixed",
                           shape=(1, 4, "h", "w"))
        self.refuses_nodes(lambda m: m.node("MaxPool", "x", kernel_shape=[9, 9]), "nothing is left of its input")
        self.refuses_nodes(lambda m: m.node("Pad", "x", m.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="edge"),
                           "it pads with edge; lrcnn pads with zeros or reflected")
        self.refuses_nodes(lambda m: m.node("Pad", "x", m.ints(0, 1, 0, 0, 0, 0, 0, 0)), "it pads images or channels")
        self.refuses_nodes(lambda m: m.node("Slice", "x", m.ints(0), m.ints(8), m.ints(2), m.ints(2)), "it leaves out rows or columns in between")
        self.refuses_nodes(lambda m: m.node("Slice", "x", m.ints(1), m.ints(3), m.ints(1)), "it takes a part of the images or channels")
        self.refuses_nodes(lambda m: m.node("Resize", "x", "", m.constant(np.array([1, 1, 1.5, 2], np.float32)), mode="linear"),
                           "its factors 1.5 and 2 are not whole")
        self.refuses_nodes(lambda m: m.node("Resize", "x", "", m.constant(np.array([1, 1, 2, 2], np.float32)), mode="cubic"),
                           "it interpolates with mode cubic")
        for policy in ("not_larger", "not_smaller"):
            self.refuses_nodes(lambda m: m.node("Resize", "x", "", "", m.ints(1, 4, 16, 24), keep_aspect_ratio_policy=policy),
                               f"its sizes are bounds, with keep_aspect_ratio_policy {policy}; lrcnn's Upsample has a whole factor for each axis",
                               opset=18)
        self.refuses_nodes(lambda m: m.node("Resize", "x", "", "", m.ints(1, 8, 16, 16)), "it resizes images or channels")
        self.refuses_nodes(lambda m: m.node("Resize", "x", "", m.constant(np.array([2, 1, 2, 2], np.float32))), "it resizes images or channels")
        self.refuses_nodes(lambda m: m.node("Transpose", "x", perm=[0, 1, 3, 2]), "it transposes a tensor that is map by [0, 1, 3, 2]")

    def test_slices_whose_axes_or_steps_are_computed(self):
        """They are not those that are taken where none are given."""
        for place, name in ((2, "axes"), (3, "steps")):
            m = Model([1, 4, "h", 8])
            given = [m.ints(0), m.ints(4), m.ints(2), m.ints(1)]
            given[place] = m.node("Shape", "x", start=2, end=3)
            self.save(m.finish(m.node("Slice", "x", *given)))
            self.refuses(2, f"its {name} are computed; lrcnn's Crop has constant ones")
        self.refuses_nodes(lambda m: m.node("Slice", "x", m.ints(1, 1), m.ints(4, 4), m.ints(2)),
                           "its attributes or inputs are not those of the operator; the file may be damaged")

    def test_parts_of_vectors(self):
        """Axes of [N,C] are images and channels, whatever the layer that it comes from has."""
        def scores(m):
            return m.node("MatMul", m.node("Flatten", "x"), m.weight(256, 5))
        for begin, end, axis in ((0, 2, -1), (-2, 2**31 - 1, -1), (0, 2, 1)):
            self.refuses_nodes(lambda m: m.node("Slice", scores(m), m.ints(begin), m.ints(end), m.ints(axis)),
                               "it takes a part of the images or channels", rank=2)
        self.refuses_nodes(lambda m: m.node("Pad", scores(m), m.ints(0, 0, 0, 3)), "it pads images or channels", rank=2)
        m = Model([1, 4, 8, 8])
        self.save(m.finish(m.node("Slice", scores(m), m.ints(0), m.ints(5), m.ints(-1)), rank=2))
        status, said = self.run_import("m.onnx")   # all of it
        self.assertEqual(status, 0, said)

    def test_extents_that_are_not_fixed(self):
        """0 and -1 are what some exporters write for them."""
        for extent in (0, -1):
            self.refuses_nodes(lambda m: m.conv("x", 4, 4, strides=[2, 2], auto_pad="SAME_UPPER"),
                               "its padding depends on extents that are not fixed", shape=(extent, 4, extent, extent))

    def test_numbers_that_shapes_become(self):
        """Extents as floating-point numbers are such numbers from there on: 8 / 5 is 1.6."""
        def factors(m):
            extents = m.node("Cast", m.node("Shape", "x"), to=TensorProto.FLOAT)
            quotient = m.node("Div", m.node("Slice", extents, m.ints(2), m.ints(4)), m.constant(np.array([5, 5], np.float32)))
            return m.node("Resize", "x", "", m.node("Concat", m.constant(np.array([1, 1], np.float32)), quotient, axis=0))
        self.refuses_nodes(factors, "its factors 1.6 and 1.6 are not whole", shape=("n", 4, 8, 8))

    def test_groups_of_nodes_that_are_nearly_layers(self):
        """What looks like a layer's nodes, but has other extents or weights along another axis."""
        def shuffled(first, last):
            return lambda m: m.node("Reshape", m.node("Transpose", m.node("Reshape", m.conv("x", 4, 4), m.ints(*first)), perm=[0, 2, 1, 3, 4]),
                                    m.ints(*last))
        for first, last in (((1, 4, 2, 4, 8), (1, 4, 8, 8)), ((1, 2, 2, 8, 8), (1, 8, 4, 8)), ((1, 2, 2, 8, 8), (1, 4, 4, 16)),
                            ((2, 2, -1, 8, 8), (1, 4, 8, 8))):
            self.refuses_some(shuffled(first, last), "it makes ", shape=(1, 4, 8, 8))
        def regrouped(m):   # two groups of half an image
            ones, zeros = m.constant(np.ones(2, np.float32)), m.constant(np.zeros(2, np.float32))
            y = m.node("InstanceNormalization", m.node("Reshape", m.conv("x", 4, 4), m.ints(-1, 2, 16)), ones, zeros)
            return m.node("Add", m.node("Mul", m.node("Reshape", y, m.ints(1, 4, 4, 4)), m.weight(4, 1, 1)), m.weight(4, 1, 1))
        self.refuses_some(regrouped, "it makes [N,4,4,4] (map) a tensor of extents [-1, 2, 16]", shape=(1, 4, 4, 4))
        for shape in ((4,), (1, 4, 1), (4, 4)):
            def grouped(m):
                ones, zeros = m.constant(np.ones(2, np.float32)), m.constant(np.zeros(2, np.float32))
                y = m.node("InstanceNormalization", m.node("Reshape", m.conv("x", 4, 4), m.ints(0, 2, -1)), ones, zeros)
                return m.node("Add", m.node("Mul", m.node("Reshape", y, m.ints(1, 4, 4, 4)), m.weight(*shape)), m.weight(*shape))
            self.refuses_some(grouped, "it multiplies by a constant that has not one number for each channel", shape=(1, 4, 4, 4))

            def normed(m):
                y = m.conv("x", 4, 4)
                centred = m.node("Sub", y, m.node("ReduceMean", y, axes=[1]))
                variance = m.node("ReduceMean", m.node("Pow", centred, m.number(2)), axes=[1])
                y = m.node("Div", centred, m.node("Sqrt", m.node("Add", variance, m.number(1e-6))))
                return m.node("Add", m.node("Mul", y, m.weight(*shape)), m.weight(*shape))
            self.refuses_some(normed, "it multiplies by a constant that has not one number for each channel", shape=(1, 4, 4, 4))

    def test_paddings(self):
        self.refuses_nodes(lambda m: m.node("Pad", "x", m.ints(0, 0, 3, -1, 0, 0, -2, 2), mode="reflect"),
                           "it reflects pixels on one side and takes some away on another")
        m = Model([1, 2, 5, 6], 18)
        padded = m.node("Pad", "x", m.ints(0, 0, 1, 2, 0, 0, 0, 3), "", m.ints(0, 1, 3, 2))
        self.save(m.finish(m.conv(padded, 2, 2, pads=[0, 0, 0, 0])))
        status, said = self.run_import("m.onnx")
        self.assertEqual(status, 0, said)
        self.assertIn("ZeroPad<Pad{2, 3, 1, 0}>", pathlib.Path("m.hpp").read_text())   # columns first

    def test_numbers_that_types_do_not_hold(self):
        self.refuses_nodes(lambda m: m.norm("BatchNormalization", m.conv("x", 4, 4), 4, epsilon=0.0), "its epsilon is 0")
        m = Model([1, 4, 8, 8])
        self.save(m.finish(m.norm("BatchNormalization", m.conv("x", 4, 4), 4, epsilon=2.220446e-16)))
        status, said = self.run_import("m.onnx")
        self.assertEqual(status, 0, said)
        self.assertNotIn("0000000000000000000", pathlib.Path("m.hpp").read_text())   # more than 64 bits hold

    def test_sums_whose_extents_differ_where_they_are_not_fixed(self):
        def pooled(m):
            y = m.conv("x", 4, 4)
            return m.node("Add", y, m.conv(m.node("GlobalAveragePool", y), 4, 4, 1))
        self.refuses_nodes(pooled, "it adds [N,4,1,1] to [N,4,?,?]; lrcnn's Sum adds tensors of one shape", shape=(1, 4, "h", "w"))

    def test_functions_and_vectors(self):
        self.refuses_nodes(lambda m: m.node("Clip", "x", m.number(-1), m.number(1)), "it keeps numbers between -1.0 and 1.0; lrcnn has ReLU6")
        self.refuses_nodes(lambda m: m.node("Gelu", "x", approximate="tanh"), "it approximates GELU (tanh); lrcnn's is the exact one", opset=20)
        self.refuses_nodes(lambda m: m.node("Cast", "x", to=7), "it makes whole numbers of its input")
        self.refuses_nodes(lambda m: m.node("ReduceMean", "x", axes=[1]), "it takes means over axes [1] of a tensor that is map")
        self.refuses_nodes(lambda m: m.node("MatMul", "x", m.weight(8, 3)), "it multiplies the rows of a map by a matrix")
        self.refuses_nodes(lambda m: m.node("Flatten", m.node("Transpose", "x", perm=[0, 2, 3, 1])), "it flattens a map whose channels are last")
        self.refuses_nodes(lambda m: m.node("Flatten", "x", axis=2), "its axis is 2; lrcnn's Flatten keeps images apart, axis 1")
        self.refuses_nodes(lambda m: m.node("Reshape", "x", m.ints(1, 16, 4, 4)), "a tensor of extents [1, 16, 4, 4]; lrcnn has Flatten")
        self.refuses_nodes(lambda m: m.norm("LayerNormalization", "x", 8, axis=-1), "lrcnn's LayerNorm normalises over the channels of a pixel")
        self.refuses_nodes(lambda m: m.node("Softmax", m.node("Flatten", "x")), "lrcnn has no layer for operator Softmax")

    def test_output_that_is_chosen(self):
        m = Model([1, 4, 8, 8])
        y = m.conv("x", 4, 3)
        self.save(m.finish(m.node("Softmax", m.node("Flatten", y)), rank=2))
        status, said = self.run_import("m.onnx", "--output", y)
        self.assertEqual(status, 0, said)
        self.assertIn("m::Net: 1 layer beside joins, 111 parameters; wrote m.hpp and m.safetensors", said)
        os.unlink("m.hpp"), os.unlink("m.safetensors")
        self.refuses(1, "has no tensor 'z' that a node computes; the output is one of the model's tensors", arguments=("m.onnx", "--output=z"))

    def test_files_that_are_no_models(self):
        for content, text in ((b"", "is empty"), (b"PK\x03\x04....", "is an archive, such as torch.save() writes"), (b"\x80\x02}q", "is a pickle"),
                              (b"\x89HDF\r\n", "is an HDF5 file"), (b"version https://git-lfs.github.com", "is a pointer of Git LFS"),
                              (b"\x1c\0\0\0TFL3", "is a TensorFlow Lite file"), (b'\x08\0\0\0\0\0\0\0{"a":{}}', "is a safetensors file"),
                              (b"\xff" * 40, "is no ONNX file, or is damaged"), (b"\x08\x07", "is no ONNX model, or is damaged: it has no opset")):
            with self.subTest(text):
                pathlib.Path("m.onnx").write_bytes(content)
                self.refuses(1, "lrcnn: 'm.onnx' " + text)
        named = residual()   # a model whose ninth byte is that of a safetensors file's header
        named.producer_name = "abcd{"
        whole = named.SerializeToString()
        self.assertEqual(whole[8:9], b"{")
        pathlib.Path("named.onnx").write_bytes(whole)
        status, said = self.run_import("named.onnx")
        self.assertEqual(status, 0, said)
        for name in ("named.onnx", "named.hpp", "named.safetensors"):
            os.unlink(name)
        self.refuses(1, "cannot read 'absent.onnx' (No such file or directory); the model has to be readable", arguments=("absent.onnx",))
        os.mkdir("folder.onnx")
        self.refuses(1, "'folder.onnx' is a folder; a model is one file", arguments=("folder.onnx",))

    def test_damaged_models(self):
        whole = residual().SerializeToString()
        for length in range(40, len(whole), 997):   # cut anywhere: a message, never a traceback, never a file
            pathlib.Path("m.onnx").write_bytes(whole[:length])
            self.refuses(1, "lrcnn: ")
        model = residual()
        model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
        self.save(model)
        self.refuses(1, "is damaged: a tensor is of an unknown type, or has not as many bytes as its shape says")
        m = Model([1, 4, 8, 8])
        model = m.finish(m.node("Mul", "x", m.node("Constant", value=onnx.numpy_helper.from_array(np.ones((4, 1, 1), np.float32)))))
        for damage in ({"raw_data": b"123"}, {"data_type": 77}):
            damaged = onnx.ModelProto.FromString(model.SerializeToString())
            for field, value in damage.items():
                setattr(damaged.graph.node[0].attribute[0].t, field, value)
            self.save(damaged)
            self.refuses(1, "is damaged: a tensor is of an unknown type, or has not as many bytes as its shape says")
        rng = np.random.default_rng(3)
        print("seed 3", end=" ", flush=True)
        for _ in range(300):   # a few bytes changed: an import or a message, never a traceback
            damaged = bytearray(whole)
            for place in rng.integers(0, len(damaged), rng.integers(1, 4)):
                damaged[place] = rng.choice([0, 1, 3, 8, 127, 128, 255])
            pathlib.Path("m.onnx").write_bytes(damaged)
            status, said = self.run_import("m.onnx")
            self.assertIn(status, (0, 1, 2))
            self.assertTrue(status == 0 or said.startswith("lrcnn: "), said)
        model = residual()
        model.graph.node[0].input[0] = "nothing"
        self.save(model)
        self.refuses(1, "is damaged: node 'Conv_2' reads 'nothing', which nothing before it computes")

    def test_numbers_that_no_operator_has(self):
        damaged = "its attributes or inputs are not those of the operator; the file may be damaged"
        numbers = "its window has a number below 1; kernels, strides and dilations are at least 1"
        for attributes in ({"kernel_shape": [2, 2], "strides": [0, 0]}, {"kernel_shape": [0, 2]}, {"kernel_shape": [2, 2], "dilations": [1, -1]}):
            for op in ("MaxPool", "AveragePool"):
                for shape in ((1, 4, 8, 8), (1, 4, "h", "w")):
                    self.refuses_nodes(lambda m: m.node(op, "x", **attributes), numbers, shape=shape, opset=19)
        self.refuses_nodes(lambda m: m.node("MaxPool", "x", kernel_shape=[2, 2], strides=[2]), damaged)
        for groups in (0, -1):
            self.refuses_nodes(lambda m: m.norm("GroupNormalization", "x", 4, num_groups=groups), f"it has {groups} groups", opset=21)
        self.refuses_nodes(lambda m: m.node("LeakyRelu", "x", alpha=float("inf")), damaged)
        self.refuses_nodes(lambda m: m.node("Conv", "x", m.weight(4, 4, 1, 1), group=0), "has 4 channels, its parameters are of 0")

    def test_shapes_that_cannot_be_computed(self):
        """What models compute of shapes, wrongly: a message that names the node."""
        def said_of(build):
            m = Model(["n", 4, 8, 8])
            y = m.conv("x", 4, 4)
            target = m.node("Concat", build(m, m.node("Shape", y)), m.ints(-1), axis=0)
            self.save(m.finish(m.node("Reshape", y, target), rank=2))
            return self.refuses(1, "of constants or shapes cannot be computed (", "what a model computes from these is computed once")

        self.assertIn("node 'seventh' (Gather)", said_of(lambda m, shape: m.node("Gather", shape, m.ints(7), name="seventh")))
        self.assertIn("node 'none' (Div)", said_of(lambda m, shape: m.node("Div", shape, m.ints(0), name="none")))
        self.assertIn("(Slice)", said_of(lambda m, shape: m.node("Slice", shape, m.ints(0), m.ints(4), m.ints(0), m.ints(0))))
        self.assertIn("(Slice)", said_of(lambda m, shape: m.node("Slice", shape, m.ints(0), m.ints(4), m.ints(1))))

    def test_inputs_in_between_that_are_left_out(self):
        """A Slice of a shape with steps and no axes."""
        m = Model(["n", 4, 8, 8])
        y = m.conv("x", 4, 4)
        images = m.node("Slice", m.node("Shape", y), m.ints(0), m.ints(4), "", m.ints(4))
        self.save(m.finish(m.node("Reshape", y, m.node("Concat", images, m.ints(-1), axis=0)), rank=2))
        status, said = self.run_import("m.onnx")
        self.assertEqual(status, 0, said)

    def test_attributes_that_are_damaged(self):
        """Numbers of attributes and small constants changed in models of all kinds: an import or a message, never a traceback."""
        rng = np.random.default_rng(5)
        print("seed 5", end=" ", flush=True)
        for name, (make, _) in MODELS.items():
            whole = make().SerializeToString()
            for _ in range(20):
                model = onnx.ModelProto.FromString(whole)
                node = model.graph.node[rng.integers(len(model.graph.node))]
                number = int(rng.choice([0, -1, 1, 3, 2**31, -2**63]))
                if node.attribute and rng.random() < 0.6:
                    attribute = node.attribute[rng.integers(len(node.attribute))]
                    if attribute.type == onnx.AttributeProto.INTS and rng.random() < 0.3:
                        del attribute.ints[-1:]
                    elif attribute.type == onnx.AttributeProto.INTS and attribute.ints:
                        attribute.ints[rng.integers(len(attribute.ints))] = number
                    elif attribute.type == onnx.AttributeProto.INT:
                        attribute.i = number
                    elif attribute.type == onnx.AttributeProto.FLOAT:
                        attribute.f = rng.choice([0, -1, np.inf, np.nan])
                    else:
                        attribute.type = onnx.AttributeProto.INT
                elif rng.random() < 0.3 and len(node.input) > 1:
                    del node.input[-1:]
                else:
                    small = [t for t in model.graph.initializer if np.prod(t.dims) <= 8]
                    if not small:
                        continue
                    tensor = small[rng.integers(len(small))]
                    array = onnx.numpy_helper.to_array(tensor).copy()
                    if rng.random() < 0.3:
                        array = array.reshape(-1)[:-1]
                    elif array.size and array.dtype.kind == "i":
                        array.reshape(-1)[rng.integers(array.size)] = number
                    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
                self.save(model)
                with self.subTest(f"{name}: {node.op_type} {node.name}"):
                    status, said = self.run_import("m.onnx")
                    self.assertIn(status, (0, 1, 2))
                    self.assertTrue(status == 0 or said.startswith("lrcnn: "), said)

    def test_opsets_inputs_outputs(self):
        for version in (9, 99):
            model = residual()
            model.opset_import[0].version = version
            self.save(model)
            self.refuses(1, f"'m.onnx' uses opset {version}; opsets 11 to ", "export the model again with an opset of these")
        model = residual()
        model.graph.input.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, [1]))
        self.save(model)
        self.refuses(1, "'m.onnx' has 2 inputs ('x', 'other'); a network has one input")
        model = residual()
        model.graph.output.append(helper.make_tensor_value_info(model.graph.node[0].output[0], TensorProto.FLOAT, [1]))
        self.save(model)
        self.refuses(1, "has 2 outputs", "export it with one, or name one with --output TENSOR")
        m = Model([1, 4, 8])
        self.save(m.finish(m.node("Relu", "x"), rank=3))
        self.refuses(1, "input 'x' of 'm.onnx' has 3 extents; a network reads maps, [N,C,H,W]")
        m = Model([1, 4, 8, 8])
        self.save(m.finish(m.node("Identity", "x")))
        self.refuses(1, "has no layers: its output is its input")

    def test_external_data(self):
        options = {"save_as_external_data": True, "location": "m.data", "size_threshold": 0}
        self.save(residual(), **options)
        status, said = self.run_import("m.onnx")
        self.assertEqual(status, 0, said)
        self.refuses(1, "'m.data' is to be written, and is read as well", arguments=("m.onnx", "--weights=m.data"))
        with open("m.data", "r+b") as data:
            data.truncate(100)
        self.refuses(1, "lrcnn: ", "m.onnx'")
        os.unlink("m.data")
        self.refuses(1, "tensors of 'm.onnx' cannot be read from the files beside it", "copy them along, or export the model again")

    def test_files_that_cannot_be_written(self):
        self.save(residual())
        self.refuses(1, "'m.onnx' is to be written, and is read as well", arguments=("m.onnx", "--header=m.onnx"))
        os.symlink("m.onnx", "link")
        self.refuses(1, "'link' is to be written, and is read as well", arguments=("m.onnx", "--weights=link"))
        self.refuses(1, "'./a' is to be written twice; header and weights are two files", arguments=("m.onnx", "--header=a", "--weights=./a"))
        self.refuses(1, "cannot write 'absent/m.hpp' (No such file or directory); header and weights are written whole, both or none",
                     arguments=("m.onnx", "--header=absent/m.hpp"))
        os.mkdir("folder")
        self.refuses(1, "cannot write 'folder': it is a folder", arguments=("m.onnx", "--header=folder"))

    def test_both_files_or_none(self):
        """A failure or an interruption at any call that moves or links, before it or behind it, leaves both files as they were, whether they were
        there or not."""
        real = {name: getattr(os, name) for name in ("replace", "link", "rename")}
        faults = (OSError(28, "No space left on device"), KeyboardInterrupt())
        interrupted = 0
        for present, fault, behind, failing in itertools.product((False, True), faults, (False, True), range(1, 6)):
            for name in ("a", "b"):
                if present:
                    pathlib.Path(name).write_text("old")
                elif os.path.exists(name):
                    os.unlink(name)
            calls = []

            def failing_call(name, *arguments, **options):
                calls.append(name)
                if len(calls) == failing and not behind:
                    raise fault
                real[name](*arguments, **options)
                if len(calls) == failing and behind and not isinstance(fault, OSError):
                    raise fault

            done = False
            for name in real:
                setattr(os, name, functools.partial(failing_call, name))
            try:
                outputs.write([("a", [b"new"]), ("b", [b"new"])])
                done = True
            except convert.ImportFault as error:
                self.assertIn("(No space left on device)", str(error))
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                for name, call in real.items():
                    setattr(os, name, call)
            texts = {name: pathlib.Path(name).read_text() for name in ("a", "b") if os.path.exists(name)}
            self.assertEqual(texts, {n: "new" for n in "ab"} if done else {n: "old" for n in "ab"} if present else {})
            self.assertEqual(sorted(os.listdir()), sorted(texts))
        self.assertGreaterEqual(interrupted, 10)

    def test_file_systems_without_second_names(self):
        """The old file is copied there."""
        def refused(*_, **__):
            raise OSError(1, "Operation not permitted")

        pathlib.Path("a").write_text("old")
        pathlib.Path("b").mkdir()   # nothing takes the place of a folder
        link, os.link = os.link, refused
        try:
            self.assertRaises(convert.ImportFault, outputs.write, [("a", [b"new"]), ("b", [b"new"])])
            self.assertEqual(pathlib.Path("a").read_text(), "old")
            os.rmdir("b")
            outputs.write([("a", [b"new"]), ("b", [b"new"])])
        finally:
            os.link = link
        self.assertEqual([pathlib.Path(name).read_text() for name in "ab"], ["new", "new"])
        self.assertEqual(sorted(os.listdir()), ["a", "b"])

    def test_arguments(self):
        self.save(residual())
        self.refuses(1, "unrecognized arguments: --fast; scripts/import takes one model and the options that --help lists",
                     arguments=("m.onnx", "--fast"))
        self.refuses(1, "the following arguments are required: MODEL.onnx", arguments=())
        self.refuses(1, "'my net' is no name for a type or namespace in C++", "write my_net, for example", arguments=("m.onnx", "--name=my net"))
        for word in WORDS:
            self.refuses(1, f"'{word}' is no name", f"write model_{word}", arguments=("m.onnx", f"--namespace={word}"))

    def test_names(self):
        """Of modules where they are told; of the kind where they are too long; a copy where one is used twice."""
        m = Model([1, 4, 8, 8])
        y = m.conv("x", 4, 4, name="a." * 24 + "conv")
        filter = m.weight(4, 4, 1, 1, name="shared.weight")
        y = m.node("Conv", m.node("Conv", y, filter, name="/shared/Conv"), filter, name="/shared/Conv")
        self.save(m.finish(m.conv(y, 4, 4)))
        status, said = self.run_import("m.onnx")
        self.assertEqual(status, 0, said)
        self.assertIn("has more than 47 characters; its layer is called after its kind instead", said)
        self.assertIn("'shared' is used twice; lrcnn's layers have parameters of their own, so the second one gets a copy", said)
        text = pathlib.Path("m.hpp").read_text()
        for name in ("conv1", "shared", "shared_2", "conv4"):
            self.assertIn(f'Named<"{name}", Conv<4', text)


if __name__ == "__main__":
    unittest.main(verbosity=1)
