#!/usr/bin/env python3
"""Makes docs/reference.md of the headers' docstrings, or checks that it is what they say.

    reference.py [--update]

PAGE lists which types and functions are on the page. Of a struct it shows the text before it and its fields with defaults and meaning; of a
class or a layer, the text, and each public function that has a docstring; of a name with () behind it, the free functions. Overloads without a
docstring stand with the one before them. What is not found is an error, and so is what programs in README.md or docs/ use and the page lacks.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "reference.md"
HEAD = """# Reference

<!-- Made by tests/docs/reference.py --update of the headers' docstrings; change those. -->

Types, functions and layers with their defaults, units and errors, as the headers have them. They are in namespace `lrcnn`, and all of
them come with `<lrcnn/lrcnn.hpp>` or the header that the section names. Structs of options are written with their fields' names:
`TrainerOptions{.seed = 3, .threads = 2}`.
"""
PAGE = [
    ("Training", [("train/trainer.hpp", "Trainer"), ("train/trainer.hpp", "BasicTrainer"), ("train/batch_loader.hpp", "BatchLoader"), ("train/trainer_options.hpp", "TrainerOptions"), ("train/trainer_options.hpp", "GradientClip"),
                  ("train/update_ranges.hpp", "ParameterRule"), ("train/update_ranges.hpp", "Decay"), ("train/trainer_options.hpp", "StepReport"), ("train/trainer_options.hpp", "FitOptions"),
                  ("train/history.hpp", "EpochRecord"), ("train/metrics.hpp", "Metrics"), ("train/metrics.hpp", "ConfusionMatrix"), ("layer/loss.hpp", "LossResult"),
                  ("train/training_format.hpp", "TrainingState"), ("train/initializer.hpp", "He"), ("train/initializer.hpp", "initialize()")]),
    ("Optimizers and learning rates", [("train/optimizer_settings.hpp", "Sgd"), ("train/optimizer_settings.hpp", "AdamW"),
                                       ("train/parameter_update.hpp", "ParameterUpdate"), ("train/schedule.hpp", "ConstantLr"),
                                       ("train/schedule.hpp", "StepLr"), ("train/schedule.hpp", "CosineLr"), ("train/schedule.hpp", "LrClock"),
                                       ("train/schedule.hpp", "steps()"), ("train/schedule.hpp", "epochs()")]),
    ("Losses over pixels", [("layer/pixel_loss.hpp", "PixelCrossEntropy"), ("layer/pixel_loss.hpp", "PixelFocal"), ("layer/pixel_loss.hpp", "PixelBinaryCrossEntropy"),
                            ("layer/pixel_loss.hpp", "MeanSquaredError"), ("layer/pixel_loss.hpp", "Huber"), ("layer/dice.hpp", "DiceLoss"),
                            ("layer/class_balance.hpp", "class_balance()"), ("layer/class_counts.hpp", "ClassBalance")]),
    ("Prediction", [("exec/predictor.hpp", "Predictor"), ("exec/predictor.hpp", "BasicPredictor"), ("exec/predictor.hpp", "PredictorOptions")]),
    ("Parameters", [("network/parameters.hpp", "Parameter"), ("layer/parameter_shape.hpp", "ParameterShape"),
                    *[("network/parameters.hpp", name) for name in ("flat_elements()", "parameter_elements()", "find_parameter()", "elements_of()")]]),
    ("Shapes, layers and tables", [("shape/shape.hpp", "Shape"), ("shape/shape.hpp", "Input"), ("core/view.hpp", "View"), ("layer/layer.hpp", "Layer"),
                                   ("network/table.hpp", "Table"), ("network/table.hpp", "Node"), ("network/sequential.hpp", "table_of()"),
                                   *[("network/table.hpp", name) for name in ("make_table()", "parameter_count()", "parameters_of()")],
                                   ("network/check.hpp", "output_shape()"), ("network/check.hpp", "describe()")]),
    ("Convolutions and pools", [("shape/window.hpp", "Window"), ("shape/window.hpp", "Pair"), ("shape/window.hpp", "Pad"), ("layer/conv.hpp", "ConvOptions"),
                                ("layer/conv.hpp", "Conv"), ("layer/conv.hpp", "ConvTranspose"), ("layer/pool.hpp", "MaxPool"),
                                ("layer/pool.hpp", "AvgPool"), ("layer/pool.hpp", "AdaptiveAvgPool"), ("layer/pool.hpp", "GlobalAvgPool"),
                                ("layer/resample.hpp", "Upsample"), ("shape/upsampling.hpp", "Upsampling")]),
    ("Activations", [("layer/activation.hpp", name) for name in ("ReLU", "LeakyReLU", "ReLU6", "SiLU", "GELU", "Hardswish", "Sigmoid", "Hardsigmoid")]),
    ("Other layers", [("layer/linear.hpp", "Linear"), ("layer/linear.hpp", "Flatten"), ("layer/dropout.hpp", "Dropout"), ("layer/dropout.hpp", "SpatialDropout"),
                      ("layer/dropout.hpp", "StochasticDepth"), ("network/squeeze_excitation.hpp", "SqueezeExcitation"), ("layer/channels.hpp", "LayerScale"),
                      ("layer/channels.hpp", "ChannelShuffle"), ("layer/pad.hpp", "ZeroPad"), ("layer/pad.hpp", "ReflectPad"), ("layer/pad.hpp", "Crop"),
                      ("layer/pad.hpp", "pad_layer()")]),
    ("Norms", [("layer/norm.hpp", "NormOptions"), ("layer/norm.hpp", "BatchNormWith"), ("layer/norm.hpp", "BatchNorm"),
               ("layer/norm.hpp", "FrozenBatchNorm"), ("layer/norm.hpp", "GroupNorm"), ("layer/norm.hpp", "InstanceNormWith"), ("layer/norm.hpp", "InstanceNorm"),
               ("layer/norm.hpp", "LayerNormWith"), ("layer/norm.hpp", "LayerNorm"), ("layer/norm.hpp", "SlabBatchNormWith")]),
    ("Data sets and loaders", [("data/dataset.hpp", "Dataset"), ("data/dataset.hpp", "Split"), ("data/dataset.hpp", "check()"),
                               ("data/dataset.hpp", "subset()"), ("data/detect.hpp", "load_dataset()"), ("data/detect.hpp", "has_dataset()"),
                               ("data/shapes.hpp", "ShapesOptions"), ("data/shapes.hpp", "make_shapes()"), ("data/loader.hpp", "Loader"),
                               ("data/loader.hpp", "LoaderOptions"), ("data/batch.hpp", "Batch"), ("data/transform.hpp", "Normalization"),
                               ("data/transform.hpp", "normalization_of()"), ("data/transform.hpp", "Augmentation")]),
    ("Folders of photographs", [("data/image_folder.hpp", "load_image_folder()"), ("data/image_folder.hpp", "ImageFolderOptions"),
                                ("data/class_folders.hpp", "SplitOptions"), ("data/class_folders.hpp", "has_class_folders()")]),
    ("Crops", [("data/crops.hpp", "CropLoader"), ("data/crop_set.hpp", "CropOptions"), ("data/crop_set.hpp", "CropImage"),
               ("data/crop_set.hpp", "CropFocus"), ("data/crop_set.hpp", "CropAugmentation"), ("data/color_jitter.hpp", "ColorJitter"),
               ("data/crop_set.hpp", "CropOrder")]),
    ("Sources and sinks of rows", [("data/row_source.hpp", "RowSource"), ("data/row_source.hpp", "MemorySource"), ("data/row_sink.hpp", "RowSink"),
                                   ("data/row_sink.hpp", "MemorySink"), ("data/image_source.hpp", "ImageSource"),
                                   ("data/image_source.hpp", "ImageSourceOptions"), ("data/image_sink.hpp", "ImageSink"),
                                   ("data/image_sink.hpp", "ImageSinkOptions")]),
    ("Image files", [("data/image_file.hpp", "open_image()"), ("data/images.hpp", "create_image()"), ("data/image_file.hpp", "ImageInfo"),
                     ("data/image_file.hpp", "ImageFile"), ("data/image_file.hpp", "SampleType"), ("data/image_file.hpp", "sample_name()"),
                     ("data/image_file.hpp", "ImageRegion"), ("data/tile_cache.hpp", "TileCache"), ("data/image_writer.hpp", "ImageWriter"),
                     ("data/cached_image.hpp", "CachedImage"), ("data/tile_cache.hpp", "TileCacheOptions"),
                     ("data/tile_cache.hpp", "TileCacheReport"), ("data/tiff_layout.hpp", "TiffOptions"),
                     ("data/openslide.hpp", "SlideOptions"), ("data/jpeg.hpp", "JpegOptions"), ("data/png.hpp", "PngOptions"), ("data/npy.hpp", "ArrayOptions"),
                     ("data/npy.hpp", "ArrayLayout"),
                     ("data/tiff_level.hpp", "TiffWriterOptions"), *[(f"data/{name}.hpp", f"open_{name}()") for name in ("tiff", "jpeg", "png", "npy")],
                     ("data/npy.hpp", "open_raw()"), ("data/openslide.hpp", "open_slide()"), ("data/tiff_writer.hpp", "TiffWriter"),
                     ("data/png_writer.hpp", "PngWriter"), ("data/npy.hpp", "NpyWriter")]),
    ("Labels and masks", [("layer/labels.hpp", "Labels"), ("layer/label_rows.hpp", "LabelRows"), ("data/mask_source.hpp", "MaskedImages"), ("data/mask_classes.hpp", "MaskClasses"), ("data/mask_source.hpp", "MaskOptions"),
                        ("data/mask_source.hpp", "MaskSource")]),
    ("Weights and tensors of others", [("interop/weights.hpp", "load_weights()"), ("interop/weights.hpp", "read_weights()"),
                                       ("interop/weights.hpp", "weights_of()"), ("interop/safetensors_reader.hpp", "SafetensorsFile"),
                                       ("interop/safetensors_writer.hpp", "write_safetensors()"), ("interop/npy_folder.hpp", "NpyFolder"),
                                       ("interop/npy_folder.hpp", "write_npy_folder()"), ("interop/tensor_file.hpp", "TensorType"),
                                       ("interop/weight_match.hpp", "freeze_loaded()"), ("interop/dlpack_tensor.hpp", "DlpackTensor"),
                                       ("interop/dlpack_export.hpp", "shared_tensor()"), ("interop/dlpack_export.hpp", "to_dlpack()"),
                                       ("interop/weight_match.hpp", "WeightOptions"), ("interop/weight_match.hpp", "WeightReport"),
                                       ("interop/weights.hpp", "SaveOptions"), ("interop/dlpack_source.hpp", "DlpackSource"),
                                       ("interop/dlpack_labels.hpp", "DlpackLabels")]),
    ("Samples that a device reads itself", [("data/sample_array.hpp", "SampleArray"), ("data/direct_source.hpp", "DirectOptions"),
                                            ("backend/cudnn/host_memory.hpp", "PlacementOptions")]),
    ("Recomputation", [("plan/recomputation_graph.hpp", "recomputation_graph()"), ("plan/recomputation_graph.hpp", "RecomputationNode"), ("plan/recomputation_graph.hpp", "RecomputationEdge"),
                       ("plan/recomputation_graph.hpp", "RecomputationGraph"), ("plan/lower_sets.hpp", "RecomputationOptions"),
                       ("plan/lower_sets.hpp", "RecomputationSegment"), ("plan/lower_sets.hpp", "RecomputationStrategy"),
                       ("plan/lower_sets.hpp", "RecomputationPlanner")]),
    ("Plans", [("plan/peak.hpp", "peak_bytes()"), ("plan/make_plan.hpp", "make_plan()"), ("plan/plan.hpp", "Plan"), ("plan/print.hpp", "print_memory()"),
               ("plan/print.hpp", "print_steps()"), ("plan/checker.hpp", "check_plan()"), ("plan/target.hpp", "Target"), ("policy/spec.hpp", "PolicySpec"),
               ("policy/parse.hpp", "parse_policy()"), ("plan/rates.hpp", "rates_of()"), ("plan/frontier.hpp", "find_frontier()"),
               ("train/measure_costs.hpp", "measure_costs()"), ("train/cost_file.hpp", "known_costs()")]),
    ("Backends and options of plans", [("backend/reference.hpp", "Reference"), ("backend/onednn.hpp", "Onednn"), ("backend/onednn.hpp", "OnednnBf16"),
                            ("core/vectors.hpp", "Vectors"), ("plan/options.hpp", "PlanOptions"), ("plan/costs.hpp", "Costs"), ("plan/rates.hpp", "Rates"),
                            ("plan/frontier.hpp", "Frontier"), ("plan/solved_policy.hpp", "SolvedPolicy"), ("policy/ready_made.hpp", "ReadyMadePolicy"),
                            ("exec/policy_choice.hpp", "Budget"), ("exec/policy_choice.hpp", "PolicyChoice"),                             ("train/measure_costs.hpp", "MeasureOptions"), ("backend/onednn.hpp", "OnednnOptions"), ("core/choice_file.hpp", "TuningOptions")]),
    ("Errors and texts", [("core/error.hpp", name) for name in ("Error", "ShapeError", "PlanError", "MemoryError", "BackendError", "DataError")] +
     [("core/error.hpp", "NumericError"), ("core/bytes.hpp", "format_bytes()"), ("version.hpp", "version()")]),
]
# Pages for those who write code of the library or beside it; what they use need not be listed.
FOR_OTHERS = ("reference.md", "benchmarks.md", "layout.md", "extending.md", "how-it-works.md", "cuda.md")
# Headers whose contents are explained elsewhere.
EXPLAINED = {
    "policy/": "docs/policies.md",
    "network/": "docs/networks.md",
    "plan/step.hpp": "docs/policies.md",
    "layer/concepts.hpp": "docs/networks.md",   # Named
    "backend/cudnn": "docs/cuda.md",
    "backend/onednn/": "docs/layout.md",
    "core/half.hpp": "docs/extending.md",
}
ELSEWHERE = {"Index", "round_up()", "Kind", "seconds()", "then()", "extents()", "without()", "to_string()", "run()"}   # plain, or words that mean something else there
STATEMENT = ("struct ", "class ", "enum ", "using ", "friend ", "static_assert", "template class", "extern ", "concept ", "namespace ")
FIELD = re.compile(r"^(.*?[\s&*>])(\w+)\s*(?:=\s*(.*)|(\{.*\}))?$")
SEVERAL = re.compile(r"^([\w:]+) (\w+(?: = [^,;{]+|\{\})?(?:, \w+(?: = [^,;{]+|\{\})?)+)$")
ITEM = re.compile(r"(Shapes|Errors|Pre|Post|Source|Cost|WARNING):\s*(.*)")


class Stop(Exception):
    """Something on the page cannot be found; the text says what."""


def comment_before(lines, at):
    """The /// lines that end before line `at`, as text."""
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith("///"):
        first -= 1
    return [docstring_line(line) for line in lines[first:at]]


