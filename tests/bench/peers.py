#!/usr/bin/env python3
"""Tests bench/peers with stand-ins for lrcnn_bench and for a Python that has torch.  peers.py FOLDER_OF_COMPARE_PY

Both stand-ins append what they are asked to a log, and take their figures from it: in the n-th turn a step takes its
usual time plus n mod 3 seconds, so that medians differ from first, last and mean.
"""
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

SOURCES = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCES))
import compare
import frontier
import report

BENCH = """#!{python}
import json, pathlib, re, sys
log = pathlib.Path(r"{folder}") / "log"
options = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:] if "=" in a)
names = ["step/vgg16/224x8/column", "step/vgg16/224x8/rows+", "step/vgg16/224x8/column-bf16", "step/vgg16/1024x1/column",
         "step/smallnet/28x128/column", "step/vgg11/64x2/column", "frontier/vgg11/64x2/column", "frontier/vgg11/64x2/fit-75MB",
         "plan/vgg16/224x8/column"]
chosen = [n for n in names if re.search(options["benchmark_filter"], n)]
if not chosen:
    sys.exit("lrcnn: no benchmark's name matches; names; list them")
if "--benchmark_list_tests" in sys.argv:
    print("\\n".join(chosen))
    sys.exit()
with log.open("a") as file:
    file.write("lrcnn " + chosen[0].split("/")[1] + "/" + chosen[0].split("/")[2] + "\\n")
turn = log.read_text().count("lrcnn " + "/".join(chosen[0].split("/")[1:3]))
{extra}
planned = {{"column": 300e6, "rows+": 75e6, "column-bf16": 200e6, "fit-75MB": 75e6}}
results = [{{"name": n, "real_time": 1000 * (3 + turn % 3), "time_unit": "ms", "label": "bf16" if "bf16" in n else "fp32",
            "planned_bytes": planned[n.split("/")[-1]], "rss_growth_bytes": planned[n.split("/")[-1]] - 1e6}} for n in chosen]
context = {{"lrcnn": "9.8.7", "backend": "oneDNN 2.6.3", "compiler": "g++ 12.2.0", "processor": "A Processor <&>"}}
pathlib.Path(options["benchmark_out"]).write_text(json.dumps({{"context": context, "benchmarks": results}}))
"""
WORKER = """#!{python}
import json, pathlib, sys
log = pathlib.Path(r"{folder}") / "log"
arguments = sys.argv[2:]   # behind the name of pytorch_step.py
if arguments == ["--about"]:
    fp32 = {{"arithmetic": "fp32", "accumulates": False, "keeps_everything": True}}
    modes = {{"eager": fp32, "channels_last": fp32, "accumulated": {{**fp32, "accumulates": True, "keeps_everything": False}},
             "channels_last-bf16": {{**fp32, "arithmetic": "bf16"}}}}
    print(json.dumps({{"torch": "2.99", "onednn": "3.99", "networks": ["vgg16"], "modes": modes}}))
    sys.exit()
network, size, batch, mode = arguments[:4]
name = mode + " " + network + "/" + size + "x" + batch
with log.open("a") as file:
    file.write(name + "\\n")
turn = log.read_text().count(name)
{extra}
usual = {{"eager": 8, "channels_last": 4}}.get(mode, 2)   # what drops something, or is in bf16, may be faster still
if size == "1024":
    usual = {{"eager": 6, "channels_last": 12}}.get(mode, 2)
figure = {{"seconds": usual + turn % 3, "measured_bytes": 800e6 if mode == "eager" else 600e6}}
print("a warning of torch\\n" + json.dumps(figure))
"""
OTHER = f"{report.BEGIN.format('Another')}\n\n![of](figures/frontier.svg)\n\nits table\n\n{report.END}"
PAGE = f"# Before\n\n{OTHER}\n\nAfter\n"


