"""torchvision's networks through ONNX to lrcnn: types and predictions. Started by scripts/bench --import.

    import.py --compiler CXX [--flags FLAG...] [--exports kept,folded,dynamo] [--keep FOLDER] [NETWORK...]

A network with random weights is exported, imported by scripts/import, compiled, and predicts on lrcnn's reference backend in double, as does
PyTorch. The largest difference, as a share of the largest output, is at most 1e-5. Exports:
    kept     the TorchScript exporter, in training mode where the network has dropout: norms stay. Where lrcnn has the network, its type and the
             imported one have to be the same: layers, shapes, parameters with their names
    folded   the same exporter as it is by default: norms become part of convolutions
    dynamo   PyTorch's newer exporter, which folds norms, too
Status 1: a type or a prediction differs, or an import failed.
"""
import argparse
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import torchvision

from networks import randomise

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 1e-5
CLASSES = 1000
# The type that a network has in lrcnn; how its parameters are called in files, and the extents of the input.
TYPES = {
    **{f"vgg{n}": f"Sequential<VggTrunk<{convs}>, VggHead<>>"
       for n, convs in ((11, "1, 1, 2, 2, 2"), (13, "2, 2, 2, 2, 2"), (16, "2, 2, 3, 3, 3"), (19, "2, 2, 4, 4, 4"))},
    **{f"resnet{n}": f"ResNet{n}<>" for n in (18, 34, 50, 101, 152)},
    "mobilenet_v2": "MobileNetV2<>",
    "squeezenet1_1": "SqueezeNet11<>",
    **{f"densenet{n}": f"DenseNet{n}<>" for n in (121, 161, 169, 201)},
    **{f"convnext_{n.lower()}": f"ConvNeXt{n}<{CLASSES}, std::ratio<0>>" for n in ("Tiny", "Small", "Base", "Large")},
    "googlenet": None,
    "inception_v3": None,
    "mobilenet_v3_large": None,
    "mobilenet_v3_small": None,
    "resnext50_32x4d": None,
}
NETWORKS = ("convnext", "densenet", "mobilenet", "resnet", "squeezenet", "vgg")   # headers
TRAINED = ("vgg", "squeezenet", "mobilenet")   # exported in training mode, for the sake of their dropout


def make(name):
    torch.manual_seed(19)
    options = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    net = getattr(torchvision.models, name)(weights=None, **options).eval()
    randomise(net)
    return net


def size_of(name):
    return 224 if name.startswith("vgg") else 96 if name == "inception_v3" else 64   # Inception's least is 75


def export(net, name, kind, file):
    x = torch.zeros(1, 3, size_of(name), size_of(name))
    modes = torch.onnx.TrainingMode
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if kind == "dynamo":
            torch.onnx.export(net, (x,), file, dynamo=True)
        elif kind == "folded":
            torch.onnx.export(net, x, file, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
        elif name.startswith(TRAINED):
            torch.onnx.export(net.train(), x, file, dynamo=False, training=modes.TRAINING, do_constant_folding=False)
            net.eval()
        else:
            torch.onnx.export(net, x, file, dynamo=False, training=modes.PRESERVE, do_constant_folding=False)


def run(command, **options):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, **options)
    if done.returncode != 0:
        raise RuntimeError((done.stdout + done.stderr).strip()[-3000:])
    return done.stdout.strip()