def docstring_line(line):
    return line.strip()[3:].removeprefix(" ")


def end_of(text, at, opening="(", closing=")"):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] in opening:
            depth += 1
        elif text[i] in closing and text[i - 1:i + 1] != "->":
            depth -= 1
            if depth == 0:
                return i + 1
    raise Stop(f"brackets do not match in {text}")


class Member:
    """A declaration of a namespace or a type: docstring, text without it, and what stands behind it as ///<, or None."""

    def __init__(self, comment, text, meanings):
        self.comment, self.meaning = comment, meanings[-1][1] if meanings else None
        self.meanings = meanings   # of each line that has one: the line and its meaning
        self.text = re.sub(r"\s+", " ", text.strip())
        self.declared = self.without_template()
        self.template = self.text[:end_of(self.text, self.text.index("<"), "<", ">")] + " " if self.text.startswith("template <") else ""
        self.is_function = False
        self.signature, self.name = self.function()

    def without_template(self):
        text = self.text
        while text.startswith("template <"):
            text = text[end_of(text, text.index("<"), "<", ">"):].strip()
            while text.startswith("requires"):
                text = text[len("requires"):].strip()
                if text.startswith("requires"):
                    text = text[text.index("{"):]
                    text = text[end_of(text, 0, "{", "}"):].strip()
                elif text.startswith("("):
                    text = text[end_of(text, 0):].strip()
                else:
                    name = re.match(r"!?[\w:]+\s*", text)[0]
                    text = text[len(name):]
                    text = text[end_of(text, 0, "<", ">"):].strip() if text.startswith("<") else text
                if text.startswith(("&&", "||")):
                    text = "requires " + text[2:].strip()
        return re.sub(r"^((inline|constexpr|static(?= constexpr)|LRCNN_HOST_DEVICE) )+", "", text)

    def function(self):
        """Signature and name of a function that can be called; nothing for anything else."""
        text, depth = self.declared, 0
        if text.startswith(STATEMENT):
            return None, None
        at = text.find("operator()") + len("operator()") if "operator()" in text else 0
        while at < len(text):
            if text[at] == "<" and not text[:at].endswith("operator"):
                depth += 1
            elif text[at] == ">" and text[at - 1] != "-":
                depth -= 1
            elif depth == 0 and text[at] in "={;" and "operator" not in text[:at]:
                return None, None
            elif depth == 0 and text[at] == "(":
                break
            at += 1
        if at >= len(text) or text.startswith("(*", at):   # a pointer to a function is data
            return None, None
        end = end_of(text, at)
        self.is_function = True
        if re.search(r"=\s*delete", text[end:]):
            return None, None
        behind = re.match(r"\s*(const\b)?\s*(?:noexcept)?\s*(->[^{;]*|= 0)?", text[end:])
        name = re.search(r"(operator\S*|~?\w+)\s*$", text[:at])
        return text[:end] + "".join(" " + part.strip() for part in behind.groups() if part), name[1] if name else None

    def fields(self):
        """Names with types and defaults, if this declares data."""
        text = self.text.rstrip(";").strip()
        if self.is_function or not self.text.endswith(";") or text.startswith(STATEMENT + ("static ", "constexpr ", "template", "explicit ", "return ")):
            return []
        if match := SEVERAL.match(text):
            return [(match[1], *(part.strip().removesuffix("{}") + " = ").split(" = ")[:2]) for part in match[2].split(",")]
        if match := re.match(r"(.*)\(\*(\w+)\)(\(.*\))(?: = (.*))?$", text):   # a pointer to a function
            return [(f"{match[1]}(*){match[3]}", match[2], match[4] or "")]
        match = FIELD.match(text)
        return [(match[1].strip(), match[2], (match[3] or match[4] or "").strip())] if match else []


