#!/usr/bin/env python3
"""Compiles one must-fail test and compares what the compiler says with what the file expects.

    check.py SOURCE COMPILER [FLAG...]

The source holds `#ifdef LRCNN_FAIL ... #else ... #endif` and comment lines:
    // EXPECT: text              in the compiler's output; the first one in an error line
    // EXPECT_WITHIN 3: text     within the 3 lines after an error line that holds the first EXPECT
    // EXPECT_MATCH: expression  a regular expression that some line of the output matches
The variant without LRCNN_FAIL, the twin, must compile: it shows that nothing but the fault makes the other one fail. twins.py sees to that,
for all sources at once.
Output is the compiler's own, as a user sees it. Every EXPECT_WITHIN must hold for the same error line.
"""
import os
import re
import subprocess
import sys


def expectations(source):
    """The plain texts, pairs (lines, text), and regular expressions."""
    anywhere, within, matches = [], [], []
    with open(source, encoding="utf-8") as file:
        for line in file:
            match = re.match(r"\s*// EXPECT(?:_WITHIN (\d+))?: *(.*\S)\s*$", line)
            expression = re.match(r"\s*// EXPECT_MATCH: *(.*\S)\s*$", line)
            if expression:
                matches.append(expression[1])
            elif not match:
                if re.match(r"\s*//\s*EXPECT", line):
                    sys.exit(f"{source}: cannot read this expectation: {line.strip()}")
            elif match[1]:
                within.append((int(match[1]), match[2]))
            else:
                anywhere.append(match[2])
    if not anywhere:
        sys.exit(f"{source}: has no '// EXPECT: text' line, so it would prove nothing")
    return anywhere, within, matches


def compile_source(source, compiler, flags):
    command = [compiler, *flags, "-fsyntax-only", "-DLRCNN_FAIL", source]
    environment = dict(os.environ, LC_ALL="C")  # the texts expected are English
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return done.returncode, done.stdout


def problems(source, compiler, flags):
    anywhere, within, matches = expectations(source)
    code, output = compile_source(source, compiler, flags)
    if code == 0:
        return ["compiles with LRCNN_FAIL, but must not"]
    lines = output.splitlines()
    found = [f"the output lacks: {text}" for text in anywhere if text not in output]
    found += [f"no line matches: {expression}" for expression in matches if not any(re.search(expression, line) for line in lines)]
    heads = [i for i, line in enumerate(lines) if "error" in line and anywhere[0] in line]
    if not heads and anywhere[0] in output:
        found.append(f"not in an error line: {anywhere[0]}")
    def lacking(head):
        return [f"the output lacks within {reach} lines of the error: {text}" for reach, text in within
                if not any(text in line for line in lines[head + 1:head + 1 + reach])]
    if heads:
        found += min((lacking(head) for head in heads), key=len)
    return [*found, f"what the compiler said:\n{output}"] if found else []


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found = problems(sys.argv[1], sys.argv[2], sys.argv[3:])
    for problem in found:
        print(f"{sys.argv[1]}: {problem}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
