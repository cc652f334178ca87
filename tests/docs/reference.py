#!/usr/bin/env python3
"""Makes docs/reference.md of the headers' docstrings, or checks that it is what they say.

    reference.py [--update]

PAGE lists which types are on the page. Of a struct it shows the text before it and its fields with defaults and meaning; of a class or
a layer, the text, and each public function that has a docstring. A type that is not found is an error.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "reference.md"
HEAD = """# Reference

<!-- Made by tests/docs/reference.py --update of the headers' docstrings; change those. -->

Fields, functions and layers with their defaults, units and errors, as the headers have them. Types are in namespace `lrcnn`, and all of
them come with `<lrcnn/lrcnn.hpp>` or the header that the section names. Structs of options are written with their fields' names:
`TrainerOptions{.seed = 3, .threads = 2}`.
"""
PAGE = [
    ("Training", [("train/trainer.hpp", "BasicTrainer"), ("train/trainer_options.hpp", "TrainerOptions"), ("train/trainer_options.hpp", "GradientClip"),
                  ("train/update_ranges.hpp", "ParameterRule"), ("train/trainer_options.hpp", "StepReport"), ("train/trainer_options.hpp", "FitOptions"),
                  ("train/history.hpp", "EpochRecord"), ("train/metrics.hpp", "Metrics"), ("layer/loss.hpp", "LossResult"),
                  ("train/training_format.hpp", "TrainingState")]),
    ("Optimizers and learning rates", [("train/optimizer_settings.hpp", "Sgd"), ("train/optimizer_settings.hpp", "AdamW"),
                                       ("train/parameter_update.hpp", "ParameterUpdate"), ("train/schedule.hpp", "ConstantLr"),
                                       ("train/schedule.hpp", "StepLr"), ("train/schedule.hpp", "CosineLr"), ("train/schedule.hpp", "LrClock")]),
    ("Losses over pixels", [("layer/pixel_loss.hpp", "PixelCrossEntropy"), ("layer/dice.hpp", "DiceLoss")]),
    ("Prediction", [("exec/predictor.hpp", "BasicPredictor")]),
    ("Parameters", [("network/parameters.hpp", "Parameter"), ("layer/parameter_shape.hpp", "ParameterShape")]),
    ("Convolutions and pools", [("shape/window.hpp", "Window"), ("shape/window.hpp", "Pair"), ("shape/window.hpp", "Pad"), ("layer/conv.hpp", "ConvOptions"),
                                ("layer/conv.hpp", "Conv"), ("layer/conv.hpp", "ConvTranspose"), ("layer/pool.hpp", "MaxPool"),
                                ("layer/pool.hpp", "AvgPool"), ("layer/pool.hpp", "AdaptiveAvgPool"), ("layer/pool.hpp", "GlobalAvgPool"),
                                ("layer/resample.hpp", "Upsample"), ("shape/upsampling.hpp", "Upsampling")]),
    ("Activations", [("layer/activation.hpp", name) for name in ("ReLU", "LeakyReLU", "ReLU6", "SiLU", "GELU", "Hardswish", "Sigmoid", "Hardsigmoid")]),
    ("Norms", [("layer/norm.hpp", "NormOptions"), ("layer/norm.hpp", "BatchNormWith"), ("layer/norm.hpp", "BatchNorm"),
               ("layer/norm.hpp", "FrozenBatchNorm"), ("layer/norm.hpp", "GroupNorm"), ("layer/norm.hpp", "InstanceNormWith"),
               ("layer/norm.hpp", "LayerNormWith"), ("layer/norm.hpp", "SlabBatchNormWith")]),
    ("Data", [("data/loader.hpp", "LoaderOptions"), ("data/transform.hpp", "Augmentation"), ("data/crop_set.hpp", "CropOptions"),
              ("data/image_folder.hpp", "ImageFolderOptions"), ("data/class_folders.hpp", "SplitOptions")]),
    ("Image files", [("data/image_file.hpp", "ImageInfo"), ("data/cached_image.hpp", "CachedImage"), ("data/tile_cache.hpp", "TileCacheOptions"),
                     ("data/tile_cache.hpp", "TileCacheReport"), ("data/image_source.hpp", "ImageSourceOptions"), ("data/tiff_layout.hpp", "TiffOptions"),
                     ("data/openslide.hpp", "SlideOptions"), ("data/jpeg.hpp", "JpegOptions"), ("data/png.hpp", "PngOptions"), ("data/npy.hpp", "ArrayOptions"),
                     ("data/image_sink.hpp", "ImageSinkOptions"), ("data/tiff_level.hpp", "TiffWriterOptions")]),
    ("Labels by rows", [("layer/label_rows.hpp", "LabelRows"), ("data/mask_classes.hpp", "MaskClasses"), ("data/mask_source.hpp", "MaskOptions"),
                        ("data/mask_source.hpp", "MaskSource")]),
    ("Weights and tensors of others", [("interop/weight_match.hpp", "WeightOptions"), ("interop/weight_match.hpp", "WeightReport"),
                                       ("interop/weights.hpp", "SaveOptions"), ("interop/dlpack_source.hpp", "DlpackSource"),
                                       ("interop/dlpack_labels.hpp", "DlpackLabels")]),
    ("Samples that a device reads itself", [("data/sample_array.hpp", "SampleArray"), ("data/direct_source.hpp", "DirectOptions"),
                                            ("backend/cudnn/host_memory.hpp", "PlacementOptions")]),
    ("Recomputation", [("plan/recomputation_graph.hpp", "RecomputationNode"), ("plan/recomputation_graph.hpp", "RecomputationEdge"),
                       ("plan/recomputation_graph.hpp", "RecomputationGraph"), ("plan/lower_sets.hpp", "RecomputationOptions"),
                       ("plan/lower_sets.hpp", "RecomputationSegment"), ("plan/lower_sets.hpp", "RecomputationStrategy"),
                       ("plan/lower_sets.hpp", "RecomputationPlanner")]),
    ("Plans and backends", [("plan/options.hpp", "PlanOptions"), ("plan/costs.hpp", "Costs"), ("plan/rates.hpp", "Rates"),
                            ("plan/frontier.hpp", "Frontier"), ("plan/section_search.hpp", "SolvedPolicy"), ("policy/ready_made.hpp", "ReadyMadePolicy"),
                            ("exec/policy_choice.hpp", "Budget"), ("exec/policy_choice.hpp", "PolicyChoice"), ("exec/predictor.hpp", "PredictorOptions"),
                            ("train/measure_costs.hpp", "MeasureOptions"), ("backend/onednn.hpp", "OnednnOptions"), ("core/choice_file.hpp", "TuningOptions")]),
]
FIELD = re.compile(r"^  (?! |static|friend|constexpr|template|explicit|using|return)([\w:<>,\s\*&]+?)\s+(\w+)\s*(?:=\s*([^;]+?)|(\{[^;]*\}))?;\s*(?:///<\s*(.*))?$")
SEVERAL = re.compile(r"^  ([\w:]+) (\w+(?: = [^,;]+)?(?:, \w+(?: = [^,;]+)?)+);\s*(?:///<\s*(.*))?$")


class Stop(Exception):
    """Something on the page cannot be found; the text says what."""


def comment_before(lines, at):
    """The /// lines that end before line `at`, as text."""
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith("///"):
        first -= 1
    return [line.strip()[3:].removeprefix(" ") for line in lines[first:at]]