def complete(text):
    """Whether a declaration that begins so ends here."""
    text = re.sub(r"'(\\.|[^'\\])'", "0", re.sub(r'"(\\.|[^"\\])*"', '""', text)).strip()
    if any(text.count(a) != text.count(b) for a, b in ("()", "{}", "[]")) or not text.endswith((";", "}")):
        return False
    return not re.search(r"requires requires\s*(\([^()]*\))?\s*\{[^{}]*(\{[^{}]*\}[^{}]*)*\}$", text)


def members(lines):
    """The declarations in the lines of a namespace or of a type's body; in a body those that are public."""
    found, comment, text, meanings, public = [], [], "", [], True
    for line in lines:
        code = line.strip()
        if not text:
            if code.startswith("///<"):
                if found and found[-1].meaning is not None:
                    found[-1].meaning += " " + code[4:].strip()
                continue
            if code.startswith("///"):
                comment.append(docstring_line(line))
                continue
            if match := re.match(r"(public|private|protected):", code):
                public = match[1] == "public"
            if not code or code.startswith(("//", "#")) or match:
                comment = []
                continue
        if "///<" in code:
            code, meaning = (part.strip() for part in code.split("///<", 1))
            if not code and meanings:
                meanings[-1][1] += " " + meaning
            else:
                meanings.append([code, meaning])
        text += " " + re.sub(r"\s+//( .*)?$", "", code)
        if complete(text):
            if public:
                found.append(Member(comment, text, meanings))
            comment, text, meanings = [], "", []
    return found


