#!/usr/bin/env python3
"""Tests check.py and twins.py: what should pass passes, and each way of being wrong is reported.  selftest.py COMPILER"""
import os
import sys
import tempfile
import unittest

import check
import twins

COMPILER = sys.argv.pop(1)
GOOD = """
#ifdef LRCNN_FAIL
static_assert(sizeof(char) == 2, "rule; remedy");
#else
static_assert(sizeof(char) == 1, "rule; remedy");
#endif
"""


class CheckReports(unittest.TestCase):
    def problems(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "source.cpp")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return "\n".join(check.problems(path, COMPILER, ["-std=c++20"]))

    def test_right_expectations_pass(self):
        self.assertEqual(self.problems("// EXPECT: rule; remedy\n// EXPECT_WITHIN 3: sizeof(char)\n" + GOOD), "")

    def test_wrong_text(self):
        self.assertIn("the output lacks: another rule", self.problems("// EXPECT: another rule\n" + GOOD))

    def test_second_text_wrong(self):
        self.assertIn("the output lacks: more", self.problems("// EXPECT: rule\n// EXPECT: more\n" + GOOD))

    def test_text_too_far_from_the_error(self):
        text = "// EXPECT: rule\n// EXPECT_WITHIN 1: elsewhere\n" + GOOD
        text = text.replace("#else", "\n\n\n\nint elsewhere = missing;\n#else")
        self.assertIn("within 1 lines of the error: elsewhere", self.problems(text))

    def test_first_text_must_be_in_an_error_line(self):
        text = "// EXPECT: note of mine\n" + GOOD.replace("#ifdef LRCNN_FAIL", "#ifdef LRCNN_FAIL\n#warning note of mine")
        self.assertIn("not in an error line", self.problems(text))

    def test_must_fail(self):
        self.assertIn("but must not", self.problems("// EXPECT: rule\n" + GOOD.replace("== 2", "== 1")))

    def test_expression(self):
        self.assertEqual(self.problems("// EXPECT: rule\n// EXPECT_MATCH: r.le; \\w+dy\n" + GOOD), "")
        self.assertIn("no line matches: rule; \\d", self.problems("// EXPECT: rule\n// EXPECT_MATCH: rule; \\d\n" + GOOD))

    def test_without_expectation(self):
        with self.assertRaises(SystemExit) as caught:
            self.problems(GOOD)
        self.assertIn("would prove nothing", str(caught.exception))

    def test_misspelt_expectation(self):
        with self.assertRaises(SystemExit) as caught:
            self.problems("// EXPECT: rule\n// EXPECT_WITHIN: sizeof\n" + GOOD)
        self.assertIn("cannot read", str(caught.exception))


class TwinsReport(unittest.TestCase):
    def problems(self, *texts):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"source-{i}.cpp") for i in range(len(texts))]
            for path, text in zip(paths, texts):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return twins.problems(COMPILER, ["-std=c++20"], ["vector"], paths)

    def test_sources_with_the_same_names_compile_together(self):
        text = GOOD + "#include <vector>\nusing Numbers = std::vector<int>;\nint main() { return static_cast<int>(Numbers().size()); }\n"
        self.assertEqual(self.problems(text, text), "")

    def test_a_twin_that_does_not_compile_is_named(self):
        found = self.problems(GOOD, GOOD.replace("== 1", "== 3"))
        self.assertIn("a twin", found)
        self.assertIn("source-1.cpp", found)
        self.assertNotIn("source-0.cpp", found)

    def test_a_source_without_a_twin_is_named(self):
        self.assertIn("no twin, for want of '#ifdef LRCNN_FAIL': ", self.problems(GOOD, "int x;\n"))


if __name__ == "__main__":
    unittest.main()
