#!/usr/bin/env python3
"""Compiles the twins of must-fail tests, which are the sources without LRCNN_FAIL, all at once.

    twins.py COMPILER [FLAG...] -- HEADER... -- SOURCE...

A must-fail test proves something only if nothing but the fault makes it fail, so its twin must compile (check.py). One by one that takes
most of the time of all these tests. Here each source stands in a namespace of its own, behind HEADERs, which hold everything that the
sources include; that each header is complete in itself is tested elsewhere.
"""
import os
import re
import subprocess
import sys
import tempfile


def program(headers, sources):
    """One source that holds them all."""
    lines = [f"#include <{header}>" for header in headers]
    for source in sources:
        name = re.sub(r"\W", "_", os.path.splitext(os.path.basename(source))[0])
        lines += [f"namespace twin_{name} {{", f'#include "{os.path.abspath(source)}"', "}"]
    return "\n".join(lines) + "\n"


def problems(compiler, flags, headers, sources):
    """What is wrong, as text; empty if all compile."""
    without = [source for source in sources if "#ifdef LRCNN_FAIL" not in open(source, encoding="utf-8").read()]
    if without:
        return "no twin, for want of '#ifdef LRCNN_FAIL': " + ", ".join(without)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "twins.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(program(headers, sources))
        done = subprocess.run([compiler, *flags, "-fsyntax-only", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return "" if done.returncode == 0 else "a twin (without LRCNN_FAIL) does not compile:\n" + done.stdout


def main():
    if sys.argv.count("--") != 2 or len(sys.argv) < 5:
        sys.exit(__doc__)
    first = sys.argv.index("--")
    second = sys.argv.index("--", first + 1)
    found = problems(sys.argv[1], sys.argv[2:first], sys.argv[first + 1:second], sys.argv[second + 1:])
    if found:
        sys.exit(found)
    print(f"{len(sys.argv) - second - 1} twins compile")


if __name__ == "__main__":
    main()