def namespace_members(header):
    """What a header declares for its users: nothing of namespaces `detail`."""
    lines, inside = [], []
    for line in (ROOT / "include/lrcnn" / header).read_text().splitlines():
        if match := re.match(r"(?:inline )?namespace ([\w:]+) \{$", line):
            inside.append(match[1])
        elif re.match(r"\}\s+// namespace", line):
            inside.pop()
        elif not any("detail" in name for name in inside) and not line.startswith("#"):
            lines.append(line)
    return members(lines)


def body_of(header, name):
    """Docstring, template line and members of a type; None for members if it has no body of several lines."""
    lines = (ROOT / "include/lrcnn" / header).read_text().splitlines()
    for at, line in enumerate(lines):
        if re.match(rf"(struct|class) {name}\b[^;]*\{{$", line):
            begin = at - 1 if lines[at - 1].startswith(("template", "  requires")) else at
            while not lines[begin - 1].startswith("///") and lines[begin].startswith(("  requires",)):
                begin -= 1
            end = next(i for i in range(at, len(lines)) if lines[i].startswith("};"))
            return comment_before(lines, begin), " ".join(line.strip() for line in lines[begin:at] + ([name] if begin < at else [])), lines[at + 1:end]
    for member in namespace_members(header):
        if match := re.match(rf"(using {name} = .*|(?:struct|class|enum class) {name}\b.*|concept {name} = .*);$", member.declared):
            template = member.text[:member.text.index(member.declared)].strip() if member.declared in member.text else ""
            told = match[1].split(" = ")[0] if match[1].startswith("concept") else match[1].removesuffix(" {}")
            told = told.replace(", }", " }")
            return member.comment + [f"`{code.rstrip(',')}`: {meaning}." for code, meaning in member.meanings], f"{template} {told}".strip(), []
    raise Stop(f"include/lrcnn/{header} has no type {name}")


