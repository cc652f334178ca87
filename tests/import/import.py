#!/usr/bin/env python3
"""Tests scripts/import on small models: types, weights and predictions against ONNX's reference implementation.

    import.py ROOT COMPILER FLAG...

All headers that the importer writes are compiled into one program (imported.hpp), whose predictions are compared with those of ONNX.
"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, COMPILER, *FLAGS = sys.argv[1:]
sys.argv[1:] = []
ROOT = pathlib.Path(ROOT)
sys.path[:0] = [str(ROOT / "tests/import"), str(ROOT / "scripts/onnx")]

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import convert
from models import MODELS


def types():
    """What some types have to be equal to, as lrcnn's users write them."""
    return {
        "conv_variants": "Sequential<Conv<8, Window{.kernel = 3, .stride = {2, 1}, .pad = {0, 2, 1, 0}}>, "
                         "Conv<8, Window{.kernel = {1, 3}, .pad = {0, 1}}, ConvOptions{.groups = 4, .bias = false}>, "
                         "Conv<6, Window{.kernel = 3, .pad = {2, 1}, .dilation = {2, 1}}>, Conv<4, Window{.kernel = 3, .pad = {1, 0, 0, 2}}>, "
                         "ReflectPad<Pad{1, 0, 2, 0}>>",
        "pools": "Sequential<MaxPool<Window{.kernel = 3, .stride = 2, .pad = 1}>, AvgPool<Window{.kernel = 3, .pad = 1}>, "
                 "AvgPool<Window{.kernel = {2, 3}, .pad = {1, 0, 1, 1}}, false>, Conv<6>, MaxPool<Window{.kernel = 2, .stride = 2, .ceil = true}>, "
                 "GlobalAvgPool>",
        "activations": "Sequential<Conv<4>, ReLU, Conv<4>, LeakyReLU<std::ratio<1, 5>>, Conv<4>, Sigmoid, Conv<4>, ReLU6, Conv<4>, SiLU, Conv<4>, "
                       "Hardswish, Conv<4>, Hardswish, Conv<4>, GELU, Conv<4>, GELU, Conv<4>, Hardswish>",
        "norms": "Sequential<Conv<8, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>, "
                 "BatchNormWith<NormOptions{}, std::ratio<1, 1000>, std::ratio<1, 100>>, InstanceNorm, GroupNorm<4>, "
                 "LayerNormWith<NormOptions{}, std::ratio<1, 1000000>>, LayerNormWith<NormOptions{}, std::ratio<1, 1000000>>, LayerNorm, "
                 "Conv<6, Window{.kernel = 1}>>",
        "residual": 'Sequential<Scope<"stem", Sequential<Named<"conv", Conv<8, Window{.kernel = 3, .pad = 1}, ConvOptions{.bias = false}>>, '
                    'Named<"bn", BatchNorm>>>, ReLU, Scope<"layer1", Sequential<'
                    'Scope<"0", Residual<Sequential<Named<"conv1", Conv<8>>, ReLU, Named<"conv2", Conv<8>>>>>, ReLU, '
                    'Scope<"1", Residual<Sequential<Named<"conv1", Conv<12, Window{.kernel = 3, .stride = 2, .pad = 1}>>, ReLU, '
                    'Named<"conv2", Conv<12>>>, Named<"down.0", Conv<12, Window{.kernel = 1, .stride = 2}>>>>>>, ReLU, GlobalAvgPool, '
                    'Named<"fc", Linear<5>>>',
        "dense": "Sequential<Concat<Identity, Sequential<Conv<3>, ReLU>>, Concat<Identity, Sequential<Conv<3>, ReLU>>, "
                 "Concat<Identity, Sequential<Conv<3>, ReLU>>, Sum<Conv<5, Window{.kernel = 1}>, Conv<5>, Conv<5, Window{.kernel = 5, .pad = 2}>>>",
        "unet": "Sequential<Conv<4>, ReLU, Concat<Identity, Sequential<MaxPool<>, Conv<8>, ReLU, Concat<Identity, Sequential<MaxPool<>, Conv<8>, "
                "ConvTranspose<6>>>, Conv<4>, Upsample<2>>>, Conv<3>, Upsample<Pair{2, 3}, Upsampling::Rule::bilinear>, Crop<Pad{1, 2, 2, 0}>>",
        "squeeze_excitation": "Sequential<Conv<8>, SqueezeExcitation<8, 4>, Conv<8>, Scale<Identity, Sequential<GlobalAvgPool, Linear<4>, ReLU, "
                              "Linear<8>, Sigmoid>>, LayerScale<>, ChannelShuffle<2>, Conv<3>>",
        "as_exported": "Sequential<Conv<8, Window{.kernel = 3, .pad = {2, 1, 1, 3}}>, ChannelShuffle<2>, GroupNorm<2>, ReLU, "
                       "ConvTranspose<6, Window{.kernel = 3, .stride = 2, .pad = {1, 0, 1, 0}}>, GlobalAvgPool, Conv<3, Window{.kernel = 1}>>",
        "one_pixel": "Sequential<Conv<4, Window{.kernel = 3, .stride = 2, .pad = 1}>, Conv<4, Window{.kernel = 3, .stride = 2, .pad = 1}>, "
                     "GlobalAvgPool, Conv<3, Window{.kernel = 1}>>",
        "plain_norms": "Sequential<Conv<8>, GroupNorm<4, NormOptions{.affine = false}>, Conv<8>, LayerNormWith<NormOptions{.affine = false}>, "
                       "Conv<6>, Scale<Identity, Sequential<GlobalAvgPool, Conv<6, Window{.kernel = 1}>, Sigmoid>>, GlobalAvgPool, Linear<3, false>>",
        "gates": "Sequential<Conv<8>, Hardswish, Scale<Identity, Sequential<GlobalAvgPool, Conv<4, Window{.kernel = 1}>, ReLU, "
                 "Conv<8, Window{.kernel = 1}>, Hardsigmoid>>, Conv<8>, Scale<Identity, Sequential<GlobalAvgPool, Conv<4, Window{.kernel = 1}>, "
                 "ReLU, Conv<8, Window{.kernel = 1}>, Hardsigmoid>>, Conv<8>, Conv<4>, LayerScale<>, Conv<3>, ReLU, LayerScale<>>",
        "concat_of_concats": "Sequential<Conv<8>, Concat<Conv<2, Window{.kernel = 1}>, "
                             "Sequential<Conv<3, Window{.kernel = 1}>, ReLU, Concat<Conv<2, Window{.kernel = {1, 3}, .pad = {0, 1}}>, "
                             "Conv<3, Window{.kernel = {3, 1}, .pad = {1, 0}}>>>, "
                             "Sequential<Conv<4, Window{.kernel = 1}>, ReLU, Conv<4>, Concat<Conv<2, Window{.kernel = {1, 3}, .pad = {0, 1}}>, "
                             "Conv<3, Window{.kernel = {3, 1}, .pad = {1, 0}}>>>, "
                             "Sequential<MaxPool<Window{.kernel = 3, .pad = 1}>, Conv<2, Window{.kernel = 1}>>>>",
        "flattened": "Sequential<Conv<4, Window{.kernel = 3, .stride = 2, .pad = 1}>, Flatten, Linear<10>, ReLU, Dropout<std::ratio<1, 5>>, "
                     "Linear<3, false>>",
    }


