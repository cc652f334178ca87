#!/usr/bin/env python3
"""Compiles every C++ block of a Markdown file, so that documentation cannot go stale.

    check_blocks.py FILE.md --compiler C++ --flags FOLDER [--jobs N] [--update] [--precompiled-header HEADER] [--library FILE]

A block is fenced with ```cpp. One with a main function is compiled as it stands; of any other, #include lines and
using-directives are moved to the top and the rest is put into a function body, where it may use names that nobody
reads. lrcnn/lrcnn.hpp and `using namespace lrcnn` are added to blocks that include nothing of lrcnn.
HTML comments right before the fence, each on lines of its own, change that:
    <!-- scope: namespace -->   the rest stands at namespace scope (templates, layers of one's own)
    <!-- target: onednn -->     with the flags of lrcnn::onednn (FOLDER/onednn.rsp); also data, cudnn, images and interop (with the
                                libraries of all files' formats), or several of these; core is the default. Skipped where this build lacks
                                a target, unless CI=true
    <!-- setup: code -->        code put before the block that readers need not see; may span lines
    <!-- file: examples/x.cpp -->   the block is that file of the repository, without the comment that it begins with
    <!-- run: -->               a program of target core, which is also run and has to succeed
    <!-- output: -->            before a block of text: what the program run last prints
    <!-- recipe: FILE ... -->   not compiled here: recipe.py puts the block into a copy of the repository's file
    <!-- skip: reason -->       not compiled; the reason is printed
--update writes into the page what files hold and programs print. HEADER is lrcnn/lrcnn.hpp as the compiler has read it before with the
flags of core (header_flags() says which others): blocks that include nothing, or it first, are compiled with it. Blocks that include the same are
compiled together, and one by one if that fails. FILE is the library that LRCNN_PRECOMPILED promises: programs are linked with it.
"""
import argparse
import concurrent.futures
import difflib
import os
import re
import subprocess
import sys
import tempfile

OPTIONAL = ("data", "onednn", "cudnn", "images", "interop")
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused", "-Werror"]
KEYS = ("scope", "target", "setup", "file", "run", "output", "recipe", "skip")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MAIN = re.compile(r"\bint main\s*\(")
HOISTED = re.compile(r"^\s*(#\s*include\b.*|using namespace [\w:]+;.*)$")


class Block:
    def __init__(self, line, code, options):
        self.line, self.code, self.options = line, code, options