def text_of(comment):
    """Docstring as Markdown: sentences as they are; 'Shapes:', 'Errors:' and the like are lines of a list; what is indented before those is code."""
    parts, items, before = [], [], ""
    for line in comment:
        code = line.startswith("    ") and not items
        if match := ITEM.match(line):
            items.append([match[1], match[2]])
        elif items and line.startswith(" "):
            items[-1][1] += " " + line.strip()
        elif line:
            if ITEM.match(before) and re.match(r"[a-z]", line):
                raise Stop(f"'{line}' goes on with what stands before it, which the page would tear apart; indent it")
            if parts and parts[-1][0] == code:
                parts[-1][1] += ("\n" if code else " ") + (line[4:] if code else line)
            else:
                parts.append([code, line[4:] if code else line])
        before = line
    text = "\n\n".join(f"```\n{part}\n```" if code else part for code, part in parts)
    return (text + "\n" if text else "") + "".join(f"- {what}: {rest}\n" for what, rest in items)


def cell(text):
    return text.replace("|", "\\|")


def field_rows(body):
    """Rows of the table of a struct's fields."""
    rows = []
    for member in body:
        meaning = member.meaning if member.meaning is not None else " ".join(member.comment)
        for kind, name, default in member.fields():
            rows.append(f"| `{name}` | `{cell(kind)}`{', `' + cell(default) + '`' if default not in ('', '{}') else ''} | {cell(meaning)} |")
    return rows


