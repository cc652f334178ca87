"""Figures as rows with medians and ratios, and rows as the tables of docs/benchmarks.md."""
import statistics

BEGIN = "<!-- peers: begin; written by scripts/bench --peers -->"
END = "<!-- peers: end -->"
PEER = ("PyTorch", "channels_last")   # what ratios are to


def rows(figures):
    """A dictionary per competitor. Ratios are of medians, to PyTorch's channels_last in fp32; None where that is missing."""
    made = []
    for (case, program, policy), f in figures.items():
        taken = {key: statistics.median(f[key]) if f.get(key) else None for key in ("planned_bytes", "measured_bytes")}
        made.append({"case": case, "program": program, "policy": policy, "arithmetic": f["arithmetic"],
                     "seconds": f["seconds"], "median_seconds": statistics.median(f["seconds"]), **taken})
    for row in made:
        peer = next((r for r in made if (r["case"], r["program"], r["policy"]) == (row["case"], *PEER)), {})
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


def table(result):
    """One table a case, and where the figures come from."""
    show = lambda value, pattern: "-" if value is None else pattern.format(value)
    text = ""
    for case, results in by_case(result["results"]).items():
        text += f"**{title(case)}**\n\n| program | policy or mode | arithmetic | time | of PyTorch's | planned | measured | of PyTorch's |\n"
        text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        for r in results:
            megabytes = [show(r[key] and r[key] / 1e6, "{:.1f} MB") for key in ("planned_bytes", "measured_bytes")]
            text += (f"| {r['program']} | {r['policy']} | {r['arithmetic']} | {r['median_seconds']:.3g} s | {show(r['time_ratio'], '{:.2f}')} | "
                     f"{megabytes[0]} | {megabytes[1]} | {show(r['memory_ratio'], '{:.3f}')} |\n")
        text += "\n"
    plural = "s" if result["rounds"] != 1 else ""
    text += (f"{result['date']}, {result['processor']}, {result['threads']} thread{'s' if result['threads'] != 1 else ''}, medians of {result['rounds']} round{plural}. "
             f"lrcnn {result['lrcnn']} with {result['backend']}, compiled by {result['compiler']}; ")
    return text + (f"PyTorch {result['torch']} with oneDNN {result['torch_onednn']}.\n" if result["torch"] else "no PyTorch.\n")


def picture(drawing):
    """The line that shows the figure, if there is one."""
    return "![Time against memory, lrcnn and PyTorch](figures/frontier.svg)\n\n" if drawing else ""


def replaced(page, text):
    """`page` with `text` between the two markers; None if it has not got both."""
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        return None
    return page[:begin + len(BEGIN)] + "\n\n" + text + "\n" + page[end:]
