#!/usr/bin/env python3
"""Reads the machine code of the device's loops: what makes a loop slow on a GPU shows in it, without a GPU.

    check.py NVCC SOURCE_DIR SCRATCH_DIR [--nvdisasm FILE] [--all] [--faults] [--seed N]

Compiles tests/loops/loops_compile.cu for an H100 and demands of its kernels:
  - no stack frame and no spilled register: both are memory of every thread, which a driver reserves beside the plan's;
  - registers that let two blocks run on a multiprocessor, of loops of blocks;
  - loads and stores of 16 bytes, but for kernels that are listed in NARROW;
  - bytes on their way from memory in the loops of those kernels that add up tensors (IN_FLIGHT).
The last two need nvdisasm; without it they are left out, and the exit code is 77. One type of elements is compiled, that of the day, or --all.
--faults: instead, puts known mistakes into the headers, one at a time (one drawn by --seed, or --all), and demands that each is found.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

import sass

ELEMENTS = ("float", "float16", "bfloat16")
ARCHITECTURE = "sm_90"
SKIPPED = 77
MOST_REGISTERS = 128   # of a thread: two blocks of 256 threads have 65,536

# Kernels that move elements one by one, or a few numbers of channels, and those of tensors of integers.
NARROW = (
    "AddLoop", "ChannelSumsLoop", "ClearLoop", "ConvertLoop", "DiceGradientLoop", "DiceImageLoop", "DiceSumsLoop", "DownLoop", "DropLoop",
    "FlattenLoop", "GatherLoop", "GlobalPoolLoop", "GroupLoop", "LargeWindowLoop", "PackLoop", "PixelLossLoop", "ResetLoop", "ScaleLoop",
    "SoftmaxLoop", "TotalLoop", "UnpackLoop", "UpdateLoop")
STORES_ONLY = ("GlobalPoolBackwardLoop", "ShuffleLoop", "ZeroLoop")
LOADS_ONLY = ("FiniteLoop", "MomentsLoop", "PixelLoop", "ProductsLoop", "SquaresLoop", "SumLoop")
# Bytes that a thread of a kernel that adds up a tensor has on their way at least, in one of its loops; of kernels that load 16 bytes at once, in
# a loop that does.
IN_FLIGHT = {"MomentsLoop": 64, "ProductsLoop": 64, "SumLoop": 64, "SquaresLoop": 64, "GlobalPoolLoop": 64, "PixelLoop": 16}
# The same, in a loop where the last block adds up the parts that others have left: parts are numbers that need not be converted to doubles.
PARTS_IN_FLIGHT = {"MomentsLoop": 64, "ProductsLoop": 64, "SumLoop": 32}

# Mistakes that must be found: name, header, text, becomes, word of the report, what to instantiate.
NORM = "loops::norm_statistics(exec, Operands<T>{});"
COPY = "loops::copy_rows(exec, View<const T>{}, View<T>{});"
FAULTS = (
    ("channels counted at run time", "loops/norm_sums.hpp", "for (int v = 0; v < V; ++v) {\n          Few few = 0, few_squares",
     "for (int v = 0; v < place.count; ++v) {\n          Few few = 0, few_squares", "stack frame", NORM),
    ("one load after the other", "loops/norm_sums.hpp", "add_up<4, true>(place", "add_up<1, true>(place", "on their way", NORM),
    ("one part after the other", "loops/last_block.hpp", "for (; first < part_count(); first += at_once * step) {",
     "\n#pragma unroll 1\n    for (; first < part_count(); first += step) {\n      constexpr int at_once = 1;", "loops over parts", NORM),
    ("elements loaded one by one", "loops/work.hpp", "if (packs && count == V) {\n    Pack<T, V> pack;\n    copy_pack(&pack, from);",
     "if (false) {\n    Pack<T, V> pack;\n    copy_pack(&pack, from);", "16 bytes", COPY),
    ("too many positions at once", "loops/norm_sums.hpp", "add_up<4, true>(place", "add_up<16, true>(place", "registers", NORM),
)
PROBE = """#include <lrcnn/backend/cudnn/loops.hpp>
#include <thrust/system/cuda/execution_policy.h>
using namespace lrcnn;
void probe(cudaStream_t stream) {
  using T = bfloat16;
  const auto exec = thrust::cuda::par_nosync.on(stream);
  %s
}
"""


def kernel_name(mangled):
    """The functor that a kernel runs, with its types; empty for kernels of other libraries."""
    text = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    found = re.search(r"op_wrapper_t<long, (lrcnn::loops::.*?), thrust::", text) or re.search(r"run_block<(.*)>\(", text)
    return re.sub(r"lrcnn::loops::(detail::)?|lrcnn::", "", found[1]).strip() if found else ""


def compile_kernels(args, source, folder, options):
    """What ptxas says of each kernel: {mangled name: (frame, spilled bytes, registers)}. The code goes to folder / code.cubin."""
    run = subprocess.run([args.nvcc, "-std=c++20", "-DNDEBUG", f"-arch={ARCHITECTURE}", "-cubin", "-Xptxas", "-v", *options,
                          f"-I{args.source / 'include'}", str(source), "-o", str(folder / "code.cubin")], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{source} does not compile:\n{run.stderr[:3000]}")
    entry = re.compile(r"Compiling entry function '(\S+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
                       r".*?Used (\d+) registers", re.DOTALL)
    return {m[1]: (int(m[2]), int(m[3]) + int(m[4]), int(m[5])) for m in entry.finditer(run.stderr)}


def loads_wide(instruction):
    return isinstance(instruction, sass.Instruction) and instruction.loads() and instruction.words() == 4


def faults_of_code(name, code):
    """What is wrong with the memory accesses of one kernel."""
    functor = re.match(r"\w+", name)[0]
    all_of_it = [each for each in code if isinstance(each, sass.Instruction)]
    wide_loads = any(map(loads_wide, all_of_it))
    wide_stores = any(i.operation == "STG" and i.words() == 4 for i in all_of_it)
    if functor not in NARROW + STORES_ONLY and not wide_loads:
        yield "it loads no 16 bytes at once"
    if functor not in NARROW + LOADS_ONLY and not wide_stores:
        yield "it stores no 16 bytes at once"
    loops = sass.loops(code)
    wide = [loop for loop in loops if any(map(loads_wide, loop))]
    over_parts = [loop for loop in loops if (loop not in wide if functor == "SumLoop" else not any(i.operation == "F2F" for i in loop))]
    over_tensor = loops if functor in NARROW else [loop for loop in wide if loop not in over_parts]
    for what, needed, among in ("its loops", IN_FLIGHT, over_tensor), ("its loops over parts", PARTS_IN_FLIGHT, over_parts):
        if functor in needed:
            most = max((sass.bytes_in_flight(loop) for loop in among), default=0)
            if most < needed[functor]:
                yield f"{most} bytes at most are on their way in {what}, and it needs {needed[functor]}"


def check(args, source, folder, options):
    """(number of kernels, [(kernel, what is wrong)])"""
    folder.mkdir(parents=True, exist_ok=True)
    resources = compile_kernels(args, source, folder, options)
    code = {}
    if args.nvdisasm:
        run = subprocess.run([args.nvdisasm, "-c", str(folder / "code.cubin")], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{args.nvdisasm} cannot read the machine code; it must be as new as nvcc:\n{run.stderr[:1000]}")
        code = sass.kernels(run.stdout)
    count, found = 0, []
    for mangled, (frame, spilled, registers) in resources.items():
        name = kernel_name(mangled)
        if not name:
            continue
        count += 1
        if frame > 0:
            found.append((name, f"it has a stack frame of {frame} bytes"))
        if spilled > 0:
            found.append((name, f"it spills registers, {spilled} bytes"))
        if "run_block" in mangled and registers > MOST_REGISTERS:
            found.append((name, f"it has {registers} registers a thread, and {MOST_REGISTERS} let two blocks run at once"))
        if args.nvdisasm:
            found += [(name, fault) for fault in faults_of_code(name, code[mangled])]
    return count, found


def check_loops(args):
    elements = ELEMENTS if args.all else (ELEMENTS[args.seed % len(ELEMENTS)],)
    good = True
    for element in elements:
        start = time.monotonic()
        count, found = check(args, args.source / "tests/loops/loops_compile.cu", args.scratch / element, [f"-DLRCNN_ELEMENT={element}"])
        for name, fault in found:
            print(f"{name}: {fault}")
        print(f"{element}: {count} kernels for {ARCHITECTURE}, {len(found)} faults, {time.monotonic() - start:.0f} s", flush=True)
        good = good and not found and count > 50
    if good and not args.nvdisasm:
        print("lrcnn skips widths of loads and bytes on their way: nvdisasm was not found; scripts/test fetches it from PyPI")
        return SKIPPED
    return 0 if good else 1


def check_faults(args):
    folder = args.scratch / "faults"
    headers = {name: args.source / "include/lrcnn/backend/cudnn" / header for name, header, *_ in FAULTS}
    for name, _, text, *_ in FAULTS:
        if (count := headers[name].read_text().count(text)) != 1:
            sys.exit(f"{name}: its text occurs {count} times in {headers[name]}; bring the fault up to date with the header")
    missed = 0
    for name, header, text, becomes, word, calls in FAULTS if args.all else (FAULTS[args.seed % len(FAULTS)],):
        shutil.rmtree(folder, ignore_errors=True)
        changed = folder / "include/lrcnn/backend/cudnn" / header
        changed.parent.mkdir(parents=True)
        (folder / "probe.cu").write_text(PROBE % calls)
        _, sound = check(args, folder / "probe.cu", folder, [])
        changed.write_text(headers[name].read_text().replace(text, becomes))
        _, found = check(args, folder / "probe.cu", folder, [f"-I{folder / 'include'}"])
        good = not sound and any(word in fault for _, fault in found)
        missed += not good
        print(f"{name}: {'found' if good else 'NOT FOUND'}: {(found or sound or [('', 'nothing')])[0]}", flush=True)
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nvcc")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--nvdisasm", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86400, help="today's number unless given")
    args = parser.parse_args()
    return check_faults(args) if args.faults else check_loops(args)


if __name__ == "__main__":
    sys.exit(main())
