"""Measures lrcnn and PyTorch in turns on one machine, and writes what came of it. Started by scripts/bench --peers.

    compare.py --bench LRCNN_BENCH --python PYTHON [--rounds=N] [--threads=N] [--cpu=WORD] [--busy=N] [--json FILE [--resume]]
               [--write-docs] [REGEX]

REGEX chooses among lrcnn_bench's steps, step/... and frontier/... In every round each competitor of a case has its turn, as a process of its
own: lrcnn_bench with the policies that are chosen, then PyTorch in each of its modes (pytorch_step.py). So what slows the machine down meets
all of them, and medians over the rounds are compared: of each case with the fastest of PyTorch's modes in fp32 that keep everything. FILE is
written anew after every round, whole or not at all. docs/benchmarks.md and a drawing in docs/figures are written after a whole pass (without
REGEX, --cpu and --busy) or with --write-docs, and only if nothing is missing. The page has a table for each processor and for what
--cpu and --busy say; a pass replaces its own, or adds it.

--cpu avx2, avx512 or plain holds both sides to instructions that a processor of that kind has. --busy N has N processes, endless
loops, beside each turn, so that both sides are measured on a machine that is shared. --resume keeps the rounds that are in FILE and does
those that are missing, if FILE is of the same pass.

PyTorch that is not there, or ends in the middle, costs its own figures and a notice. Status 1: figures of ours are missing.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import frontier
import report

HERE = pathlib.Path(__file__).resolve().parent
WHOLE = "^step/vgg16/"   # what docs/benchmarks.md shows
FAMILIES = ("step", "frontier")   # of benchmarks that are steps: ready-made policies, and what Fit chooses by costs that it measures first
# Bytes PyTorch wants per pixel of a batch at the most, and besides: 1411 to 1719 measured for VGG-16, 1800 for ResNet-50, 5600 for the U-Net.
PIXEL_BYTES, BASE_BYTES = {"unet": 6400}, 800_000_000
# What --cpu takes: how it is called, and the environment of every turn. Both sides have a oneDNN, of different versions; PyTorch has
# loops of its own (ATen) and MKL besides. In fp32 nobody goes beyond AVX-512, so there only lrcnn is told.
HELD = {
    "avx2": ("AVX2", {"LRCNN_CPU": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
                      "MKL_ENABLE_INSTRUCTIONS": "AVX2"}),
    "avx512": ("AVX-512", {"LRCNN_CPU": "avx512"}),
    "plain": ("plain instructions", {"LRCNN_CPU": "plain", "ONEDNN_MAX_CPU_ISA": "SSE41", "DNNL_MAX_CPU_ISA": "SSE41",
                                     "ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}),
}
# What has to be the same in all rounds of a pass, in words; the last four are what lrcnn_bench says of itself.
SAME = {"threads": "number of threads", "busy": "number of busy processes", "held_to": "processor that both sides are held to",
        "torch": "PyTorch", "torch_onednn": "PyTorch's oneDNN", "processor": "processor", "lrcnn": "lrcnn", "backend": "backend",
        "compiler": "compiler"}
OURS = ("processor", "lrcnn", "backend", "compiler")
# A busy process. It ends with its parent, even if that is killed.
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(10 ** 6): pass"


class Stop(Exception):
    """Nothing can be measured; the text says why and what to change."""


class Failed(Exception):
    """A process did not do what it was asked for."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def output_of(command, environment=None):
    """What a command prints. Failed, with its last words, if it does not end well."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", env=environment)
    except OSError as e:
        raise Failed(f"{command[0]}: {e.strerror}")
    if done.returncode != 0:
        status = f"status {done.returncode}"
        if done.returncode < 0:
            status = "signal " + signal.Signals(-done.returncode).name
        last = [line.strip() for line in done.stderr.splitlines() if line.strip()][-1:]
        raise Failed(": ".join(["it ended with " + status] + last))
    return done.stdout


@contextlib.contextmanager
def busy(count):
    """So many endless loops, as processes; always ended."""
    command, nowhere, started = [sys.executable, "-I", "-S", "-c", LOOP, str(os.getpid())], subprocess.DEVNULL, []
    try:
        try:
            for _ in range(count):
                started.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))
        except OSError as e:
            raise Stop(f"cannot start {count} busy processes: {e.strerror}; the system limits how many there may be; take a smaller --busy")
        yield
        if any(process.poll() is not None for process in started):
            raise Stop("a busy process ended during a turn; --busy keeps them running beside the whole of it; find out what ends "
                       "processes here, and start it again")
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def environment(cpu):
    """The environment of a turn. Only --cpu holds anybody to anything, so that tables say it."""
    return {**{name: value for name, value in os.environ.items() if name not in HELD["avx2"][1]}, **(HELD[cpu][1] if cpu else {})}


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes():
    """Memory that programs may still take; None where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def extents(case):
    """network, size and batch of "vgg16/224x8"."""
    network, size, batch = re.fullmatch(r"([^/]+)/(\d+)x(\d+)", case).groups()
    return network, int(size), int(batch)


