#!/usr/bin/env python3
"""Tests check_blocks.py.  selftest.py COMPILER FLAGS_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

COMPILER, FLAGS = sys.argv[1:3]
del sys.argv[1:3]
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_blocks.py")


class CheckBlocks(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([sys.executable, SCRIPT, path, "--compiler", COMPILER, "--flags", FLAGS],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def passes(self, text):
        code, output = self.run_on(text)
        self.assertEqual(code, 0, output)
        return output

    def fails(self, text):
        code, output = self.run_on(text)
        self.assertEqual(code, 1, output)
        return output

    def test_no_blocks(self):
        self.assertIn("0 C++ blocks", self.passes("# Title\n```sh\nls\n```\n"))

    def test_function_body(self):
        self.passes("```cpp\n#include <lrcnn/version.hpp>\n#include <vector>\nusing namespace lrcnn;\n"
                    "std::vector<int> v{1};\nstatic_assert(sizeof(int) == 4);\n```\n")

    def test_program(self):
        self.passes("```cpp\nint main() { return 0; }\n```\n")

    def test_namespace_scope_and_setup(self):
        self.passes("<!-- scope: namespace -->\n<!-- setup:\nstruct Base {};\n-->\n"
                    "```cpp\n#include <lrcnn/version.hpp>\ntemplate <class T> struct Mine : Base {};\n```\n")

    def test_broken_block_is_reported_at_its_line(self):
        output = self.fails("text\n\n```cpp\n#include <lrcnn/version.hpp>\nint a;\nnonsense here;\n```\n")
        self.assertIn("page.md:3: this block does not hold", output)
        self.assertIn("page.md:6:", output)

    def test_blocks_that_include_the_same_do_not_meet(self):
        include = "#include <lrcnn/version.hpp>\n"
        main = f"```cpp\n{include}struct Mine {{}};\nint main() {{ return sizeof(Mine) == 1 ? 0 : 1; }}\n```\n"
        scope = f"<!-- scope: namespace -->\n```cpp\n{include}struct Mine {{ int x; }};\n```\n"
        self.assertIn("4 C++ blocks, 4 compiled", self.passes(main + scope + main + scope))

    def test_a_broken_block_among_others_is_reported_alone(self):
        good = "```cpp\n#include <lrcnn/version.hpp>\nint a = 1;\n```\n"
        output = self.fails(good + good.replace("int a", "nonsense a") + good)
        self.assertIn("page.md:5: this block does not hold", output)
        self.assertIn("3 C++ blocks, 3 compiled, 1 failed", output)

    def test_a_block_does_not_borrow_what_another_includes(self):
        self.fails("```cpp\n#include <lrcnn/version.hpp>\n#include <vector>\nstd::vector<int> v;\n```\n"
                   "```cpp\n#include <lrcnn/version.hpp>\nstd::vector<int> v;\n```\n")

    def test_skip_needs_a_reason(self):
        self.assertIn("skipped: to show", self.passes("<!-- skip: to show -->\n```cpp\nnonsense\n```\n"))
        self.assertIn("needs a reason", self.fails("<!-- skip: -->\n```cpp\nnonsense\n```\n"))

    def test_options_hold_for_the_next_block_only(self):
        self.fails("<!-- skip: first -->\n```cpp\nnonsense\n```\n```cpp\nnonsense\n```\n")

    def test_run(self):
        self.passes("<!-- run: -->\n```cpp\nint main() { return 0; }\n```\n")
        self.assertIn("ended with 3", self.fails("<!-- run: -->\n```cpp\nint main() { return 3; }\n```\n"))
        self.assertIn("main function", self.fails("<!-- run: -->\n```cpp\nint a;\n```\n"))

    def test_output(self):
        code = "<!-- run: -->\n```cpp\n#include <cstdio>\nint main() { std::puts(\"one\\ntwo\"); }\n```\n"
        self.passes(code + "<!-- output: -->\n```text\none\ntwo\n```\n")
        self.assertIn("prints something else", self.fails(code + "<!-- output: -->\n```text\none\n```\n"))
        self.assertIn("no program", self.fails("<!-- output: -->\n```text\none\n```\n" + code))

    def test_update(self):
        text = ("<!-- run: -->\n```cpp\n#include <cstdio>\nint main() { std::puts(\"one\\ntwo\"); }\n```\n"
                "<!-- output: -->\n```text\nold\n```\n<!-- file: tests/main.cpp -->\n<!-- skip: needs doctest -->\n"
                "```cpp\nold line\nold line\n```\nend\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run([sys.executable, SCRIPT, path, "--compiler", COMPILER, "--flags", FLAGS, "--update"],
                           stdout=subprocess.DEVNULL, check=True)
            with open(path, encoding="utf-8") as file:
                expected = text.replace("old line\nold line", self.main_file()).replace("old", "one\ntwo")
                self.assertEqual(file.read(), expected)

    @staticmethod
    def main_file():
        with open(os.path.join(os.path.dirname(SCRIPT), "..", "main.cpp"), encoding="utf-8") as file:
            return "\n".join(line for line in file.read().splitlines() if not line.startswith("//"))

    def test_file(self):
        name, shown = "tests/main.cpp", self.main_file() + "\n"
        mark = f"<!-- file: {name} -->\n<!-- scope: namespace -->\n```cpp\n"
        self.assertIn("+++ " + name, self.fails(mark + shown + "int more;\n```\n"))
        self.assertNotIn("+++ " + name, self.run_on(mark + shown + "```\n")[1])
        self.assertIn("there is no", self.fails("<!-- file: nowhere.cpp -->\n```cpp\nint a;\n```\n"))

    def test_unknown_target(self):
        self.assertIn("target gpu is not available", self.fails("<!-- target: gpu -->\n```cpp\nint a;\n```\n"))


if __name__ == "__main__":
    unittest.main()
