"""The table of docs/benchmarks.md from what scripts/gpu bench has measured.

    table.py FOLDER     FOLDER holds lrcnn.txt and, where PyTorch was there, pytorch.txt: a JSON object a line
"""
import json
import pathlib
import sys


def lines(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def main():
    folder = pathlib.Path(sys.argv[1])
    results = lines(folder / "lrcnn.txt") + lines(folder / "pytorch.txt")
    cases = {}
    for r in results:
        if not r.get("largest"):
            cases.setdefault((r["network"], r["size"], r["batch"], r["precision"]), []).append(r)
    print("| network | input | precision | program | policy | time | of PyTorch's | peak | of PyTorch's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (network, size, batch, precision), rows in cases.items():
        peer = next((r for r in rows if r["program"] == "pytorch" and r["policy"] == "eager"), {})
        for r in rows:
            name = f"| {network} | {size}² × {batch} | {precision} | {r['program']} | {r['policy']} "
            if "error" in r:
                print(name + f"| {r['error']} | | | |")
                continue
            seconds, taken = r.get("seconds"), r.get("measured_bytes")
            ratio = lambda mine, key: f"{mine / peer[key]:.2f}" if mine and peer.get(key) else "-"
            megabytes = f"{taken / 1e6:.0f} MB" if taken else "-"
            print(name + f"| {1000 * seconds:.2f} ms | {ratio(seconds, 'seconds')} | {megabytes} | {ratio(taken, 'measured_bytes')} |")
    for r in results:
        if r.get("largest"):
            print(f"\nLargest square image, {r['program']} {r['policy']}: {r['size']}²" + (f" ({r['error']})" if "error" in r else ""))


if __name__ == "__main__":
    main()
