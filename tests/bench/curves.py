#!/usr/bin/env python3
"""Tests bench/peers/curves.py.  curves.py FOLDER_OF_CURVES_PY"""
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() / "curves.py"
HEADER = "step,loss,test_loss,test_accuracy\n"


class Curves(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def curve(self, name, losses):
        """A file with a test after every second step."""
        path = self.folder / name
        path.write_text(HEADER + "".join(f"{i + 1},{v}," + (f"{v},{i / 10}" if i % 2 else ",") + "\n" for i, v in enumerate(losses)))
        return path

    def run_on(self, *arguments):
        return subprocess.run([sys.executable, "-B", PROGRAM, self.folder / "out.svg", "A title & more", *arguments], text=True,
                              capture_output=True)

    def test_each_run_is_a_line_in_both_panels(self):
        a, b = self.curve("a.csv", [3, 2, 1, 0.5, 0.4, 0.3]), self.curve("b.csv", [3, 2, 1.2, 0.6, 0.5, 0.4])
        self.assertEqual(self.run_on(f"column={a}", f"rows={b}").returncode, 0)
        drawing = xml.dom.minidom.parse(str(self.folder / "out.svg"))
        lines = [line.getAttribute("points").split() for line in drawing.getElementsByTagName("polyline")]
        self.assertEqual([len(line) for line in lines], [6, 6, 3, 3])   # losses, then tests
        self.assertEqual(lines[0][:2], lines[1][:2])   # equal where the runs are
        self.assertNotEqual(lines[0][2], lines[1][2])
        words = [node.firstChild.data for node in drawing.getElementsByTagName("text")]
        for word in ("A title & more", "column", "rows"):
            self.assertIn(word, words)

    def test_a_run_without_steps_is_refused(self):
        self.curve("empty.csv", [])
        said = self.run_on(f"rows={self.folder / 'empty.csv'}")
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("empty.csv has no steps", said.stderr)
        self.assertFalse((self.folder / "out.svg").exists())

    def test_usage(self):
        for arguments in ([], ["rows"], ["a=1", "b=2", "c=3", "d=4"]):
            said = self.run_on(*arguments)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("curves.py OUT.svg TITLE NAME=FILE...", said.stderr)


unittest.main()
