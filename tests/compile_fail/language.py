#!/usr/bin/env python3
"""Headers that are included by themselves say once, where the compiler reads C++17, that lrcnn needs C++20.

    language.py COMPILER INCLUDE_DIR [--all]

Without --all only those that a program includes first: of lrcnn/, lrcnn/backend/ and lrcnn/data/.
"""
import pathlib
import subprocess
import sys
import tempfile

TEXT = "lrcnn: the compiler reads an older C++; lrcnn needs C++20; add -std=c++20, or link the CMake target lrcnn::lrcnn"


def errors_of(compiler, include, header):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "source.cpp"
        source.write_text(f"#include <{header}>\n")
        run = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", f"-I{include}", str(source)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return [line for line in run.stdout.splitlines() if "error:" in line]


def main():
    compiler, include = sys.argv[1], pathlib.Path(sys.argv[2])
    folders = ["lrcnn/**"] if "--all" in sys.argv else ["lrcnn", "lrcnn/backend", "lrcnn/data"]
    headers = sorted(header.relative_to(include) for folder in folders for header in include.glob(f"{folder}/*.hpp")
                     if header.name != "winograd_formulas.hpp")   # no header, but text that winograd_kernels.hpp puts into itself
    bad = 0
    for header in headers:
        errors = errors_of(compiler, include, header)
        if len(errors) != 2 or TEXT not in errors[0]:   # the second one says that the compiler stops
            bad += 1
            print(f"{header}: {len(errors)} errors", *errors[:3], sep="\n    ")
    print(f"{len(headers)} headers read as C++17, {bad} of them do not say what is wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