def blocks(path):
    """Every C++ block of a file, and every block of text that shows output, with the options before it."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found, options, i = [], {}, 0
    while i < len(lines):
        line = lines[i].strip()
        if line.startswith("<!--"):
            first, text = i, lines[i]
            while "-->" not in text:
                i += 1
                if i == len(lines):
                    sys.exit(f"{path}:{first + 1}: the comment does not end")
                text += "\n" + lines[i]
            match = re.match(r"\s*<!--\s*(\w+):(.*?)-->\s*$", text, re.DOTALL)
            if match and match[1] in KEYS:
                options[match[1]] = match[2].strip()
        elif line.startswith(("```", "~~~")):
            fence = re.match(r"[`~]+", line)[0]
            language = line[len(fence):].strip().split(" ")[0]
            first, body = i, []
            i += 1
            while i < len(lines) and lines[i].strip() != fence:
                body.append(lines[i])
                i += 1
            if i == len(lines):
                sys.exit(f"{path}:{first + 1}: the block does not end")
            if language in ("cpp", "c++") or "output" in options:
                found.append(Block(first + 1, body, options))
            options = {}
        elif line:
            options = {}
        i += 1
    return found


def is_program(block):
    return any(MAIN.search(line) for line in block.code)


def pieces(block, path):
    """What a block hoists to the top of a source file, and the rest, which may stand in a namespace."""
    def marked(number, line):
        return f'#line {block.line + 1 + number} "{path}"\n{line}'
    top, rest = [], []
    for number, line in enumerate(block.code):
        (top if HOISTED.match(line) else rest).append(marked(number, line))
    if is_program(block):
        return top, rest
    if not any(re.match(r"\s*#\s*include\s*<lrcnn/", line) for line in block.code):
        top.insert(0, "#include <lrcnn/lrcnn.hpp>\nusing namespace lrcnn;")
    setup = [f'#line 1 "setup of {os.path.basename(path)}:{block.line}"', block.options.get("setup", "")]
    if block.options.get("scope") == "namespace":
        return top, [*setup, *rest]
    return top, ["[[maybe_unused]] static void documentation_block() {", *setup, *rest, "}"]


def program(block, path):
    """The source text of a block."""
    if is_program(block):
        return "\n".join([f'#line {block.line + 1} "{path}"', *block.code, ""])
    top, rest = pieces(block, path)
    return "\n".join([*top, *rest, ""])


def joined_program(group, path):
    """The source text of several blocks that hoist the same lines: each in a namespace of its own."""
    top, text = pieces(group[0], path)[0], []
    for block in group:
        text += [f"namespace block_{block.line} {{", *pieces(block, path)[1], "}"]
    return "\n".join([*top, *text, ""])


def groups_of(todo):
    """Blocks that one run of the compiler can take together: they hoist the same lines, and have no other lines for the preprocessor."""
    groups = {}
    for block in todo:
        own = [*block.code, *block.options.get("setup", "").splitlines()]
        rest = [line for line in own if not HOISTED.match(line)]
        if "run" in block.options or "file" in block.options or any(line.lstrip().startswith("#") for line in rest):
            continue
        hoisted = tuple(line.strip() for line in block.code if HOISTED.match(line))
        groups.setdefault((block.options.get("target"), is_program(block), hoisted), []).append(block)
    return [group for group in groups.values() if len(group) > 1]


def targets_of(block):
    return block.options.get("target", "core").split()


def flags_of(block, flags_folder):
    """The compiler's flags: a file of them for each target."""
    return ["@" + os.path.abspath(os.path.join(flags_folder, target + ".rsp")) for target in targets_of(block)]


def lacking(block, flags_folder):
    """Targets of the block that this build has not."""
    return [target for target in targets_of(block) if not os.path.exists(os.path.join(flags_folder, target + ".rsp"))]


def shown_file(block):
    """The file that a block shows, without the comment that it begins with; None if there is none."""
    path = os.path.join(ROOT, block.options["file"])
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    while lines and (lines[0].startswith("//") or not lines[0].strip()):
        lines.pop(0)
    return lines


def differs_from_file(block):
    """An empty text, or how a block differs from the file that it shows."""
    name, lines = block.options["file"], shown_file(block)
    if lines is None:
        return f"there is no {name} in the repository"
    return "".join(line + "\n" for line in difflib.unified_diff(block.code, lines, "this block", name, lineterm=""))


def uses_header(block):
    """Whether a block reads lrcnn/lrcnn.hpp first, with the flags of core."""
    first = [line.strip() for line in [*block.code, *block.options.get("setup", "").splitlines()] if HOISTED.match(line)][:1]
    return "target" not in block.options and ((not first and not is_program(block)) or first == ["#include <lrcnn/lrcnn.hpp>"])


def header_flags(ahead):
    """What a compiler is given that shall read HEADER; the same flags as when it was read before."""
    promise = ["-DLRCNN_PRECOMPILED"] if ahead["library"] else []
    return ["-pthread", *promise, *(["-include", ahead["header"]] if ahead["header"] else [])]


