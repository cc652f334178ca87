"""Figures as rows with medians and ratios, and rows as the tables of docs/benchmarks.md."""
import re
import statistics

# What stands around a table on the page; with the name that where() gives it.
BEGIN = "<!-- peers: begin {}; written by scripts/bench --peers -->"
END = "<!-- peers: end -->"


def peers(rows):
    """PyTorch's modes in fp32 that keep everything, the fastest first: what ratios are to."""
    return sorted((r for r in rows if r["program"] == "PyTorch" and r["arithmetic"] == "fp32" and r["keeps_everything"]),
                  key=lambda r: r["median_seconds"])


def rows(figures):
    """A dictionary per competitor. Ratios are of medians, to the mode of the same case that `peer` names; None without one."""
    made = []
    for (case, program, policy), f in figures.items():
        taken = {key: statistics.median(f[key]) if f.get(key) else None for key in ("planned_bytes", "measured_bytes")}
        made.append({"case": case, "program": program, "policy": policy, "arithmetic": f["arithmetic"],
                     "keeps_everything": f["keeps_everything"], "seconds": f["seconds"],
                     "median_seconds": statistics.median(f["seconds"]), **taken,
                     "bytes_of_rounds": {key: f.get(key, []) for key in taken}})
    first = {case: next(iter(peers(of_case)), {}) for case, of_case in by_case(made).items()}
    for row in made:
        peer = first[row["case"]]
        row["peer"] = peer.get("policy")
        for ratio, key in (("time_ratio", "median_seconds"), ("memory_ratio", "measured_bytes")):
            row[ratio] = row[key] / peer[key] if row[key] is not None and peer.get(key) else None
    return made


def by_case(results):
    cases = {}
    for row in results:
        cases.setdefault(row["case"], []).append(row)
    return cases


def title(case):
    """"vgg16/224x8" as words."""
    network, shape = case.split("/")
    size, batch = shape.split("x")
    return f"{network}, {size} x {size}, batch {batch}"


def where(result):
    """What a table is of: the processor, and what else both sides met."""
    name = result["processor"] + (f", held to {result['held_to']}" if result["held_to"] else "")
    return name + (f", beside {count(result['busy'], 'busy process', 'es')}" if result["busy"] else "")


def count(number, thing, plural="s"):
    return f"{number} {thing}{plural if number != 1 else ''}"


def table(result):
    """One table a case, and where the figures come from."""
    show = lambda value, pattern: "-" if value is None else pattern.format(value)
    text = ""
    if result["held_to"]:
        text += f"Both sides are held to {result['held_to']}.\n\n"
    if result["busy"]:
        text += f"Both sides share the machine: beside each turn {count(result['busy'], 'busy process', 'es')} ran.\n\n"
    for case, results in by_case(result["results"]).items():
        modes = [r["policy"] for r in peers(results)]
        text += f"**{title(case)}**" + (f"; ratios are to PyTorch's {modes[0]}" if modes else "")
        text += (f", which is faster than {' and '.join(modes[1:])}" if modes[1:] else "") + "\n\n"
        text += "| program | policy or mode | arithmetic | time | of PyTorch's | planned | measured | of PyTorch's |\n"
        text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        for r in results:
            megabytes = [show(r[key] and r[key] / 1e6, "{:.1f} MB") for key in ("planned_bytes", "measured_bytes")]
            text += (f"| {r['program']} | {r['policy']} | {r['arithmetic']} | {r['median_seconds']:.3g} s | {show(r['time_ratio'], '{:.2f}')} | "
                     f"{megabytes[0]} | {megabytes[1]} | {show(r['memory_ratio'], '{:.3f}')} |\n")
        text += "\n"
    text += (f"{result['date']}, {where(result)}, {count(result['threads'], 'thread')}, medians of {count(result['rounds'], 'round')}. "
             f"lrcnn {result['lrcnn']} with {result['backend']}, compiled by {result['compiler']}; ")
    return text + (f"PyTorch {result['torch']} with oneDNN {result['torch_onednn']}.\n" if result["torch"] else "no PyTorch.\n")


def drawing(page, name):
    """The file of the drawing that table `name` shows, or will show."""
    shown = re.search(r"\(figures/([\w.-]+\.svg)\)", page.partition(BEGIN.format(name))[2].partition(END)[0])
    return shown.group(1) if shown else "frontier-" + re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") + ".svg"


def replaced(page, name, text):
    """`page` with `text` between the two markers of table `name`, which comes behind the others if it is new; None if markers are missing."""
    marks = re.findall("<!-- peers: (begin|end -->)", page)
    if not marks or marks != ["begin", "end -->"] * (len(marks) // 2):
        return None
    begin = BEGIN.format(name)
    if begin not in page:
        at = page.rindex(END) + len(END)
        page = page[:at] + f"\n\n{begin}\n\n{END}" + page[at:]
    at = page.index(begin) + len(begin)
    return page[:at] + "\n\n" + text + "\n" + page[page.index(END, at):]