def program(name, kinds, size):
    """One program for all exports of a network: PROGRAM EXPORT WEIGHTS INPUT OUTPUT, and PROGRAM types."""
    lines = ['#include "import/imported.hpp"', *(f'#include "{kind}.hpp"' for kind in kinds),
             *(f"#include <lrcnn/network/{header}.hpp>" for header in NETWORKS), "#include <string_view>", "using namespace lrcnn;"]
    if TYPES[name]:
        lines.append(f"using Known = {TYPES[name]};")
    lines += ["int main(int, char** argv) {", f"  constexpr Input input{{1, 3, {size}, {size}}};", "  const std::string_view what = argv[1];"]
    if TYPES[name] and "kept" in kinds:
        names = "vgg" if name.startswith("vgg") else "own"
        lines.append(f'  if (what == "types") return imported::compare(kept::Net::layers, Known::layers, input, imported::Names::{names});')
    lines += [f'  if (what == "{kind}") return imported::run({kind}::Net::layers, input, argv[2], argv[3], argv[4]);' for kind in kinds]
    return "\n".join([*lines, "  return 2;", "}"]) + "\n"


def check(name, kinds, folder, options):
    """Goes all the way with one network. Yields lines of figures; the last of each says whether it is as it should be."""
    net, size = make(name), size_of(name)
    for kind in kinds:
        export(net, name, kind, folder / f"{kind}.onnx")
        started = time.time()
        run([ROOT / "scripts/import", f"{kind}.onnx"], cwd=folder, env={**os.environ, "LRCNN_ONNX_PYTHON": sys.executable})
        yield f"{name} {kind}: imported in {time.time() - started:.1f} s", True
    (folder / "main.cpp").write_text(program(name, kinds, size))
    started = time.time()
    run([*options.compile, "main.cpp", options.runner, "-o", "main", "-pthread"], cwd=folder)
    yield f"{name}: compiled in {time.time() - started:.1f} s", True
    if TYPES[name] and "kept" in kinds:
        done = subprocess.run([folder / "main", "types"], text=True, capture_output=True)
        yield f"{name}: {TYPES[name]}: {done.stdout.strip() or done.stderr.strip()}", done.returncode == 0
    x = torch.rand(1, 3, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    x.numpy().tofile(folder / "x")
    with torch.no_grad():
        wanted = net.double()(x).numpy().reshape(-1)
    for kind in kinds:
        run([folder / "main", kind, f"{kind}.safetensors", "x", "y"], cwd=folder)
        given = np.fromfile(folder / "y")
        if given.shape != wanted.shape:
            yield f"{name} {kind}: {given.size} outputs instead of {wanted.size}", False
            continue
        difference = np.abs(given - wanted).max() / np.abs(wanted).max()
        yield f"{name} {kind}: prediction differs by {difference:.1e}", bool(difference <= LIMIT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--flags", nargs="*", default=["-O2"])
    parser.add_argument("--exports", default="kept,folded,dynamo")
    parser.add_argument("--keep", help="a folder that the files stay in, rather than a temporary one")
    parser.add_argument("networks", nargs="*", help="all, unless some are named: " + ", ".join(TYPES))
    options = parser.parse_args()
    unknown = [name for name in options.networks if name not in TYPES]
    if unknown:
        parser.error(f"unknown networks {', '.join(unknown)}; known are {', '.join(TYPES)}")
    if options.keep:
        options.keep = pathlib.Path(options.keep).resolve()   # programs are started in other folders
    options.compile = [options.compiler, "-std=c++20", *options.flags, f"-I{ROOT}/include", f"-I{ROOT}/tests", "-I."]
    with tempfile.TemporaryDirectory() as folder:
        options.runner = pathlib.Path(folder) / "imported.o"
        run([*options.compile, "-c", ROOT / "tests/import/imported.cpp", "-o", options.runner])
        return check_all(options)


def check_all(options):
    failed = []
    for name in options.networks or TYPES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(options.keep or temporary) / name
            folder.mkdir(parents=True, exist_ok=True)
            try:
                for line, right in check(name, options.exports.split(","), folder, options):
                    print(line if right else f"{line}  <- wrong", flush=True)
                    failed += [] if right else [name]
            except RuntimeError as error:
                print(f"{name}: {error}  <- wrong", flush=True)
                failed.append(name)
    print(f"wrong: {', '.join(dict.fromkeys(failed))}" if failed else "all as it should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