class Peers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "docs" / "figures").mkdir(parents=True)
        self.page, self.figure = self.folder / "docs" / "benchmarks.md", self.folder / "docs" / "figures" / "frontier-a-processor.svg"
        self.page.write_text(PAGE)
        self.json = self.folder / "out.json"
        self.stand_in("bench", BENCH)
        self.stand_in("python", WORKER)

    def stand_in(self, name, text, extra=""):
        path = self.folder / name
        path.write_text(text.format(python=sys.executable, folder=self.folder, extra=extra))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_it(self, *arguments, status=0, **environment):
        done = subprocess.run([sys.executable, "-B", str(SOURCES / "compare.py"), "--bench", str(self.folder / "bench"), "--python",
                               str(self.folder / "python"), "--docs", str(self.folder / "docs"), "--threads=1", *map(str, arguments)],
                              capture_output=True, text=True, env={**os.environ, **environment})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def log(self):
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def results(self):
        return {(r["case"], r["program"], r["policy"]): r for r in json.loads(self.json.read_text())["results"]}

    def test_competitors_take_turns(self):
        self.run_it("--rounds=2")
        small = ["lrcnn vgg16/1024x1", "eager vgg16/1024x1", "channels_last vgg16/1024x1"]
        batch = ["lrcnn vgg16/224x8"] + [f"{m} vgg16/224x8" for m in ("eager", "channels_last", "accumulated", "channels_last-bf16")]
        self.assertEqual(self.log(), 2 * (batch + small))

    def test_medians_and_ratios(self):
        self.run_it("vgg16", "--rounds=3", "--json", self.json)
        results = self.results()
        column = results["vgg16/224x8", "lrcnn", "column"]
        self.assertEqual(column["seconds"], [4, 5, 3])
        self.assertEqual(column["median_seconds"], 4)
        self.assertEqual(results["vgg16/224x8", "PyTorch", "eager"]["seconds"], [9, 10, 8])
        self.assertEqual(results["vgg16/224x8", "PyTorch", "channels_last"]["median_seconds"], 5)
        self.assertAlmostEqual(column["time_ratio"], 4 / 5)
        self.assertAlmostEqual(results["vgg16/224x8", "PyTorch", "eager"]["time_ratio"], 9 / 5)
        self.assertAlmostEqual(results["vgg16/224x8", "lrcnn", "rows+"]["memory_ratio"], 74 / 600)
        self.assertEqual(results["vgg16/224x8", "PyTorch", "accumulated"]["planned_bytes"], None)
        whole = json.loads(self.json.read_text())
        self.assertEqual((whole["rounds"], whole["torch"], whole["lrcnn"], whole["notices"]), (3, "2.99", "9.8.7", []))

    def test_the_page_and_the_figure_of_a_whole_pass(self):
        said = self.run_it("--rounds=3")
        page = self.page.read_text()
        self.assertIn("| lrcnn | rows+ | fp32 | 4 s | 0.80 | 75.0 MB | 74.0 MB | 0.123 |", page)
        self.assertIn("| lrcnn | column-bf16 | bf16 | 4 s | 0.80 | 200.0 MB | 199.0 MB | 0.332 |", page)
        self.assertIn("| PyTorch | channels_last | fp32 | 5 s | 1.00 | - | 600.0 MB | 1.000 |", page)
        self.assertRegex(page, r"\d{4}-\d\d-\d\d, A Processor <&>, 1 thread, medians of 3 rounds\. lrcnn 9\.8\.7 with oneDNN 2\.6\.3, "
                               r"compiled by g\+\+ 12\.2\.0; PyTorch 2\.99 with oneDNN 3\.99\.")
        self.assertIn("**vgg16, 1024 x 1024, batch 1**", page)
        self.assertNotIn("smallnet", page)
        self.assertIn("### A Processor <&>\n\n![Time against memory, lrcnn and PyTorch](figures/frontier-a-processor.svg)\n\n**vgg16", page)
        self.assertIn(said.stdout, page)
        drawing = xml.dom.minidom.parse(str(self.figure))
        words = [t.firstChild.data for t in drawing.getElementsByTagName("text")]
        for name in ("rows+", "accumulated", "vgg16, 224 x 224, batch 8", "1 is PyTorch's channels_last", "1 is PyTorch's eager"):
            self.assertIn(name, words)
        self.assertEqual(sorted(os.listdir(self.folder / "docs")), ["benchmarks.md", "figures"])
        self.run_it("--rounds=1")   # once more over its own page
        self.assertEqual(self.page.read_text().count("**vgg16, 224 x 224, batch 8**"), 1)

    def test_ratios_are_to_the_fastest_that_keeps_everything(self):
        said = self.run_it("vgg16", "--rounds=3", "--json", self.json)
        results = self.results()
        for case, peer, ratio, memory in (("vgg16/224x8", "channels_last", 4 / 5, 299 / 600), ("vgg16/1024x1", "eager", 4 / 7, 299 / 800)):
            column = results[case, "lrcnn", "column"]
            self.assertEqual({r["peer"] for (of, _, _), r in results.items() if of == case}, {peer})
            self.assertEqual((results[case, "PyTorch", peer]["time_ratio"], results[case, "PyTorch", peer]["memory_ratio"]), (1, 1))
            self.assertAlmostEqual(column["time_ratio"], ratio)
            self.assertAlmostEqual(column["memory_ratio"], memory)
        self.assertAlmostEqual(results["vgg16/224x8", "PyTorch", "accumulated"]["time_ratio"], 3 / 5)
        self.assertAlmostEqual(results["vgg16/224x8", "lrcnn", "column-bf16"]["time_ratio"], 4 / 5)
        self.assertIn("**vgg16, 224 x 224, batch 8**; ratios are to PyTorch's channels_last, which is faster than eager\n", said.stdout)
        self.assertIn("**vgg16, 1024 x 1024, batch 1**; ratios are to PyTorch's eager, which is faster than channels_last\n", said.stdout)
        self.stand_in("python", WORKER, 'if mode == "eager": sys.exit("killed")')   # the other one, if one is not there
        self.assertIn("**vgg16, 1024 x 1024, batch 1**; ratios are to PyTorch's channels_last\n", self.run_it("1024", "--rounds=1").stdout)

    def test_a_part_is_printed_only(self):
        said = self.run_it("vgg16/224x8/rows", "--rounds=1")
        self.assertIn("| lrcnn | rows+ |", said.stdout)
        self.assertNotIn("bf16", said.stdout)
        self.assertEqual(self.page.read_text(), PAGE)
        self.run_it("vgg16/224x8/rows", "--rounds=1", "--write-docs")
        self.assertIn("| lrcnn | rows+ |", self.page.read_text())

    def test_a_network_without_counterpart(self):
        said = self.run_it("smallnet", "--rounds=1")
        self.assertIn("| lrcnn | column | fp32 | 4 s | - | 300.0 MB | 299.0 MB | - |", said.stdout)
        self.assertIn("smallnet/28x128: PyTorch's counterpart is not written", said.stderr)

    def test_every_processor_has_a_table(self):
        begin = report.BEGIN.format
        self.run_it("--rounds=1")
        first = self.page.read_text()
        own = f"\n\n{begin('A Processor <&>')}\n\n### A Processor <&>\n\n"
        self.assertTrue(first.startswith(f"# Before\n\n{OTHER}{own}") and first.endswith(f"\n\n{report.END}\n\nAfter\n"))
        self.run_it("vgg16/224x8/rows", "--rounds=1", "--cpu=avx2", "--write-docs")
        second = self.page.read_text()
        held = second[len(first) - len("\n\nAfter\n"):]
        self.assertEqual(second[:-len(held)] + "\n\nAfter\n", first)   # nothing else has changed
        self.assertTrue(held.startswith(f"\n\n{begin('A Processor <&>, held to AVX2')}\n\n### A Processor <&>, held to AVX2\n\n"
                                        "![Time against memory, lrcnn and PyTorch](figures/frontier-a-processor-held-to-avx2.svg)\n\n"
                                        "Both sides are held to AVX2.\n\n**vgg16"))
        self.page.write_text(second.replace("frontier-a-processor.svg", "mine.svg").replace("| fp32 | 4 s |", "| fp32 | 40 s |"))
        self.run_it("--rounds=3")   # replaces its own, and keeps the name of its drawing
        page = self.page.read_text()
        self.assertTrue(page.startswith(f"# Before\n\n{OTHER}{own}![Time against memory, lrcnn and PyTorch](figures/mine.svg)"))
        own, held = page.split(begin("A Processor <&>, held to AVX2"))
        self.assertEqual((own.count("40 s"), held.count("40 s"), page.count("<!-- peers: begin")), (0, 1, 3))
        self.assertEqual(sorted(os.listdir(self.figure.parent)), ["frontier-a-processor-held-to-avx2.svg", "frontier-a-processor.svg", "mine.svg"])

    def test_results_that_cannot_be_written(self):
        for path, why in ((self.folder / "nowhere" / "out.json", "No such file"), (self.folder / "docs", "it is a folder")):
            said = self.run_it("--rounds=1", "--json", path, status=2)
            self.assertIn(f"error: cannot write {path}: {why}", said.stderr)
            self.assertIn("its folder has to exist and allow writing; choose another file", said.stderr)
        self.assertEqual(self.log(), [])

    def test_a_page_without_markers(self):
        begin, end = report.BEGIN.format("A"), report.END
        for text in ("nothing", begin, end, f"{end} {begin}", f"{begin} {begin} {end}", f"{begin} {end} {begin}"):
            self.page.write_text(text)
            said = self.run_it("--rounds=1", status=2)
            self.assertIn(f"error: cannot write the table into {self.page}; each table there stands between the lines "
                          f"'{report.BEGIN.format('NAME')}' and '{end}', and there is one at least; put them back", said.stderr)
            self.assertEqual((self.log(), self.page.read_text()), ([], text))

    def test_arguments(self):
        for argument in ("--rounds=0", "--rounds=many", "--threads=0", f"--threads={compare.processors() + 1}"):
            said = self.run_it(argument, status=2)
            self.assertIn(f"it is '{argument.split('=')[1]}'; it takes a number from 1", said.stderr)
        self.assertIn(f"to the {compare.processors()} processors", said.stderr)
        for text in ("0", "-1", "many", "257", "²", ""):
            self.assertIn(f"argument --busy: it is '{text}'; it takes a number from 1 to 256; write 3, for example",
                          self.run_it(f"--busy={text}", status=2).stderr)
        self.assertIn("argument --cpu: it is 'sse'; it takes one of avx2, avx512, plain; write avx2, for example",
                      self.run_it("--cpu=sse", status=2).stderr)
        self.assertEqual(self.run_it("--check", "--busy=256", "--cpu", "plain").stderr, "")
        self.assertIn("no benchmark's name matches", self.run_it("alexnet", status=2).stderr)
        self.assertIn("no step matches '^plan'; names are like step/", self.run_it("^plan", status=2).stderr)
        self.assertEqual(self.log(), [])

    def test_what_fit_chooses(self):
        said = self.run_it("--rounds=1", "vgg11")
        self.assertEqual(self.log(), ["lrcnn vgg11/64x2"])   # both families in one turn
        lines = [line for line in said.stdout.splitlines() if line.startswith("| lrcnn")]
        self.assertEqual([line.split(" | ")[1] for line in lines], ["column", "fit-75MB"])

    def test_no_pytorch(self):
        for broken in ("sys.exit('ImportError: libtorch is missing')", "print('not json'); sys.exit()", None):
            if broken:
                self.stand_in("python", WORKER.replace('if arguments == ["--about"]:', 'if True:\n    {extra}'), broken)
            else:
                (self.folder / "python").unlink()
            said = self.run_it("--rounds=1", "--json", self.json)
            self.assertIn("notice: PyTorch cannot be used: ", said.stderr)
            self.assertIn("remove .deps/peers to have it installed anew, or name a Python that has it in LRCNN_PEERS_PYTHON", said.stderr)
            self.assertIn("stay as they are", said.stderr)
            self.assertIn("| lrcnn | column | fp32 |", said.stdout)
            self.assertIn("no PyTorch.", said.stdout)
            self.assertEqual({program for _, program, _ in self.results()}, {"lrcnn"})
            self.assertEqual((self.page.read_text(), self.figure.exists()), (PAGE, False))
        self.assertIn("No such file", said.stderr)

    def test_a_mode_that_ends_in_the_middle(self):
        self.stand_in("python", WORKER, 'if mode == "eager" and turn == 2: import os; os.kill(os.getpid(), 9)')
        said = self.run_it("--rounds=3", "--json", self.json)
        self.assertIn("notice: PyTorch eager on vgg16/224x8 is left out: it ended with signal SIGKILL", said.stderr)
        results = self.results()
        self.assertNotIn(("vgg16/224x8", "PyTorch", "eager"), results)
        self.assertEqual(len(results["vgg16/224x8", "PyTorch", "accumulated"]["seconds"]), 3)
        self.assertEqual(len(results["vgg16/224x8", "lrcnn", "column"]["seconds"]), 3)
        self.assertEqual(sum(line.startswith("eager vgg16/224x8") for line in self.log()), 2)
        self.assertIn("eager on vgg16/224x8", json.loads(self.json.read_text())["notices"][0])
        self.assertEqual(self.page.read_text(), PAGE)

    def test_an_answer_that_cannot_be_read(self):
        self.stand_in("python", WORKER, 'if mode == "accumulated": print("{"); sys.exit()')
        self.assertIn("PyTorch accumulated on vgg16/224x8 is left out: its answer cannot be read", self.run_it("--rounds=1").stderr)

    def test_ours_that_ends_in_the_middle(self):
        self.stand_in("bench", BENCH, 'if turn == 2 and "1024" in chosen[0]: sys.exit("lrcnn: too large; rule; remedy")')
        said = self.run_it("--rounds=2", "--json", self.json, status=1)
        self.assertIn("notice: lrcnn column on vgg16/1024x1 is left out: it ended with status 1: lrcnn: too large", said.stderr)
        results = self.results()
        self.assertIn(("vgg16/1024x1", "PyTorch", "eager"), results)
        self.assertEqual(len(results["vgg16/224x8", "lrcnn", "column"]["seconds"]), 2)
        self.assertEqual(self.page.read_text(), PAGE)

    def test_what_was_measured_is_kept_when_it_is_stopped(self):
        self.stand_in("python", WORKER, 'if mode == "eager" and turn == 2: import os, signal; os.kill(os.getppid(), signal.SIGINT)')
        said = self.run_it("vgg16/1024x1", "--rounds=3", "--json", self.json, status=2)
        self.assertIn(f"error: stopped in round 2; the rounds before are in {self.json}; start it again with --resume", said.stderr)
        self.assertEqual(self.results()["vgg16/1024x1", "PyTorch", "eager"]["seconds"], [7])

    def test_a_pass_is_continued(self):
        whole = self.folder / "whole.json"
        self.run_it("vgg16", "--rounds=3", "--json", whole)
        (self.folder / "log").unlink()
        said = self.run_it("vgg16", "--rounds=1", "--json", self.json, "--resume")
        self.assertIn(f"{self.json} is not there yet; all rounds are to be done", said.stderr)
        turns = len(self.log())
        said = self.run_it("vgg16", "--rounds=3", "--json", self.json, "--resume")
        self.assertEqual(len(self.log()), 3 * turns)   # two more rounds
        self.assertIn("round 2 of 3: vgg16/224x8 lrcnn column", said.stderr)
        self.assertNotIn("round 1 of 3", said.stderr)
        self.assertEqual(json.loads(self.json.read_text()), json.loads(whole.read_text()))
        again = self.run_it("vgg16", "--rounds=3", "--json", self.json, "--resume")   # nothing is missing
        self.assertEqual((again.stdout, len(self.log())), (said.stdout, 3 * turns))

    def test_who_was_left_out_stays_out_when_a_pass_is_continued(self):
        self.stand_in("python", WORKER, 'if mode == "eager": sys.exit("killed")')
        self.stand_in("bench", BENCH, 'if "1024" in chosen[0]: sys.exit("lrcnn: too large")')
        self.run_it("--rounds=1", "--json", self.json, status=1)
        self.stand_in("python", WORKER)
        self.stand_in("bench", BENCH)
        said = self.run_it("--rounds=2", "--json", self.json, "--resume", status=1)
        self.assertIn("stay as they are", said.stderr)
        self.assertEqual({(case, mode) for case, _, mode in self.results() if "1024" in case or mode == "eager"}, {("vgg16/1024x1", "channels_last")})
        self.assertEqual({len(r["seconds"]) for r in self.results().values()}, {2})
        self.assertEqual(len(json.loads(self.json.read_text())["notices"]), 3)

    def test_what_cannot_be_continued(self):
        self.assertIn("error: --resume is without --json FILE; it goes on with the rounds in that file; name it",
                      self.run_it("--resume", "--check", status=2).stderr)
        self.run_it("1024", "--rounds=1", "--json", self.json)
        kept = self.json.read_text()
        before = self.log()

        def refused(text, *arguments, check=True):
            said = self.run_it(*(arguments or ("1024",)), "--rounds=2", "--resume", "--json", self.json, *["--check"] * check, status=2)
            self.assertIn(f"error: cannot continue {self.json}: {text}", said.stderr)

        alike = "; rounds of one pass have to be alike; start it as it was started, or leave --resume out"
        refused("its number of busy processes is 0, here it is 1" + alike, "1024", "--busy=1")
        refused("its processor that both sides are held to is none, here it is AVX2" + alike, "1024", "--cpu=avx2")
        refused("step/vgg16/224x8/column is not in it; rounds of one pass have the same steps; give the same expression", "vgg16", check=False)
        refused("step/vgg16/1024x1/column is in it, but not selected here; rounds", "vgg16/224x8/rows", check=False)
        self.stand_in("python", WORKER.replace("2.99", "3.0"))
        refused("its PyTorch is 2.99, here it is 3.0" + alike, check=False)
        self.stand_in("python", WORKER)
        self.assertEqual(self.log(), before)   # all that before anything is measured
        for was, now, text in (("A Processor <&>", "B", "its processor is A Processor <&>, here it is B"),
                               ("9.8.7", "9.9", "its lrcnn is 9.8.7, here it is 9.9")):
            self.stand_in("bench", BENCH.replace(was, now))
            refused(text + alike, check=False)
        self.assertEqual(self.json.read_text(), kept)
        for text, why in (("{", "JSONDecodeError: "), ("[]", "TypeError: "), ("{}", "KeyError: 'results'"),
                          (kept.replace('"rounds": 1', '"rounds": 2'), "ValueError: column has not the seconds of 2 rounds"),
                          (kept.replace('"threads": 1', '"threads": 7'), "its number of threads is 7, here it is 1" + alike)):
            self.json.write_text(text)
            refused(why)
            self.assertEqual(self.json.read_text(), text)
        self.json.write_text("{}")
        refused("KeyError: 'results'; it has to be what --json wrote in this version; name such a file, or leave --resume out")

    def test_too_little_memory(self):
        before = compare.available_bytes
        self.addCleanup(setattr, compare, "available_bytes", before)
        compare.available_bytes = lambda: 2_000_000_000
        self.addCleanup(setattr, sys, "stderr", sys.stderr)
        sys.stderr = io.StringIO()
        measured = compare.Pass("bench", "python", 1)
        measured.about = {"networks": ["vgg16"], "modes": {"eager": {"arithmetic": "fp32", "accumulates": False}}}
        self.assertEqual(measured.modes("vgg16/2048x1", ["column"]), [])
        self.assertRegex(measured.notices[0], r"left out on vgg16/2048x1: it wants some 8\.3 GB, and 2\.0 GB are available; .*; end other")
        self.assertEqual(measured.modes("vgg16/224x1", ["column"]), ["eager"])

    HELD = ("LRCNN_CPU", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS")

    def test_held_to_a_processor(self):
        note = f'import os; (pathlib.Path(r"{self.folder}") / "held").open("a").write(" ".join(os.environ.get(n, "-") for n in {self.HELD}) + "\\n")'
        self.stand_in("bench", BENCH, note)
        self.stand_in("python", WORKER, note)
        for word, name, environment in (("avx2", "AVX2", "avx2 AVX2 AVX2 avx2 AVX2"), ("avx512", "AVX-512", "avx512 - - - -"),
                                        ("plain", "plain instructions", "plain SSE41 SSE41 default SSE4_2"), (None, None, "- - - - -")):
            held = [f"--cpu={word}"] if word else []
            said = self.run_it("1024", "--rounds=1", "--json", self.json, *held, LRCNN_CPU="avx2", ATEN_CPU_CAPABILITY="default")
            self.assertEqual((self.folder / "held").read_text().splitlines(), 3 * [environment])
            (self.folder / "held").unlink()
            self.assertEqual(json.loads(self.json.read_text())["held_to"], name)
            self.assertEqual(f"Both sides are held to {name}.\n\n**vgg16" in said.stdout, bool(word))
            self.assertEqual(f"A Processor <&>, held to {name}, 1 thread" in said.stdout, bool(word))

    def test_a_pass_that_is_held_or_shared_does_not_write_the_page(self):
        for argument in ("--cpu=avx2", "--busy=1"):
            self.run_it("--rounds=1", argument)
            self.assertEqual((self.page.read_text(), self.figure.exists()), (PAGE, False))

    NOTE_BUSY = """
import os
for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
    try:
        if stat.read_text().rsplit(")", 1)[1].split()[1] == str(os.getppid()) and stat.parent.name != str(os.getpid()):
            with (log.parent / "busy").open("a") as file:
                file.write(stat.parent.name + "\\n")
    except OSError:
        pass
"""

    def busy(self):
        """The busy processes that the stand-ins saw, as "pid"; none may be running when this returns."""
        pids = (self.folder / "busy").read_text().splitlines()
        (self.folder / "busy").unlink()
        for pid in pids:
            for _ in range(100):   # who was not ended notices by itself
                try:
                    if pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                        break
                except OSError:
                    break
                time.sleep(0.1)
            else:
                self.fail(f"the busy process {pid} is still running")
        return pids

    @unittest.skipUnless(pathlib.Path("/proc/self/stat").exists(), "needs /proc to see processes")
    def test_busy_processes(self):
        self.stand_in("bench", BENCH, self.NOTE_BUSY)
        self.stand_in("python", WORKER, self.NOTE_BUSY)
        said = self.run_it("1024", "--rounds=2", "--busy=2", "--json", self.json)
        pids = self.busy()
        self.assertEqual((len(pids), len(set(pids))), (12, 12))   # two of their own for each of six turns
        self.assertEqual(json.loads(self.json.read_text())["busy"], 2)
        self.assertIn("Both sides share the machine: beside each turn 2 busy processes ran.\n\n**vgg16", said.stdout)
        self.assertIn("A Processor <&>, beside 2 busy processes, 1 thread", said.stdout)
        self.assertIn("A Processor <&>, held to AVX2, beside 1 busy process, 1", self.run_it("1024", "--rounds=1", "--busy=1", "--cpu=avx2").stdout)
        self.run_it("1024", "--rounds=1", "--json", self.json)
        self.assertEqual((len(self.busy()), json.loads(self.json.read_text())["busy"]), (3, 0))

    @unittest.skipUnless(pathlib.Path("/proc/self/stat").exists(), "needs /proc to see processes")
    def test_busy_processes_always_end(self):
        for way, status, text in (('sys.exit("out of memory")', 0, "PyTorch eager on vgg16/1024x1 is left out"),
                                  ("os.kill(os.getppid(), signal.SIGINT); time.sleep(5)", 2, "error: stopped in round 1"),
                                  ("os.kill(os.getppid(), signal.SIGTERM); time.sleep(5)", 2, "error: stopped in round 1"),
                                  ("os.kill(os.getppid(), signal.SIGKILL)", -9, "")):
            self.stand_in("python", WORKER, self.NOTE_BUSY + f'if mode == "eager": import signal, time; {way}')
            self.assertIn(text, self.run_it("1024", "--rounds=1", "--busy=3", status=status).stderr)
            self.assertEqual(len(self.busy()), 6 if status == 0 else 3)
        kill = "import signal; os.kill(int((log.parent / 'busy').read_text().split()[0]), signal.SIGKILL); import time; time.sleep(1)"
        self.stand_in("python", WORKER, self.NOTE_BUSY + kill)
        said = self.run_it("1024", "--rounds=1", "--busy=2", status=2)
        self.assertIn("error: a busy process ended during a turn; --busy keeps them running beside the whole of it; find out", said.stderr)
        self.busy()

    def test_labels_do_not_meet(self):
        points = [(300 + 7 * (i % 5), 200 + 5 * (i % 4)) for i in range(20)]
        boxes = frontier.place(points, [f"a-policy-{i}" for i in range(20)], (64, 60, 880, 380))
        for i, a in enumerate(boxes):
            self.assertTrue(64 <= a[0] and 60 <= a[1] and a[2] <= 880 and a[3] <= 380)
            for b in boxes[:i]:
                self.assertFalse(frontier.overlap(a, b))


if __name__ == "__main__":
    unittest.main()
