"""Training curves as SVG: the loss of each step, and the accuracy after each epoch, of several runs drawn over each other.

    curves.py OUT.svg TITLE NAME=FILE...     FILE as examples/classify.cpp or classify.py write it with --curve

The first curve is a broad pale line, the next a thin dark one on top of it, so that both can be seen where they are equal. Losses are
means over the last MEAN steps; single steps jump with their batches.
"""
import csv
import math
import pathlib
import sys

from xml.sax.saxutils import escape

from frontier import text

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 900, 360, 56, 16, 74, 40, 64
STYLES = [("#9dc3ee", 7), ("#12305e", 1.8), ("#c2502e", 1.8)]
MEAN = 20


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    if not lines:
        sys.exit(f"error: {path} has no steps; it is what --curve writes; train first")
    losses = [float(line["loss"]) for line in lines]
    smooth = [sum(losses[max(0, i + 1 - MEAN):i + 1]) / len(losses[max(0, i + 1 - MEAN):i + 1]) for i in range(len(losses))]
    steps = [int(line["step"]) for line in lines]
    tests = [(int(line["step"]), 100 * float(line["test_accuracy"])) for line in lines if line["test_accuracy"]]
    return list(zip(steps, smooth)), tests


def nice_step(span):
    power = 10 ** math.floor(math.log10(span / 4))
    return next(m * power for m in (1, 2, 5, 10) if span / (m * power) <= 6)


def panel(left, right, words, curves, most):
    bottom, last = HEIGHT - BOTTOM, max(points[-1][0] for _, points in curves)
    x = lambda step: left + (right - left) * step / last
    y = lambda value: bottom - (bottom - TOP) * min(value, most) / most
    svg = [text(left, TOP - 12, words, size=13, colour="#222", more=' font-weight="bold"')]
    step = nice_step(most)
    for i in range(int(most / step + 1e-9) + 1):
        svg.append(f'<line x1="{left}" x2="{right}" y1="{y(i * step):.1f}" y2="{y(i * step):.1f}" stroke="#e6e6e6"/>')
        svg.append(text(left - 8, y(i * step) + 4, f"{i * step:g}", "end", 12, "#555"))
    step = nice_step(last)
    for i in range(int(last / step) + 1):
        svg.append(text(x(i * step), bottom + 18, f"{i * step:g}", "middle", 12, "#555"))
    svg.append(text((left + right) / 2, bottom + 34, "steps", "middle", 12, "#555"))
    for (_, points), (colour, width) in zip(curves, STYLES):
        path = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in points)
        svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>')
        if len(points) < 50:
            svg += [f'<circle cx="{x(s):.1f}" cy="{y(v):.1f}" r="{width / 2 + 1.6:.1f}" fill="{colour}"/>' for s, v in points]
    return svg


def main(out, title, *files):
    names, runs = zip(*((name, read(path)) for name, path in (f.split("=", 1) for f in files)))
    middle = (LEFT + WIDTH - RIGHT) / 2
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="DejaVu Sans, Verdana, sans-serif">', f"<title>{escape(title)}</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', text(LEFT, 20, title, size=13, colour="#222")]
    at = LEFT
    for name, (colour, width) in zip(names, STYLES):
        svg.append(f'<line x1="{at}" x2="{at + 26}" y1="38" y2="38" stroke="{colour}" stroke-width="{width}"/>')
        svg.append(text(at + 33, 42, name, size=12))
        at += 60 + 7.2 * len(name)
    losses, tests = ([(name, run[i]) for name, run in zip(names, runs)] for i in (0, 1))
    most = lambda curves, unit: unit * math.ceil(max(v for _, points in curves for _, v in points) / unit)
    svg += panel(LEFT, middle - GAP / 2, f"training loss, mean of {MEAN} steps", losses, most(losses, 1))
    svg += panel(middle + GAP / 2, WIDTH - RIGHT, "accuracy on test images, %", tests, most(tests, 10))
    pathlib.Path(out).write_text("\n".join(svg + ["</svg>"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 4 or len(sys.argv) - 3 > len(STYLES) or any("=" not in f for f in sys.argv[3:]):
        sys.exit(__doc__)
    main(*sys.argv[1:])
