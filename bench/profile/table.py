"""Where the time of a training step on a GPU goes, from a file that kernels.cpp has written.

    table.py FILE [--each]

Prints the last whole step but one: for each kind of lrcnn's kernels how many there were and how long they took, all of cuDNN's and cuBLAS's as one
line, and what passed between kernels. --each: cuDNN's and cuBLAS's by name. A step ends with the last kernel of its last CUDA graph, so the
program has to run the same step at least three times, recorded.
"""
import argparse
import re
import sys

LIBRARIES = "cuDNN and cuBLAS"


def kind(name, each):
    loop = re.search(r"lrcnn::loops::(?:detail::)?(?!run_block)(\w+(?:Loop|Loops))\b", name)
    if loop:
        return loop.group(1)
    if name in ("copy", "fill"):
        return "copies and fills"
    return name[:100] if each else LIBRARIES


def last_step(launches):
    """Of launches (begin, duration, graph, name), those of the last step but one, and when it began and ended."""
    last = max((graph for _, _, graph, _ in launches), default=0)
    ends = [i for i in range(len(launches)) if launches[i][2] == last and (i + 1 == len(launches) or launches[i + 1][2] != last)]
    if last == 0 or len(ends) < 3:
        raise ValueError("fewer than three recorded steps; run the same step more often")
    step = launches[ends[-3] + 1:ends[-2] + 1]
    return step, launches[ends[-3]][0] + launches[ends[-3]][1], step[-1][0] + step[-1][1]


def table(launches, each=False):
    step, begin, end = last_step(launches)
    rows = {}
    for _, duration, _, name in step:
        row = rows.setdefault(kind(name, each), [0, 0])
        row[0] += 1
        row[1] += duration
    busy = sum(duration for _, duration, _, _ in step)
    lines = ["| kernels | launches | ms |", "| --- | --- | --- |"]
    for name, (count, ns) in sorted(rows.items(), key=lambda item: -item[1][1]):
        lines.append(f"| {name} | {count} | {ns / 1e6:.3f} |")
    lines.append(f"| between them | | {(end - begin - busy) / 1e6:.3f} |")
    lines.append(f"| all | {len(step)} | {(end - begin) / 1e6:.3f} |")
    return "\n".join(lines)


def read(path):
    launches = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.rstrip("\n").split(" ", 3)
            if len(words) < 4 or not all(word.isdigit() for word in words[:3]):
                raise ValueError(f"line {number} is no launch: {line.rstrip()[:60]!r}; was it written by lrcnn_gpu_profile?")
            launches.append((*map(int, words[:3]), words[3]))
    return launches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--each", action="store_true")
    args = parser.parse_args()
    try:
        print(table(read(args.file), args.each))
    except (OSError, ValueError) as e:
        print(f"table.py: {args.file}: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
