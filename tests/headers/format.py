#!/usr/bin/env python3
"""All C++ and CUDA sources are laid out as .clang-format says, and no line of them is longer than it allows.

    format.py SOURCE_DIR CLANG_FORMAT [--fix]

Must-fail tests are left out, since their lines are counted, and so are sources that a script makes. --fix lays them out. clang-format is the
one of major version 14, since others lay out differently; with another one this exits with 77, which ctest shows as skipped.
"""
import pathlib
import re
import subprocess
import sys

MAJOR = 14
FOLDERS = ("include", "tests", "examples", "bench")
LEFT_OUT = re.compile(r"tests/compile_fail/|tests/network/generated_types\.hpp$")


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".hpp", ".cpp", ".cu") and not LEFT_OUT.search(name):
                yield name


def too_long(root, name, columns):
    """Lines beyond the limit, which clang-format leaves alone if they are comments."""
    off = False
    for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
        off = line.strip() == "// clang-format off" or (off and line.strip() != "// clang-format on")
        if len(line) > columns and not off:
            yield f"{name}:{number}: {len(line)} columns, of {columns}; break the line"


def main():
    root, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = subprocess.run([clang_format, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if not re.search(rf"version {MAJOR}\.", found):
        print(f"skipped: {found}, and the sources are laid out by version {MAJOR}")
        return 77
    names = list(sources(root))
    if "--fix" in sys.argv:
        subprocess.run([clang_format, "-i", *names], cwd=root, check=True)
    columns = int(re.search(r"^ColumnLimit: (\d+)$", (root / ".clang-format").read_text(encoding="utf-8"), re.MULTILINE)[1])
    problems = [problem for name in names for problem in too_long(root, name, columns)]
    done = subprocess.run([clang_format, "--dry-run", "--Werror", *names], cwd=root, capture_output=True, text=True, check=False)
    problems += [line for line in done.stderr.splitlines() if "error: " in line]
    if done.returncode != 0 and not done.stderr:
        problems.append(f"{clang_format} exits with {done.returncode}")
    print(*problems, f"{len(names)} sources, {len(problems)} problems", sep="\n")
    if problems:
        print("tests/headers/format.py . clang-format --fix lays them out")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