class Pass:
    """All rounds of all cases, and their figures: (case, program, policy or mode) -> figure."""

    def __init__(self, bench, python, threads, cpu=None, busy=0):
        self.bench, self.python, self.threads, self.busy = bench, python, threads, busy
        self.held_to, self.environment = HELD[cpu][0] if cpu else None, environment(cpu)
        self.about, self.turns, self.figures, self.notices, self.ours_missing = {}, [], {}, [], False
        self.rounds, self.steps, self.ours = 0, [], {}
        self.family = {}   # of a case's policy
        self.file, self.earlier = None, None   # what it continues

    def notice(self, text):
        if text not in self.notices:   # as it may be where a pass is continued
            self.notices.append(text)
        say("notice: " + text)

    def resume(self, path):
        """Begins with the rounds that are in a file, if there is one."""
        try:
            self.earlier = json.loads(path.read_text())
            for r in self.earlier["results"]:
                figure = {"arithmetic": r["arithmetic"], "keeps_everything": r["keeps_everything"], "seconds": [float(s) for s in r["seconds"]]}
                self.figures[r["case"], r["program"], r["policy"]] = {**figure, **r["bytes_of_rounds"]}
                if len(figure["seconds"]) != self.earlier["rounds"]:
                    raise ValueError(f"{r['policy']} has not the seconds of {self.earlier['rounds']} rounds")
            self.file, self.rounds, self.notices = path, self.earlier["rounds"], list(self.earlier["notices"])
            self.steps, self.ours = self.earlier["steps"], {key: self.earlier[key] for key in OURS}
            self.check_same(threads=self.threads, busy=self.busy, held_to=self.held_to)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise Stop(f"cannot continue {path}: {type(e).__name__}: {e}; it has to be what --json wrote in this version; name such a "
                       "file, or leave --resume out")

    def check_same(self, **now):
        """Stop if the rounds before were made otherwise."""
        for key, value in now.items():
            if self.earlier and self.earlier[key] != value:
                was, is_ = ("none" if v is None else v for v in (self.earlier[key], value))
                raise Stop(f"cannot continue {self.file}: its {SAME[key]} is {was}, here it is {is_}; rounds of one pass have to be alike; "
                           "start it as it was started, or leave --resume out")

    def plan(self, regex):
        """Who takes turns."""
        command = [self.bench, "--benchmark_filter=" + (regex or WHOLE), "--benchmark_list_tests"]
        try:
            names = output_of(command).splitlines()
        except Failed as e:
            raise Stop(f"lrcnn_bench cannot say what there is to measure; {e}; mend the expression or the build")
        cases = {}
        for name in names:
            family, _, step = name.partition("/")
            if family in FAMILIES:
                case, policy = step.rsplit("/", 1)
                self.family.setdefault((case, policy), family)
                if policy not in cases.setdefault(case, []):   # the column is in both
                    cases[case].append(policy)
        if not cases:
            raise Stop(f"no step matches '{regex}'; names are like step/vgg16/224x8/column; "
                       "list them with scripts/bench --benchmark_list_tests")
        self.turns = []
        for case, policies in cases.items():
            self.turns.append((case, "lrcnn", policies))
            self.turns += [(case, "PyTorch", [mode]) for mode in self.modes(case, policies)]
        steps = [f"{case}/{policy}" for case, policies in cases.items() for policy in policies]
        if self.earlier:
            self.check_same(torch=self.about.get("torch"), torch_onednn=self.about.get("onednn"))
            for step in sorted(set(steps) ^ set(self.steps)):
                raise Stop(f"cannot continue {self.file}: step/{step} is {'not in it' if step in steps else 'in it, but not selected here'}; "
                           "rounds of one pass have the same steps; give the same expression, or leave --resume out")
            # Who was left out before stays out, with its notice.
            self.turns = [(case, program, names) for case, program, names in self.turns if all((case, program, n) in self.figures for n in names)]
            going_on = {(case, program, name) for case, program, names in self.turns for name in names}
            self.figures = {key: figure for key, figure in self.figures.items() if key in going_on}
            self.ours_missing = {case for case, program, _ in self.turns if program == "lrcnn"} != set(cases)
        self.steps = steps

    def ask_pytorch(self):
        """Whether PyTorch is there, and what it can run."""
        try:
            self.about = json.loads(output_of([self.python, HERE / "pytorch_step.py", "--about"]))
        except (Failed, ValueError) as e:
            self.notice(f"PyTorch cannot be used: {e}; its figures will be missing, ours still come; remove .deps/peers to have "
                        "it installed anew, or name a Python that has it in LRCNN_PEERS_PYTHON")

    def modes(self, case, policies):
        """PyTorch's modes on a case: accumulation needs a batch, and bf16 is there to compare ours with."""
        network, size, batch = extents(case)
        if network not in self.about.get("networks", []):
            if self.about:
                say(f"{case}: PyTorch's counterpart is not written; ours only")
            return []
        wanted, there = BASE_BYTES + PIXEL_BYTES.get(network, 1800) * size * size * batch, available_bytes()
        if there is not None and wanted > there:
            self.notice(f"PyTorch is left out on {case}: it wants some {wanted / 1e9:.1f} GB, and {there / 1e9:.1f} GB are "
                        "available; its figures will be missing; end other programs, or take a larger machine")
            return []
        may_accumulate = batch > 1 and network in self.about.get("accumulating", [network])
        bf16 = any("bf16" in policy for policy in policies)
        return [name for name, mode in self.about["modes"].items()
                if (may_accumulate or not mode["accumulates"]) and (bf16 or mode["arithmetic"] != "bf16")]

    def lrcnn(self, case, policies):
        names = "|".join(re.sub(r"([].^$*+?(){}|\\[])", r"\\\1", f"{self.family[case, policy]}/{case}/{policy}") for policy in policies)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.json")
            output_of([self.bench, "--rounds=1", f"--threads={self.threads}", f"--benchmark_filter=^({names})$",
                       f"--benchmark_out={out}", "--benchmark_out_format=json"], self.environment)
            try:
                result = json.loads(out.read_text())
                unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
                ours = {key: result["context"].get(key) for key in OURS}
                self.check_same(**ours)
                self.ours = ours
                # A growth below 0 says that the system does not tell it.
                figures = {b["name"].rsplit("/", 1)[1]: {
                    "seconds": b["real_time"] * unit[b["time_unit"]], "arithmetic": b.get("label", "fp32"),
                    "planned_bytes": b["planned_bytes"],
                    "measured_bytes": b["rss_growth_bytes"] if b["rss_growth_bytes"] >= 0 else None}
                    for b in result["benchmarks"]}
                return {policy: figures[policy] for policy in policies}
            except (OSError, ValueError, KeyError) as e:
                raise Failed(f"its results cannot be read: {type(e).__name__}: {e}")

    def pytorch(self, case, mode):
        command = [self.python, HERE / "pytorch_step.py", *extents(case), mode, f"--threads={self.threads}"]
        try:
            figure = json.loads(output_of(command, self.environment).strip().rsplit("\n", 1)[-1])
            return {mode: {**self.about["modes"][mode], "seconds": float(figure["seconds"]), "measured_bytes": figure["measured_bytes"]}}
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise Failed(f"its answer cannot be read: {type(e).__name__}: {e}")

    def round(self, of):
        """One turn of everybody. Who fails is left out from now on, with what it had."""
        for turn in list(self.turns):
            case, program, names = turn
            try:
                with busy(self.busy):
                    new = self.lrcnn(case, names) if program == "lrcnn" else self.pytorch(case, names[0])
            except Failed as e:
                self.turns.remove(turn)
                for name in names:
                    self.figures.pop((case, program, name), None)
                self.ours_missing = self.ours_missing or program == "lrcnn"
                self.notice(f"{program} {', '.join(names)} on {case} is left out: {e}; the others go on; "
                            "run it alone to see more")
                continue
            for name, figure in new.items():
                kept = self.figures.setdefault((case, program, name), {
                    "arithmetic": figure["arithmetic"], "keeps_everything": figure.get("keeps_everything"), "seconds": []})
                kept["seconds"].append(figure["seconds"])
                for key in ("planned_bytes", "measured_bytes"):
                    if figure.get(key) is not None:
                        kept.setdefault(key, []).append(figure[key])
                say(f"round {self.rounds + 1} of {of}: {case} {program} {name} {figure['seconds']:.3f} s")
        self.rounds += 1

    def result(self):
        """Everything as plain data, with medians and ratios; see report.py."""
        return {
            "date": datetime.date.today().isoformat(), "rounds": self.rounds, "threads": self.threads,
            "held_to": self.held_to, "busy": self.busy,
            "steps": self.steps, **{key: self.ours.get(key) for key in OURS}, "processor": self.ours.get("processor") or "unknown",
            "torch": self.about.get("torch"), "torch_onednn": self.about.get("onednn"), "notices": self.notices, "results": report.rows(self.figures)}