def body_of(header, name):
    """Docstring, template line and lines of the body of a type."""
    lines = (ROOT / "include/lrcnn" / header).read_text().splitlines()
    for at, line in enumerate(lines):
        if re.match(rf"(struct|class) {name}\b[^;]*\{{$", line):
            begin = at - 1 if lines[at - 1].startswith(("template", "  requires")) else at
            while not lines[begin - 1].startswith("///") and lines[begin].startswith(("  requires",)):
                begin -= 1
            end = next(i for i in range(at, len(lines)) if lines[i].startswith("};"))
            return comment_before(lines, begin), lines[begin:at], lines[at + 1:end]
    raise Stop(f"include/lrcnn/{header} has no type {name}")


def text_of(comment):
    """Docstring as Markdown: sentences as they are; 'Shapes:', 'Errors:' and the like are lines of a list."""
    out, items = [], []
    for line in comment:
        if match := re.match(r"(Shapes|Errors|Pre|Post|Source|Cost|WARNING):\s*(.*)", line):
            items.append([match[1], match[2]])
        elif items and line.startswith(" "):
            items[-1][1] += " " + line.strip()
        elif items and line:
            out.append(line)
        elif line:
            out.append(line)
    text = " ".join(out)
    return (text + "\n" if text else "") + "".join(f"- {what}: {rest}\n" for what, rest in items)