def all_compile(group, path, compiler, flags_folder, ahead):
    """Whether blocks compile together. If not, one by one says where."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "blocks.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(joined_program(group, path))
        header = header_flags(ahead) if uses_header(group[0]) else []
        return execute([compiler, *flags_of(group[0], flags_folder), *WARNINGS, "-Wno-return-type", "-fsyntax-only", *header, source],
                       folder).returncode == 0


def check_block(block, path, compiler, flags_folder, ahead):
    """What is wrong, if anything, and what the program printed, if it was run."""
    runs = "run" in block.options
    if absent := lacking(block, flags_folder):
        return f"target {' '.join(absent)} is not available in this build", ""
    if runs and ("target" in block.options or not any(MAIN.search(line) for line in block.code)):
        return "only a program of target core, with a main function, can be run", ""
    if "file" in block.options and (difference := differs_from_file(block)):
        return difference, ""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "block.cpp"), os.path.join(folder, "block")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program(block, path))
        how = ["-O0", "-pthread", "-o", binary] if runs else [*WARNINGS, "-fsyntax-only"]
        last = [ahead["library"]] if runs and ahead["library"] else []
        if uses_header(block):
            how += header_flags(ahead)
        done = execute([compiler, *flags_of(block, flags_folder), *how, source, *last], folder)
        if done.returncode != 0:
            return done.stdout or f"the compiler ended with {done.returncode}", ""
        if not runs:
            return "", ""
        done = execute([binary], folder)
        problem = "" if done.returncode == 0 else f"the program ended with {done.returncode}:\n{done.stdout}"
        return problem, done.stdout


def execute(command, folder):
    """Runs a command; what it says in stdout and stderr is in the result's stdout."""
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=300)


def update(path, outputs):
    """Writes what programs printed, or files hold, into the blocks that show it."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for block, text in reversed(outputs):
        lines[block.line:block.line + len(block.code)] = text
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--precompiled-header", default="")
    parser.add_argument("--library", default="")
    arguments = parser.parse_args()
    ahead = {"header": arguments.precompiled_header, "library": arguments.library}
    path, failed = arguments.file, 0
    todo, shown = [], []   # blocks to compile; blocks of output, each with the block that prints it
    found = blocks(path)
    if arguments.update:
        update(path, [(b, shown_file(b)) for b in found if "file" in b.options and shown_file(b) is not None])
        found = blocks(path)
    ran = None
    for block in found:
        absent = [target for target in lacking(block, arguments.flags) if target in OPTIONAL]
        if "output" in block.options:
            shown.append((block, ran))
        elif absent and os.environ.get("CI") != "true":
            print(f"{path}:{block.line}: skipped: target {' '.join(absent)} is not available in this build")
        elif "recipe" in block.options:
            continue
        elif "skip" not in block.options:
            todo.append(block)
            ran = block if "run" in block.options else ran
        elif block.options["skip"]:
            print(f"{path}:{block.line}: skipped: {block.options['skip']}")
        else:
            print(f"{path}:{block.line}: skip needs a reason")
            failed += 1
    printed = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        groups = [group for group in groups_of(todo) if not lacking(group[0], arguments.flags)]
        together = pool.map(lambda group: all_compile(group, path, arguments.compiler, arguments.flags, ahead), groups)
        compiled = {block for group, good in zip(groups, together) if good for block in group}
        todo = [block for block in todo if block not in compiled]
        results = pool.map(lambda block: check_block(block, path, arguments.compiler, arguments.flags, ahead), todo)
        for block, (problem, output) in zip(todo, results):
            printed[block] = [line.rstrip() for line in output.splitlines()]
            if problem:
                failed += 1
                print(f"{path}:{block.line}: this block does not hold:\n{problem}")
    stale = []
    for block, source in shown:
        if source is None:
            failed += 1
            print(f"{path}:{block.line}: no program that is run stands before this output")
        elif [line.rstrip() for line in block.code] != printed[source]:
            stale.append((block, printed[source]))
    if arguments.update:
        update(path, stale)
    for block, lines in [] if arguments.update else stale:
        failed += 1
        print(f"{path}:{block.line}: the program prints something else (--update writes it here):", *lines, sep="\n")
    print(f"{path}: {len(found) - len(shown)} C++ blocks, {len(compiled) + len(todo)} compiled, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