def functions(body, only=None):
    """Functions with a docstring, and the overloads without one that follow: (signatures, text)."""
    found, last = [], None
    for member in body:
        template = member.template if only else ""
        if not member.signature or "detail::" in member.signature or (only and member.name != only):
            last = None
        elif member.comment or (only and last != only):
            found.append(([template + member.signature], text_of(member.comment)))
            last = member.name
        elif last and member.name == last:
            found[-1][0].append(template + member.signature)
        else:
            last = None
    return found


def listed_functions(listed):
    out = []
    for signatures, text in listed:
        for signature in signatures:
            if "///" in signature or re.search(r"\) (\{|:)|;|\{\}$", signature):
                raise Stop(f"`{signature}` is more than a declaration")
        out.append("\n" + "\n\n".join(f"`{signature}`" for signature in signatures) + "\n\n" + text.rstrip())
    return out


def section(header, name):
    out = [f"### {name}\n"]
    if name.endswith("()"):
        listed = functions(namespace_members(header), name[:-2])
        if not any(text for _, text in listed):
            raise Stop(f"include/lrcnn/{header} has no function {name} with a docstring")
        rows, comment = [], []
    else:
        comment, signature, lines = body_of(header, name)
        if signature:
            out.append(f"`{signature}`\n")
        out.append(text_of(comment))
        body = members(lines)
        rows, listed = field_rows(body), functions(body)
        if rows:
            out += ["", "| field | type, default | |", "| --- | --- | --- |"] + rows
    out += listed_functions(listed)
    if not rows and not listed and not "".join(comment):
        raise Stop(f"include/lrcnn/{header}: {name} has neither docstring nor fields")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + f"\n\n(`<lrcnn/{header}>`)\n"