def cell(text):
    return text.replace("|", "\\|")


def fields(name, body):
    """Rows of the table of a struct's fields."""
    rows = []
    for at, line in enumerate(body):
        if line.startswith(" private:"):
            break
        meaning = None
        if match := SEVERAL.match(line):
            names = [tuple((part.strip() + " = ").split(" = ")[:2]) for part in match[2].split(",")]
            meaning, kind = match[3], match[1]
        elif (match := FIELD.match(line)) and match[2] != "operator":
            names, kind, meaning = [(match[2], match[3] or match[4] or "")], match[1], match[5]
        else:
            continue
        follow = at + 1
        while meaning is not None and follow < len(body) and body[follow].strip().startswith("///<"):
            meaning += " " + body[follow].strip()[4:].strip()
            follow += 1
        if meaning is None:
            meaning = " ".join(comment_before(body, at))
        for field, default in names:
            default = default.strip()
            rows.append(f"| `{field}` | `{cell(kind)}`{', `' + cell(default) + '`' if default not in ('', '{}') else ''} | {cell(meaning)} |")
    return rows


def functions(body):
    """Public functions with a docstring: (signature, text)."""
    found, public = [], True
    for at, line in enumerate(body):
        if re.match(r" (public|private|protected):", line):
            public = "public" in line
        if not public or not line.startswith("  ///") or (at > 0 and body[at - 1].startswith("  ///")) or "///<" in line:
            continue
        end = at
        while body[end].startswith("  ///"):
            end += 1
        signature, first = "", end
        while first < len(body) and (body[first].strip().startswith("requires") or not re.search(r"[{;]\s*$|\{ .*\}$|^\s+:", body[first])):
            signature += "" if body[first].strip().startswith("requires") else " " + body[first].strip()
            first += 1
        if first < len(body) and not re.match(r"\s+:", body[first]):
            signature += " " + body[first].strip()
        signature = re.sub(r"\s*\{( .*\})?\s*$|;$", "", signature.strip()).replace("static constexpr ", "").replace("constexpr ", "")
        signature = re.sub(r"^template <[^>]*> (requires\(?.*?\)? )?", "", signature)
        if "(" not in signature or signature.startswith(("friend", "using", "static_assert")):
            continue
        found.append((re.sub(r"\s+", " ", signature), text_of([line.strip()[3:].removeprefix(" ") for line in body[at:end]])))
    return found


def section(header, name):
    comment, template, body = body_of(header, name)
    out = [f"### {name}\n"]
    signature = " ".join(line.strip() for line in template)
    if signature:
        out.append(f"`{signature} {name}`\n")
    out.append(text_of(comment))
    rows = fields(name, body)
    if rows:
        out += ["", "| field | type, default | |", "| --- | --- | --- |"] + rows
    listed = functions(body)
    for signature, text in listed:
        out.append(f"\n`{signature}`\n\n{text.rstrip()}")
    if not rows and not listed and not "".join(comment):
        raise Stop(f"include/lrcnn/{header}: {name} has neither docstring nor fields")
    return "\n".join(out).replace("\n\n\n", "\n\n") + f"\n\n(`<lrcnn/{header}>`)\n"


def page():
    text = HEAD
    for title, types in PAGE:
        text += f"\n## {title}\n"
        for header, name in types:
            text += "\n" + section(header, name)
    return text


def main():
    try:
        made = page()
    except Stop as e:
        sys.exit(f"reference.py: {e}")
    if sys.argv[1:] == ["--update"]:
        OUT.write_text(made)
        return
    there = OUT.read_text() if OUT.exists() else ""
    if made != there:
        sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), made.splitlines(True), str(OUT), "the headers"))
        sys.exit("docs/reference.md is not what the headers say; run tests/docs/reference.py --update")


main()
