#!/usr/bin/env python3
"""The pages of plans: what they draw is what the program says of the plan.

    page.py PLAN [FIGURE]

Runs PLAN on some networks and policies, reads the numbers back from the pages, and compares them with the steps and bytes that it prints.
FIGURE is a drawing in docs/figures that has to be the one that the program draws with the fast backend.
"""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

CASES = [("vgg11 2x3x64x64", "Policy<Overlap<3>, CheckpointAtPools, RecomputeAll>"), ("resnet18 2x3x64x64", "Policy<Share<2>, RecomputeAll>"),
         ("unet 1x3x64x64", "column"), ("smallnet 3x3x32x32", "both")]
FIGURE = ["vgg16", "1x3x1024x1024", "Policy<Stages<Overlap<16>, Overlap<8>, Overlap<4>, Column>, CheckpointAt<\"pool2\",\"pool3\",\"pool4\">, RecomputeAll, "
          "FastestConv, Workspace<8388608>>"]
SLABS = ["example", "1x3x16x16", "Policy<Overlap<2>>", "--against", "Policy<Share<2>>"]
# What docs/how-it-works.md says of that drawing.
SAID = ["conv1, slab 1: rows 0 to 8", "conv1, slab 2: rows 7 to 15", "conv1: rows 7 to 8 in several slabs", "conv1, slab 2: rows 9 to 15",
        "conv1, slab 2: rows 7 to 8 from the slab before", "input, slab 1: rows 0 to 9"]
# Parts of networks, and networks that others are made of.
PARTS = {"VggTrunk", "VggHead", "ConvNeXt"}
failures = []


def check(what, fact):
    if not fact:
        failures.append(what)
        print("FAILED:", what)


