"""Operators on maps: convolutions, pools, padding, upsampling, the order of channels."""
from builder import operator
from faults import Refused
from fold import ints
from network import LAST, MAP, VECTOR, Value, Window, pad_text


def window_of(node, value, kernel):
    """The window of a convolution or pool."""
    if len(kernel) != 2:
        raise Refused(f"it works on {len(kernel)} axes; lrcnn's layers on rows and columns")
    window = Window(tuple(kernel), tuple(node.get("strides", (1, 1))), dilation=tuple(node.get("dilations", (1, 1))),
                    ceil=bool(node.get("ceil_mode", 0)))
    if min(*window.kernel, *window.stride, *window.dilation) < 1:
        raise Refused("its window has a number below 1; kernels, strides and dilations are at least 1")
    auto = node.get("auto_pad", "NOTSET")
    if auto in ("NOTSET", ""):
        top, left, bottom, right = node.get("pads", (0, 0, 0, 0))
        window.pad = (top, bottom, left, right)
    elif auto != "VALID":
        window.pad = same_padding(window, value, auto)
    return window


def same_padding(window, value, auto):
    """The padding of auto_pad SAME_UPPER and SAME_LOWER, which depends on the extents if there is a stride."""
    pad = []
    for axis, size in enumerate((value.height, value.width)):
        stride, span = window.stride[axis], window.spans()[axis]
        if size is None and stride > 1:
            raise Refused(f"auto_pad is {auto}, and its padding depends on extents that are not fixed")
        total = span - 1 if stride == 1 else max((-(-size // stride) - 1) * stride + span - size, 0)
        less, more = total // 2, total - total // 2
        pad += [less, more] if auto == "SAME_UPPER" else [more, less]
    return tuple(pad)


def conv_text(kind, channels, window, default, groups, bias):
    options = ([f".groups = {groups}"] if groups != 1 else []) + ([] if bias else [".bias = false"])
    text = f"{kind}<{channels}"
    if options or window.text() != default.text():
        text += ", " + window.text()
    if options:
        text += ", ConvOptions{" + ", ".join(options) + "}"
    return text + ">"


def filter_and_bias(b, node):
    weight, bias = b.constant(node, 1, "filter"), b.constant(node, 2, "bias")
    if weight is None or weight.ndim != 4:
        raise Refused(f"its filter has {0 if weight is None else weight.ndim} extents; lrcnn's have 4, [K,C,R,S]")
    parameters = [("weight", weight)] + ([("bias", bias)] if bias is not None else [])
    return weight, parameters


def known_channels(value, wanted):
    if value.channels is not None and value.channels != wanted:
        raise Refused(f"its input {value.text()} has {value.channels} channels, its parameters are of {wanted}")


@operator("Conv")
def conv(b, node):
    x = b.value(node, 0, MAP)
    weight, parameters = filter_and_bias(b, node)
    groups = node.get("group", 1)
    known_channels(x, weight.shape[1] * groups)
    window = window_of(node, x, node.get("kernel_shape", weight.shape[2:]))
    text = conv_text("Conv", weight.shape[0], window, Window((3, 3), pad=(1, 1, 1, 1)), groups, len(parameters) > 1)
    extents = (window.extent(0, x.height), window.extent(1, x.width))
    return b.add(node, "conv", text, x, parameters, channels=weight.shape[0], extents=extents, layout=MAP)


@operator("ConvTranspose")
def conv_transpose(b, node):
    x = b.value(node, 0, MAP)
    weight, parameters = filter_and_bias(b, node)
    if node.get("output_shape") or node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise Refused("it has a given output shape or auto_pad; lrcnn's ConvTranspose has none of these")
    groups = node.get("group", 1)
    known_channels(x, weight.shape[0])
    window = window_of(node, x, node.get("kernel_shape", weight.shape[2:]))
    (top, bottom, left, right), (rows, columns) = window.pad, node.get("output_padding", (0, 0))
    window.pad = (top, bottom - rows, left, right - columns)   # less is taken away at the end
    if min(window.pad) < 0:
        raise Refused("it has output padding beyond its padding at the end; lrcnn's ConvTranspose has no rows and columns that no window makes")
    channels = weight.shape[1] * groups
    text = conv_text("ConvTranspose", channels, window, Window((2, 2), (2, 2)), groups, len(parameters) > 1)
    extents = (window.transposed_extent(0, x.height), window.transposed_extent(1, x.width))
    return b.add(node, "conv_transpose", text, x, parameters, channels=channels, extents=extents, layout=MAP)


def pool(b, node, kind):
    x = b.value(node, 0, MAP)
    window = window_of(node, x, node["kernel_shape"])
    if max(window.pad) > 0 and any(max(window.pad[2 * a:2 * a + 2]) >= window.spans()[a] for a in (0, 1)):
        raise Refused("its padding is as large as its window; lrcnn's pools have smaller ones")
    extents = (window.extent(0, x.height), window.extent(1, x.width))
    return x, window, extents, "" if window.text() == Window((2, 2), (2, 2)).text() else window.text()


@operator("MaxPool")
def max_pool(b, node):
    x, window, extents, text = pool(b, node, "MaxPool")
    return b.add(node, "pool", f"MaxPool<{text}>", x, extents=extents, layout=MAP)


@operator("AveragePool")
def average_pool(b, node):
    x, window, extents, text = pool(b, node, "AvgPool")
    whole = window.pad == (0, 0, 0, 0) and window.dilation == (1, 1)
    if whole and x.height is not None and window.kernel == (x.height, x.width):
        return b.add(node, "global_avg_pool", "GlobalAvgPool", x, extents=(1, 1), layout=MAP)
    tiles = whole and not window.ceil and window.stride == window.kernel and None not in (x.height, x.width) and \
        (x.height % window.kernel[0], x.width % window.kernel[1]) == (0, 0)
    reader = b.only_reader(node)
    if tiles and reader is not None and reader.op in ("Flatten", "Reshape"):   # linear layers follow, which fix the extents in any case
        p, q = extents
        return b.add(node, "adaptive_avg_pool", f"AdaptiveAvgPool<{p}>" if p == q else f"AdaptiveAvgPool<{p}, {q}>", x, extents=extents, layout=MAP)
    if window.kernel == (1, 1) and window.stride == (1, 1) and whole:
        return x
    counts = bool(node.get("count_include_pad", 0)) or max(window.pad) == 0
    text = text if counts else (text or window.text()) + ", false"
    return b.add(node, "pool", f"AvgPool<{text}>", x, extents=extents, layout=MAP)


@operator("GlobalAveragePool")
def global_average_pool(b, node):
    x = b.value(node, 0, MAP)
    pooled = x.layout == VECTOR or (x.layer >= 0 and b.layers[x.layer].kind == "global_avg_pool")   # not only at the extents of the export
    return x if pooled else b.add(node, "global_avg_pool", "GlobalAvgPool", x, extents=(1, 1), layout=MAP)


@operator("ReduceMean")
def reduce_mean(b, node):
    x = b.value(node)
    axes = ints(b.graph, node, 1, "axes")
    rows_and_columns = {MAP: [2, 3], LAST: [1, 2]}.get(x.layout)
    if axes is None or sorted(a % x.rank() for a in axes) != rows_and_columns:
        raise Refused(f"it takes means over axes {axes} of a tensor that is {x.layout}; GlobalAvgPool takes them over all rows and columns")
    layout = x.layout if node.get("keepdims", 1) else VECTOR
    return b.add(node, "global_avg_pool", "GlobalAvgPool", x, extents=(1, 1), layout=layout)


@operator("Pad")
def pad(b, node):
    x = b.value(node, 0, MAP)
    pads, mode = ints(b.graph, node, 1, "pads"), node.get("mode", "constant")
    axes = ints(b.graph, node, 3, "axes")
    if pads is None or (len(node.inputs) > 3 and node.inputs[3] and axes is None):
        raise Refused("its padding is computed; lrcnn's layers have constant ones")
    axes = [a % x.rank() for a in axes] if axes else list(range(x.rank()))
    begin, end = dict(zip(axes, pads)), dict(zip(axes, pads[len(axes):]))
    value = b.constant(node, 2, "value")
    if mode not in ("constant", "reflect") or (mode == "constant" and value is not None and float(value.reshape(-1)[0]) != 0):
        raise Refused(f"it pads with {'a number other than 0' if mode == 'constant' else mode}; lrcnn pads with zeros or reflected pixels")
    if any(begin.get(a, 0) or end.get(a, 0) for a in (0, 1)):
        raise Refused("it pads images or channels; lrcnn pads rows and columns")
    sides = (begin.get(2, 0), end.get(2, 0), begin.get(3, 0), end.get(3, 0))
    return padded(b, node, x, sides, mode == "reflect")


def padded(b, node, x, sides, reflect=False):
    """Rows and columns around a map; negative numbers take away."""
    if not any(sides):
        return x
    if reflect and min(sides) < 0:
        raise Refused("it reflects pixels on one side and takes some away on another; lrcnn's ReflectPad only adds, and Crop takes away")
    extents = tuple(None if size is None else size + before + after
                    for size, before, after in ((x.height, *sides[:2]), (x.width, *sides[2:])))
    text = pad_text(*sides)
    text = "Pad" + text if text.startswith("{") else text
    return b.add(node, "pad", f"{'ReflectPad' if reflect else 'ZeroPad'}<{text}>", x, extents=extents, layout=MAP)


def ints_or(b, node, place, name, default):
    """Whole numbers of an input that may be left out."""
    found = ints(b.graph, node, place, name)
    if found is None and len(node.inputs) > place and node.inputs[place]:
        raise Refused(f"its {name} are computed; lrcnn's Crop has constant ones")
    return default if found is None else found


@operator("Slice")
def crop(b, node):
    x = b.value(node, 0, MAP)
    starts, ends = ints(b.graph, node, 1, "starts"), ints(b.graph, node, 2, "ends")
    if starts is None or ends is None:
        raise Refused("where it begins and ends is computed; lrcnn's Crop has constants")
    axes = ints_or(b, node, 3, "axes", list(range(len(starts))))
    steps = ints_or(b, node, 4, "steps", [1] * len(starts))
    if any(step != 1 for step in steps):
        raise Refused("it leaves out rows or columns in between; lrcnn's Crop takes them from the borders")
    sides = {2: (0, 0), 3: (0, 0)}
    for axis, start, end, _ in zip((a % x.rank() for a in axes), starts, ends, steps, strict=True):
        size = {1: x.channels, 2: x.height, 3: x.width}.get(axis)
        open_end = end >= 2**31 - 1 or (size is not None and end >= size)
        if axis in (0, 1):
            if start == 0 and (open_end or axis == 0 and end >= 1 and b.graph.input_shape[0] == end):
                continue
            raise Refused("it takes a part of the images or channels; lrcnn's Crop takes rows and columns")
        if size is None and (start < 0 or (end >= 0 and not open_end)):
            raise Refused("what it takes away depends on extents that are not fixed")
        begin = start if start >= 0 else max(size + start, 0)
        rest = 0 if open_end else -end if end < 0 else size - end
        sides[axis] = (-begin, -rest)
    return padded(b, node, x, (*sides[2], *sides[3]))


@operator("Resize", "Upsample")
def resize(b, node):
    x = b.value(node, 0, MAP)
    factors = resize_factors(b, node, x)
    mode = node.get("mode", "nearest")
    place = node.get("coordinate_transformation_mode", "half_pixel")
    nearest = node.get("nearest_mode", "round_prefer_floor")
    if mode == "nearest" and ((place == "asymmetric" and nearest == "floor") or (place in ("half_pixel", "pytorch_half_pixel") and
                                                                                nearest in ("round_prefer_floor", "round_prefer_ceil"))):
        rule = ""
    elif mode == "linear" and place in ("half_pixel", "pytorch_half_pixel", "align_corners") and not node.get("antialias", 0):
        rule = ", Upsampling::Rule::bilinear" + ("_corners" if place == "align_corners" else "")
    else:
        raise Refused(f"it interpolates with mode {mode}, {place}{', ' + nearest if mode == 'nearest' else ''}; lrcnn's Upsample has "
                      "nearest (asymmetric, floor), linear (half_pixel) and linear (align_corners)")
    text = str(factors[0]) if factors[0] == factors[1] else f"Pair{{{factors[0]}, {factors[1]}}}"
    extents = tuple(None if size is None else size * factor for size, factor in zip((x.height, x.width), factors))
    return x if factors == (1, 1) else b.add(node, "upsample", f"Upsample<{text}{rule}>", x, extents=extents, layout=MAP)


def resize_factors(b, node, x):
    """The whole factors of a Resize, from its scales or its sizes."""
    scales = b.constant(node, 2, "scales") if b.is_constant(node, 2) else None
    axes = [a % 4 for a in node.get("axes", (0, 1, 2, 3))]
    if scales is not None and scales.size:
        factor = dict(zip(axes, scales.reshape(-1).tolist()))
        other = [factor.get(axis, 1) != 1 for axis in (0, 1)]
    else:
        name = node.inputs[3] if len(node.inputs) > 3 else ""
        sizes = b.graph.constants.get(name)
        sizes = b.partial[name].values if sizes is None and name in b.partial else sizes
        if sizes is None:
            raise Refused("its factors are computed; lrcnn's Upsample has constant ones")
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            raise Refused(f"its sizes are bounds, with keep_aspect_ratio_policy {policy}; lrcnn's Upsample has a whole factor for each axis")
        now = {0: b.graph.input_shape[0], 1: x.channels, 2: x.height, 3: x.width}
        other = [axis < 2 and None not in (size, now[axis]) and size != now[axis] for axis, size in zip(axes, sizes.reshape(-1))]
        factor = {axis: size / now[axis] if now[axis] and size is not None else 0 for axis, size in zip(axes, sizes.reshape(-1)) if axis > 1}
    if any(other):
        raise Refused("it resizes images or channels; lrcnn's Upsample repeats rows and columns")
    factors = factor.get(2, 1), factor.get(3, 1)
    if any(f < 1 or f != int(f) for f in factors):
        raise Refused(f"its factors {factors[0]:g} and {factors[1]:g} are not whole, or not known; lrcnn's Upsample has whole ones")
    return int(factors[0]), int(factors[1])


@operator("ChannelShuffle")
def channel_shuffle(b, node):
    return b.add(node, "channel_shuffle", f"ChannelShuffle<{node['groups']}>", b.value(node, 0, MAP), layout=MAP)


@operator("Transpose")
def transpose(b, node):
    x, order = b.value(node), node.get("perm")
    if x.layout == MAP and order == [0, 2, 3, 1]:
        return Value(x.layer, x.channels, x.height, x.width, LAST)
    if x.layout == LAST and order == [0, 3, 1, 2]:
        return Value(x.layer, x.channels, x.height, x.width, MAP)
    raise Refused(f"it transposes a tensor that is {x.layout} by {order}; only channels may go last, and back")
