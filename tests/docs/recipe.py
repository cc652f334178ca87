#!/usr/bin/env python3
"""Applies the recipe of docs/extending.md, a built-in layer, to a copy of the repository, and runs the tests that it adds.

    recipe.py --compiler C++ --flags FOLDER --main OBJECT [--thrust FOLDER] [--keep FOLDER]

A step of the recipe is a block of C++ with a comment before it that says where it goes:
    <!-- recipe: FILE behind "text" -->        behind the line that holds the text, which must be one
    <!-- recipe: FILE instead of "text" -->    in place of that line
    <!-- recipe: FILE at the end -->           before the line that closes the namespace, which is the last
    <!-- recipe: FILE is new -->               a new file; under tests/ it is compiled and run
FLAGS holds core.rsp, OBJECT is tests/main.cpp compiled; --thrust is where Thrust's headers lie: without it tests of device loops are skipped. A layer may take four files of
include/ and no more. --keep: where the copy is made, and left.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_blocks  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "extending.md")
MOST_FILES = 4
STEP = re.compile(r'(\S+) (?:(behind|instead of) "(.*)"|(at the end|is new))$')


def fail(block, problem):
    sys.exit(f"{PAGE}:{block.line}: {problem}")


def apply(block, copy):
    """Carries out one step; returns the file's name."""
    match = STEP.match(block.options["recipe"])
    if not match:
        fail(block, f"'{block.options['recipe']}' is no step of a recipe")
    name, where, text = match[1], match[2] or match[4], match[3]
    path = os.path.join(copy, name)
    if where == "is new":
        if os.path.exists(path):
            fail(block, f"{name} is there already")
        lines = block.code
    else:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        at = len(lines) - 1 if where == "at the end" else None
        if at is None:
            places = [i for i, line in enumerate(lines) if text in line]
            if len(places) != 1:
                fail(block, f"{len(places)} lines of {name} hold '{text}'")
            at = places[0] + (1 if where == "behind" else 0)
        elif not lines[at].startswith("}   // namespace"):
            fail(block, f"{name} does not end with its namespace")
        lines[at:at + (1 if where == "instead of" else 0)] = block.code
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return name


def check_that_loops_are_missed(copy, arguments):
    """A kind that has no loops yet must not compile."""
    source = "#include <lrcnn/backend/host/run.hpp>\ntemplate void lrcnn::host::run<float>(const lrcnn::Operands<float>&, int);\n"
    done = subprocess.run([arguments.compiler, "-std=c++20", "-fsyntax-only", "-I" + os.path.join(copy, "include"), "-x", "c++", "-"],
                          input=source, capture_output=True, text=True, check=False)
    if done.returncode == 0 or "lrcnn: a kind of layer has no loops on the host" not in done.stderr:
        sys.exit(f"a kind without loops is not refused as it should be:\n{done.stderr[:2000]}")


def run_test(name, copy, arguments):
    """Compiles a new test and runs it."""
    program = os.path.join(copy, os.path.basename(name) + ".program")
    with open(os.path.join(arguments.flags, "core.rsp"), encoding="utf-8") as file:   # its include folder is the repository's
        flags = [flag for flag in shlex.split(file.read()) if not flag.startswith(("-I", "-isystem"))]
    command = [arguments.compiler, *flags, "-O0", "-Wall", "-Wextra", "-Werror", "-pthread", "-I" + os.path.join(copy, "include"),
               "-I" + os.path.join(copy, "tests"), os.path.join(copy, name), arguments.main, "-o", program]
    if name.startswith("tests/loops/"):
        command += ["-isystem", arguments.thrust, "-Wno-error"]
    subprocess.run(command, check=True)
    return subprocess.run([program], env={**os.environ, "LRCNN_FILL_ARENA": "1"}, check=False).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", required=True)
    parser.add_argument("--main", required=True)
    parser.add_argument("--thrust", default="")
    parser.add_argument("--keep", default="")
    arguments = parser.parse_args()
    steps = [block for block in check_blocks.blocks(PAGE) if "recipe" in block.options]
    if not steps:
        sys.exit(f"{PAGE} has no recipe")
    folder = arguments.keep or tempfile.mkdtemp()
    try:
        for part in ("include", "tests"):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(folder, part))
        names = [apply(block, folder) for block in steps if "include/lrcnn/layer/" in block.options["recipe"]]
        check_that_loops_are_missed(folder, arguments)
        names += [apply(block, folder) for block in steps if "include/lrcnn/layer/" not in block.options["recipe"]]
        changed = sorted({name for name in names if name.startswith("include/")})
        print(f"the layer takes {len(changed)} files: {', '.join(changed)}")
        if len(changed) > MOST_FILES:
            sys.exit(f"the recipe of {PAGE} changes more than {MOST_FILES} files of include/")
        failed = 0
        for name in names:
            if name.startswith("tests/loops/") and not arguments.thrust:
                print(f"{name}: skipped, since Thrust was not found")
            elif name.startswith("tests/"):
                failed += run_test(name, folder, arguments) != 0
        return 1 if failed else 0
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
