#!/usr/bin/env python3
"""A program compiled for a processor with AVX2 says so on one without, instead of ending by an illegal instruction.

    check.py COMPILER SOURCE_DIR SCRATCH_DIR QEMU

QEMU: qemu-x86_64, which stands in for the processors.
"""
import pathlib
import subprocess
import sys

SENTENCE = ("lrcnn: this program was compiled for a processor with {}, which this one lacks; a program runs where there are the instructions "
            "that it was compiled for; compile it on this machine, or without -march\n")
# The processor the program is compiled for, the one it is started on, and the largest of its vectors that one lacks.
CASES = [("x86-64-v3", "Nehalem", "AVX2"), ("x86-64-v3", "SandyBridge", "AVX2"), ("x86-64-v4", "Haswell", "AVX512VL"),
         ("x86-64-v3", "max", None), ("x86-64", "Nehalem", None)]


def main():
    compiler, source, scratch, qemu = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    scratch.mkdir(parents=True, exist_ok=True)
    failures = 0
    for march, processor, lacking in CASES:
        program = scratch / march
        subprocess.run([compiler, "-std=c++20", "-O2", f"-march={march}", f"-I{source / 'include'}", "-o", str(program),
                        str(source / "tests/lacking/program.cpp")], check=True)
        run = subprocess.run([qemu, "-cpu", processor, str(program)], capture_output=True, text=True)
        said = "".join(line for line in run.stderr.splitlines(True) if not line.startswith("qemu-x86_64: warning"))
        want = (1, "", SENTENCE.format(lacking)) if lacking else (0, "sum 1500, ", "")
        good = run.returncode == want[0] and run.stdout.startswith(want[1]) and (lacking is None or run.stdout == "") and said == want[2]
        failures += not good
        print(f"{march} on {processor}: status {run.returncode}, {run.stdout + said}", "" if good else "FAILED", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