# Those whose names in the type above are the importer's.
NAMED = {"residual"}


class Imports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.models, lines, cases = {}, [], []
        for name, (make, shape) in MODELS.items():
            cls.models[name] = model = make()
            onnx.save(model, cls.folder / f"{name}.onnx")
            options = [f"--namespace=small_{name}", f"--header={cls.folder / name}.hpp", f"--weights={cls.folder / name}.safetensors"]
            with contextlib.redirect_stdout(io.StringIO()):
                assert convert.main([str(cls.folder / f"{name}.onnx"), *options]) == 0, name
            lines.append(f'#include "{name}.hpp"')
            extents = ", ".join(map(str, shape))
            cases.append(f'  if (what == "{name}") return imported::run(small_{name}::Net::layers, {{{extents}}}, argv[2], argv[3], argv[4]);')
            if name in types():
                names = "own" if name in NAMED else "ignored"
                lines.append(f"using Known_{name} = lrcnn::{types()[name]};")
                cases.append(f'  if (what == "{name} type") return imported::compare(small_{name}::Net::layers, Known_{name}::layers, {{{extents}}}, '
                             f"imported::Names::{names});")
        (cls.folder / "main.cpp").write_text("\n".join(
            ['#include "import/imported.hpp"', "#include <lrcnn/network/squeeze_excitation.hpp>", "#include <string_view>",
             "using namespace lrcnn;", *lines, "int main(int, char** argv) {",
             "  const std::string_view what = argv[1];", *cases, "  return 2;", "}"]) + "\n")
        command = [COMPILER, *FLAGS, "-O1", f"-I{ROOT}/tests", "-I.", "main.cpp", ROOT / "tests/import/imported.cpp", "-o", "main", "-pthread"]
        done = subprocess.run(command, cwd=cls.folder, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr[:5000]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_program(self, *arguments):
        done = subprocess.run([self.folder / "main", *arguments], cwd=self.folder, text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr

    def test_predictions_are_those_of_onnx(self):
        for name, (_, shape) in MODELS.items():
            with self.subTest(name):
                x = np.random.default_rng(7).uniform(-1, 2, shape).astype(np.float32)
                wanted = ReferenceEvaluator(self.models[name]).run(None, {"x": x})[0].reshape(-1).astype(np.float64)
                x.astype(np.float64).tofile(self.folder / "x")
                self.assertEqual(self.run_program(name, f"{name}.safetensors", "x", "y"), (0, ""))
                given = np.fromfile(self.folder / "y")
                self.assertEqual(given.shape, wanted.shape)
                self.assertGreater(np.abs(wanted).max(), 0)
                self.assertLess(np.abs(given - wanted).max(), 1e-5 * max(1.0, np.abs(wanted).max()))

    def test_types_are_as_a_person_writes_them(self):
        for name in types():
            with self.subTest(name):
                code, text = self.run_program(name + " type")
                self.assertEqual(code, 0, text)
                self.assertTrue(text.startswith("equal: "), text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