class Page(html.parser.HTMLParser):
    """Collects what is of interest, and that every element is closed."""
    VOID = {"meta"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.numbers, self.in_numbers, self.drawings, self.links, self.text = [], "", False, 0, [], ""

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.drawings += tag == "svg"
        self.links += [value for name, value in attributes if name in ("src", "href")]
        self.in_numbers = ("id", "numbers") in attributes

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        check(f"</{tag}> closes <{self.open[-1] if self.open else ''}>", self.open and self.open.pop() == tag)
        self.in_numbers = False

    def handle_data(self, data):
        if self.in_numbers:
            self.numbers += data
        self.text += data


def compare(plan, network, arguments, scratch):
    page, drawing = scratch / "plan.html", scratch / "plan.svg"
    run = subprocess.run([plan, *network.split(), *arguments, "--html", str(page), "--svg", str(drawing)], capture_output=True, text=True)
    where = f"{network} {arguments}: "
    check(where + f"status {run.returncode} {run.stderr}", run.returncode == 0)
    if run.returncode != 0:
        return
    reader = Page()
    reader.feed(page.read_text())
    check(where + "elements are left open: " + str(reader.open), not reader.open)
    check(where + "the page needs other files: " + str(reader.links), not reader.links)
    check(where + "drawings", reader.drawings >= 2)
    numbers = json.loads(reader.numbers)
    steps = numbers["steps"]
    printed = [line for line in run.stdout.splitlines() if re.match(r"\d+  \w", line)]
    if "--steps" in arguments:
        check(where + f"{len(steps)} steps, printed {len(printed)}", len(steps) == len(printed) > 0)
        for number, (step, line) in enumerate(zip(steps, printed)):
            words = line.split()
            layer = "" if step[2] < 0 else numbers["layers"][step[2]]
            slab = int(line.split(" slab ")[1].split()[0])
            check(where + f"step {number}: {step[:6]} and '{line[:80]}'", words[1] == step[1] and (not layer or words[2].split("+")[0] == layer) and
                  slab + 1 == step[5])
    live = [sum(step[6:]) for step in steps]
    check(where + "the most bytes of all steps", max(live) == numbers["live_bytes"] <= numbers["arena_bytes"])
    check(where + "no bytes are below zero", all(b >= 0 for step in steps for b in step[6:]))
    check(where + "time goes on", all(a[0] <= b[0] for a, b in zip(steps, steps[1:])) and abs(steps[-1][0] - numbers["seconds"]) < 1e-12)
    peak = re.search(r"peak ([\d.]+ \w+) \(no placement can need less than ([\d.]+ \w+)\)", run.stdout)
    check(where + "the peak in the text is the page's", peak and peak[1] in reader.text and peak[2] in reader.text)
    check(where + "the policy in the text is the page's", numbers["policy"] in run.stdout and numbers["policy"] in reader.text)
    svg = xml.parse(drawing).getroot()
    check(where + "the drawing says the most bytes", peak and any(peak[2] in (text.text or "") for text in svg.iter("{http://www.w3.org/2000/svg}text")))
    check(where + "sections' shares of the time", abs(sum(float(s) for s in re.findall(r"([\d.]+) %", run.stdout)) - 100) < 2)


def every_network(plan):
    """Each network that the headers have has a name, and a plan."""
    known = re.search(r"Networks:(.*)", subprocess.run([plan, "--help"], capture_output=True, text=True).stdout)[1].split()
    for name in known:
        extents = "1x3x188x188" if name == "unet2015" else "1x3x64x64"
        run = subprocess.run([plan, name, extents, "column"], capture_output=True, text=True)
        check(f"{name}: {run.stderr}", run.returncode == 0 and "peak " in run.stdout)
    for header in (pathlib.Path(__file__).parents[2] / "include" / "lrcnn" / "network").glob("*.hpp"):
        public = re.sub(r"namespace detail \{.*?\n\}   // namespace detail", "", header.read_text(), flags=re.S)
        for network in set(re.findall(r"^using (\w+) =\s+(?:Sequential<(?:detail::\w+Trunk|VggTrunk|Conv)|detail::\w+Of<|ConvNeXt<)", public, re.M)) - PARTS:
            check(f"plan does not know {network} of {header.name}", network.lower() in {name.replace("_", "") for name in known})


def main():
    plan = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for network, policy in CASES:
            compare(plan, network, [policy, "--steps"], scratch)
        compare(plan, "vgg11 2x3x64x64", ["--budget", "12MiB"], scratch)
        for arguments, text in ((["lenet", "8x1x28x28", "--html", str(scratch / "x.html")], "give a POLICY, or --budget"),
                                (["lenet", "8x1x28x28", "--freeze"], "give a POLICY, or --budget"),
                                (["lenet", "8x1x28x28", "column", "--html", str(scratch / "no" / "x.html")], "x.html"),
                                (["lenet", "8x1x28x28", "column", "--svg", str(scratch)], str(scratch))):
            run = subprocess.run([plan, *arguments], capture_output=True, text=True)
            check(f"{arguments}: {run.stderr}", run.returncode == 2 and text in run.stderr and not (scratch / "x.html").exists())
        every_network(plan)
        rows = scratch / "rows.svg"
        subprocess.run([plan, *SLABS, "--slabs", str(rows)], check=True, capture_output=True)
        titles = [title.text for title in xml.parse(rows).getroot().iter("{http://www.w3.org/2000/svg}title")]
        for said in SAID:
            check(f"the drawing of slabs does not say '{said}'", said in titles)
        if len(sys.argv) > 2:
            figure = pathlib.Path(sys.argv[2]).with_name("slabs.svg")
            check(f"{figure} is another; draw it anew: plan {SLABS} --slabs {figure}", figure.read_bytes() == rows.read_bytes())
        if len(sys.argv) > 2 and "backend onednn" in subprocess.run([plan, "lenet"], capture_output=True, text=True).stdout:
            drawn = scratch / "figure.svg"
            subprocess.run([plan, *FIGURE, "--svg", str(drawn)], check=True, capture_output=True)
            check(f"{sys.argv[2]} is another; draw it anew: plan {FIGURE} --svg {sys.argv[2]}", drawn.read_bytes() == pathlib.Path(sys.argv[2]).read_bytes())
        frozen = subprocess.run([plan, "vgg11", "2x3x64x64", "--budget", "12MiB", "--freeze"], capture_output=True, text=True).stdout
        policy = re.fullmatch(r"using Chosen = (Policy<.*>);\n", frozen)
        check("what --freeze prints: " + frozen, policy)
        alone = subprocess.run([plan, "vgg11", "2x3x64x64", "--budget", "12MiB", "--freeze"], capture_output=True, text=True,
                               preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])).stdout
        check("another process, on one processor, chooses the same: " + alone, alone == frozen)
        again = subprocess.run([plan, "vgg11", "2x3x64x64", policy[1]], capture_output=True, text=True)
        check("a frozen policy is read back: " + again.stderr, again.returncode == 0 and again.stdout.startswith(policy[1]))
    print(f"{len(failures)} failures")
    sys.exit(bool(failures))


main()