def anchor(title):
    """Of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def page():
    anchors = [anchor(name) for title, entries in PAGE for name in [title, *(name for _, name in entries)]]
    if twice := {name for name in anchors if anchors.count(name) > 1}:
        raise Stop(f"two headings have the address {', '.join(sorted(twice))}; a link leads to the first one; rename a section")
    text = HEAD + "\n"
    for title, entries in PAGE:
        text += f"- [{title}](#{anchor(title)}): " + ", ".join(f"[{name}](#{anchor(name)})" for _, name in entries) + "\n"
    for title, entries in PAGE:
        text += f"\n## {title}\n"
        for header, name in entries:
            text += "\n" + section(header, name)
    return text


def declared():
    """Headers of all types and functions that are for users, by name."""
    names = {}
    for path in sorted((ROOT / "include/lrcnn").rglob("*.hpp")):
        header = str(path.relative_to(ROOT / "include/lrcnn"))
        for member in namespace_members(header):
            match = re.match(r"(?:struct|class|enum class|concept|using) (\w+)\b(?!;|::)", member.declared)
            name = match[1] if match else member.name and re.match(r"\w+$", member.name) and member.name + "()"
            if name:
                names.setdefault(name, set()).add(header)
    return names


def unlisted():
    """What programs in pages use that is neither on this page nor explained elsewhere."""
    listed = {name for _, entries in PAGE for _, name in entries}
    used = set()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if path.name not in FOR_OTHERS:
            used |= set(re.findall(r"(?<![.>\w])[A-Za-z_]\w*", " ".join(re.findall(r"```cpp\n(.*?)```", path.read_text(), re.S))))
    return {name: headers for name, headers in declared().items()
            if name.removesuffix("()") in used and name not in listed and name not in ELSEWHERE and
            not all(header.startswith(tuple(EXPLAINED)) for header in headers)}


def main():
    try:
        made = page()
        if lacking := unlisted():
            raise Stop("programs in README.md or docs/ use what is not on the page: " +
                       ", ".join(f"{name} ({sorted(headers)[0]})" for name, headers in sorted(lacking.items())) +
                       "; list it in PAGE, or say in EXPLAINED or ELSEWHERE where it is explained")
    except Stop as e:
        sys.exit(f"reference.py: {e}")
    if sys.argv[1:] == ["--update"]:
        OUT.write_text(made)
        return
    there = OUT.read_text() if OUT.exists() else ""
    if made != there:
        sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), made.splitlines(True), str(OUT), "the headers"))
        sys.exit("docs/reference.md is not what the headers say; run tests/docs/reference.py --update")


if __name__ == "__main__":
    main()
