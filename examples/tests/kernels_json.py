#!/usr/bin/env python3
"""The kernels of a step as JSON: what `plan --kernels --device FILE --json` writes is what it prints as a table.

    kernels_json.py PLAN DEVICE

Reads both back, and compares each line; sums of lines with the line of all; and each least time with the peaks that the file names.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CASES = [("vgg11 2x3x64x64", "Policy<Overlap<3>, CheckpointAtPools, RecomputeAll, Bf16>"), ("resnet18 2x3x64x64", "Policy<Column>"), ("unet 1x3x64x64", "Policy<Share<2>, Tf32>")]
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
FIELDS = ["name", "launches", "idle", "bytes", "flop", "least_seconds"]
failures = []


def check(what, fact):
    if not fact:
        failures.append(what)
        print("FAILED:", what)


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout


def compare(text, answer, case):
    """The table of a text, line by line."""
    table = re.findall(r"^ *(\d+) +(\d+) +([\d.]+) (\w*B) +([\d.]+) +([\d.]+)  (\S.*)$", text, re.MULTILINE)
    lines = answer["kernels"] + [answer["all"]]
    check(f"{case}: as many lines", len(table) == len(lines) and len(lines) > 5)
    for (launches, idle, number, unit, gflop, ms, name), line in zip(table, lines):
        check(f"{case}: the fields of {name}", list(line) == FIELDS)
        check(f"{case}: {name}", line["name"] == name and line["launches"] == int(launches) and line["idle"] == int(idle))
        place = 10 ** -len(number.partition(".")[2])   # of the last digit that is printed
        check(f"{case}: bytes of {name}", abs(line["bytes"] / UNITS[unit] - float(number)) <= 0.501 * place)
        check(f"{case}: products of {name}", abs(line["flop"] / 1e9 - float(gflop)) <= 0.0501)
        check(f"{case}: time of {name}", abs(line["least_seconds"] * 1e3 - float(ms)) <= 0.000501)


def check_model(answer, case):
    device, kernels = answer["device"], answer["kernels"]
    for line in kernels:
        launches = line["launches"] * device["seconds_per_launch"]
        bytes_, flop = line["bytes"] / device["bytes_per_second"], line["flop"] / device["flop_per_second"]
        least = line["least_seconds"] - launches   # of several launches each may be bound by another peak
        check(f"{case}: the bound of {line['name']}", max(bytes_, flop) * (1 - 1e-9) <= least + 1e-15 and least <= (bytes_ + flop) * (1 + 1e-9) + 1e-15)
    for field in FIELDS[1:]:
        total = sum(line[field] for line in kernels)
        check(f"{case}: the sum of {field}", abs(total - answer["all"][field]) <= 1e-9 * abs(total))
    check(f"{case}: the longest first", all(a["least_seconds"] >= b["least_seconds"] for a, b in zip(kernels, kernels[1:])))


plan, description = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    for case, policy in CASES:
        file = pathlib.Path(folder) / "kernels.json"
        command = [plan, *case.split(), policy, "--kernels", "--device", description]
        text = run(*command, "--json", str(file))
        check(f"{case}: the table is as without a file", text == run(*command))
        answer = json.loads(file.read_text())
        compare(text, answer, case)
        check_model(answer, case)
        network, extents = case.split()
        said = re.search(r"Tf32|Bf16", policy)
        check(f"{case}: the question", answer["network"] == network and "x".join(map(str, answer["input"])) == extents)
        check(f"{case}: the policy", answer["policy"].startswith(re.match(r"Policy<\w+", policy)[0]))
        check(f"{case}: the precision", answer["precision"] == (said[0] if said else "Fp32"))
        name = f"in {answer['precision']} on {answer['device']['name']}, {answer['device']['multiprocessors']} multiprocessors"
        check(f"{case}: the device", name in text)
        check(f"{case}: printed instead of the table", json.loads(run(*command, "--json")) == answer)
    refused = subprocess.run([plan, "vgg11", "2x3x64x64", "column", "--kernels", "--device", description, "--json", str(pathlib.Path(folder) / "no" / "x")],
                             capture_output=True, text=True)
    check("a file that cannot be written", refused.returncode != 0 and refused.stderr.startswith("lrcnn: "))
sys.exit(1 if failures else 0)
