"""Time against memory as SVG: one panel a case, our policies and PyTorch's modes as points, what each can reach as steps."""
import math
from xml.sax.saxutils import escape

import report

WIDTH, LEFT, RIGHT, TOP, PANEL, GAP = 900, 64, 20, 78, 320, 64
COLOURS = {"lrcnn": "#2f66b0", "PyTorch": "#c2502e"}
SIZE, LETTER = 11.5, 6.7   # of labels: font size, and width of a character in DejaVu Sans at most


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place(points, labels, bounds):
    """A box for each label: near its point, off all points and labels and within bounds, if there is such a place."""
    marks = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    taken, boxes = list(marks), []
    ways = [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)]
    for (x, y), label in zip(points, labels):
        w, h, best = LETTER * len(label), SIZE + 2, None
        for away in range(9, 120, 6):
            for dx, dy in ways:
                cx, cy = x + dx * (away + (w / 2 if dy == 0 else w / 4)), y + dy * (away + h / 2 - 3)
                box = (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
                outside = box[0] < bounds[0] or box[1] < bounds[1] or box[2] > bounds[2] or box[3] > bounds[3]
                faults = 100 * outside + sum(overlap(box, other) for other in taken)
                if best is None or faults < best[0]:
                    best = (faults, box)
            if best[0] == 0:
                break
        taken.append(best[1])
        boxes.append(best[1])
    return boxes


def marker(program, arithmetic, x, y):
    """A disc for lrcnn, a square for PyTorch; hollow in 16 bits."""
    colour = COLOURS[program]
    style = f'fill="{"#fff" if arithmetic.startswith("bf16") else colour}" stroke="{colour}" stroke-width="2"'
    if program == "lrcnn":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {style}/>'
    return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" {style}/>'


def text(x, y, words, anchor="start", size=SIZE, colour="#444", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{more}>{escape(words)}</text>'


def ticks(low, high):
    """1, 2, 5, 10, ... between the two."""
    return [m * 10 ** e for e in range(int(math.floor(math.log10(low))), int(math.ceil(math.log10(high))) + 1) for m in (1, 2, 5)
            if low <= m * 10 ** e <= high]


def panel(case, rows, top):
    right, bottom = WIDTH - RIGHT, top + PANEL
    megabytes = [r["measured_bytes"] / 1e6 for r in rows]
    low, high = min(megabytes) / 1.5, max(megabytes) * 1.6
    most = math.ceil(4 * max(r["time_ratio"] for r in rows) + 0.8) / 4
    across = lambda mb: LEFT + (math.log(mb) - math.log(low)) / (math.log(high) - math.log(low)) * (right - LEFT)
    down = lambda ratio: bottom - ratio / most * PANEL
    svg = [text(LEFT, top - 12, report.title(case), size=14, colour="#222", more=' font-weight="bold"'),
           text(right, top - 12, f"1 is PyTorch's {rows[0]['peer']}", "end", 12, "#555")]
    for mb in ticks(low, high):
        svg.append(f'<line x1="{across(mb):.1f}" x2="{across(mb):.1f}" y1="{top}" y2="{bottom}" stroke="#eee"/>')
        svg.append(text(min(across(mb), WIDTH - 30), bottom + 17, f"{mb:g} MB", "middle", 12, "#555"))   # within the drawing
    step = 0.25 if most <= 2 else 0.5 if most <= 4 else 2 ** math.floor(math.log2(most / 4))
    for i in range(int(most / step) + 1):
        peer = i * step == 1
        svg.append(f'<line x1="{LEFT}" x2="{right}" y1="{down(i * step):.1f}" y2="{down(i * step):.1f}" stroke="{"#999" if peer else "#e6e6e6"}"/>')
        svg.append(text(LEFT - 8, down(i * step) + 4, f"{i * step:g}", "end", 12, "#555"))
    for program, colour in COLOURS.items():
        reach, best = [], math.inf
        for r in sorted((r for r in rows if r["program"] == program and r["arithmetic"].startswith("fp32")),
                        key=lambda r: (r["measured_bytes"], r["time_ratio"])):
            if r["time_ratio"] < best:
                best = r["time_ratio"]
                reach.append((across(r["measured_bytes"] / 1e6), down(best)))
        if reach:
            path = f"M {reach[0][0]:.1f} {top} V {reach[0][1]:.1f} " + " ".join(f"H {x:.1f} V {y:.1f}" for x, y in reach[1:]) + f" H {right}"
            svg.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.4" stroke-width="1.5"/>')
    points = [(across(mb), down(r["time_ratio"])) for mb, r in zip(megabytes, rows)]
    boxes = place(points, [r["policy"] for r in rows], (LEFT + 3, top + 3, right - 3, bottom - 3))
    for r, (x, y), box in zip(rows, points, boxes):
        near = (min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3]))
        if math.dist((x, y), near) > 12:
            svg.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{near[0]:.1f}" y2="{near[1]:.1f}" stroke="{COLOURS[r["program"]]}" stroke-opacity="0.5"/>')
        at = ((box[0] + box[2]) / 2, box[3] - 3.5, r["policy"], "middle", SIZE)
        svg += [text(*at, "#fff", ' stroke="#fff" stroke-width="3"'), text(*at, COLOURS[r["program"]])]   # white behind it
    return svg + [marker(r["program"], r["arithmetic"], x, y) for r, (x, y) in zip(rows, points)]


def draw(results):
    """The drawing; None if no case has PyTorch's figures to compare with."""
    cases = {case: [r for r in rows if r["time_ratio"] is not None and r["measured_bytes"]] for case, rows in report.by_case(results).items()}
    cases = {case: sorted(rows, key=lambda r: r["measured_bytes"]) for case, rows in cases.items() if rows}
    if not cases:
        return None
    height = TOP + len(cases) * (PANEL + GAP) - 8
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
           'font-family="DejaVu Sans, Verdana, sans-serif">',
           "<title>Time of a training step against its memory: policies of lrcnn and modes of PyTorch</title>",
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           text(LEFT, 22, "Time of a training step, in units of PyTorch's fastest in fp32 that keeps everything, against the memory it takes",
                size=13, colour="#222")]
    x = LEFT + 5
    for program, arithmetic in (("lrcnn", "fp32"), ("PyTorch", "fp32"), ("lrcnn", "bf16"), ("PyTorch", "bf16")):
        svg += [marker(program, arithmetic, x, 40), text(x + 12, 44, f"{program}, {arithmetic}", size=12)]
        x += 121
    svg.append(text(x, 44, "lines: what each can reach in fp32; lower left is better", size=12))
    for i, (case, rows) in enumerate(cases.items()):
        svg += panel(case, rows, TOP + i * (PANEL + GAP))
    return "\n".join(svg + ["</svg>"]) + "\n"