def check_writable(path):
    """Stop if a new file cannot take the name `path`."""
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name + "."):
            pass
    except OSError as e:
        raise Stop(f"cannot write {path}: {e.strerror}; a new file is made beside it and takes its name, so its folder has to "
                   "exist and allow writing; choose another file")


def write(path, text):
    """Replaces a file at once, or leaves it."""
    part = path.with_name(f"{path.name}.part.{os.getpid()}")
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise Stop(f"cannot write {path}: {e.strerror}; what was there is kept; make room, or choose another file")


def number(most=None, words=""):
    def take(text):
        if not text.isdecimal() or int(text) < 1 or (most and int(text) > most):
            raise argparse.ArgumentTypeError(f"it is '{text}'; it takes a number from 1{words}; write {min(most or 3, 3)}, for example")
        return int(text)
    return take


def word(text):
    if text not in HELD:
        raise argparse.ArgumentTypeError(f"it is '{text}'; it takes one of {', '.join(HELD)}; write avx2, for example")
    return text


def run(arguments):
    parser = argparse.ArgumentParser(prog="scripts/bench --peers", allow_abbrev=False)
    parser.add_argument("regex", nargs="?", help="which steps; with Google Benchmark's expressions")
    parser.add_argument("--rounds", type=number(), default=3)
    parser.add_argument("--threads", type=number(processors(), f" to the {processors()} processors"), default=processors())
    parser.add_argument("--cpu", type=word, metavar="WORD", help=f"hold both sides to this kind of processor: {', '.join(HELD)}")
    parser.add_argument("--busy", type=number(256, " to 256"), metavar="N", default=0, help="endless loops beside each turn")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    parser.add_argument("--resume", action="store_true", help="keep the rounds in that file, and do those that are missing")
    parser.add_argument("--write-docs", action="store_true", help="write the documents with REGEX, --cpu or --busy, too")
    parser.add_argument("--check", action="store_true", help="look at the arguments only")
    parser.add_argument("--bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--python", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--docs", type=pathlib.Path, default=HERE.parent.parent / "docs", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    page, figures = args.docs / "benchmarks.md", args.docs / "figures"
    to_docs = args.write_docs or not (args.regex or args.cpu or args.busy)
    for path in ([args.json] if args.json else []) + ([page, figures / "frontier.svg"] if to_docs else []):
        check_writable(path)
    if to_docs and report.replaced(page.read_text(), "", "") is None:
        raise Stop(f"cannot write the table into {page}; each table there stands between the lines '{report.BEGIN.format('NAME')}' and "
                   f"'{report.END}', and there is one at least; put them back")
    measured = Pass(args.bench, args.python, args.threads, args.cpu, args.busy)
    if args.resume and not args.json:
        raise Stop("--resume is without --json FILE; it goes on with the rounds in that file; name it")
    if args.resume:
        measured.resume(args.json)
    if args.check:
        return 0
    if args.resume and not measured.earlier:
        say(f"{args.json} is not there yet; all rounds are to be done")
    measured.ask_pytorch()
    measured.plan(args.regex)
    try:
        while measured.rounds < args.rounds:
            measured.round(args.rounds)
            if args.json:
                write(args.json, json.dumps(measured.result(), indent=1) + "\n")
    except KeyboardInterrupt:
        raise Stop(f"stopped in round {measured.rounds + 1}; " + (
            f"the rounds before are in {args.json}; start it again with --resume" if args.json and measured.rounds
            else "nothing was written; start it again"))
    result = measured.result()
    table = report.table(result)
    print(table, end="")
    if to_docs and measured.notices:
        say(f"{page} and its figure stay as they are, because figures are missing; the notices above say why")
    elif to_docs:
        text, name, drawing = page.read_text(), report.where(result), frontier.draw(result["results"])
        figure = figures / report.drawing(text, name)
        picture = f"![Time against memory, lrcnn and PyTorch](figures/{figure.name})\n\n" if drawing else ""
        if drawing:
            write(figure, drawing)
        write(page, report.replaced(text, name, f"### {name}\n\n{picture}{table}"))
        say(f"wrote {page}" + (f" and {figure}" if drawing else ""))
    return 1 if measured.ours_missing else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)   # ends the process whose turn it is, as Ctrl-C does
    try:
        sys.exit(run(sys.argv[1:]))
    except Stop as e:
        say(f"error: {e}")
        sys.exit(2)
