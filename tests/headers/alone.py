#!/usr/bin/env python3
"""Each header compiles alone, and twice in one file.

    alone.py [--share N] [--seed SEED] COMPILER [FLAG...] -- HEADER...

With --share N one header in N is compiled, drawn by SEED, which is the number of the day unless it is given: each has its day within N days.
A header that lacks an include of its own is found here; everything else about headers is tested for all of them at once.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import time


def problem(command, header):
    """What the compiler says of a header, or nothing."""
    text = f"#include <{header}>\n#include <{header}>\n"
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    return f"{header}:\n{done.stdout}" if done.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86400)
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, command = parser.parse_known_args(sys.argv[1:at])
    headers = sorted(sys.argv[at + 1:])
    if not command or not headers:
        sys.exit(__doc__)
    chosen = [header for place, header in enumerate(headers) if (place + args.seed) % args.share == 0]
    if args.share > 1:
        print(f"{len(chosen)} of {len(headers)} headers, those of --seed {args.seed}; scripts/test --thorough compiles all")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [text for text in pool.map(lambda header: problem(command, header), chosen) if text]
    print(*found, sep="\n")
    if not problem(command, "lrcnn/there_is_no_such.hpp"):
        sys.exit("a header that is not there compiled")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
