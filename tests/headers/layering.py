#!/usr/bin/env python3
"""Five rules of the headers in include/lrcnn:

    layering.py ROOT

1. A header uses its own folder and those above it in docs/layout.md's list of folders, and no others. precompiled/ stands below all, for it
   names what is compiled ahead; two headers of backend/ include it as their last line all the same, because a program that includes a backend
   shall find out by itself what it need not compile.
2. What is in a namespace `detail` is the headers' own. Tests, examples, the benchmark and the pages do not name it; they may have a namespace
   `detail` themselves. Blocks of docs/extending.md that are a part of a header ("recipe: include/...") are as headers.
3. A file has at most 350 lines.
4. A function has at most 70.
5. No function of a namespace has name and parameters of one in the `detail` within it: a call there would mean the one or the other, as a
   program's includes come.
"""
import os
import re
import sys

LAST_LINES = {"backend/onednn.hpp": "precompiled/onednn.hpp", "backend/cudnn.hpp": "precompiled/cudnn.hpp"}
MOST_LINES = 350
MOST_OF_FUNCTION = 70
OUTSIDE = ("tests", "examples", "bench", "docs")   # and pages in the root


def folders(page):
    """The folders of include/lrcnn in the page's order."""
    start = page.index("## Folders")
    return re.findall(r"^\| `(\w+)/` \|", page[start:page.index("\n\n", page.index("| --- |", start))], re.MULTILINE)


def problems(order, files):
    """What is wrong with the includes of files: pairs of path and text. A folder's rank is its place in `order`."""
    found = []
    rank = {folder: place for place, folder in enumerate(order)}
    for path, text in files:
        folder = path.split("/")[0]
        if "/" not in path:
            continue
        if folder not in rank:
            found.append(f"{path}: docs/layout.md does not list the folder {folder}/")
            continue
        includes = re.findall(r"^\s*#\s*include\s*<lrcnn/([^>]+)>", text, re.MULTILINE)
        for other in includes:
            if "/" not in other:
                continue   # lrcnn.hpp, version.hpp
            if rank.get(other.split("/")[0], len(order)) <= rank[folder]:
                continue
            last = LAST_LINES.get(path) == other and text.rstrip().endswith(f"#include <lrcnn/{other}>\n#endif")
            if not last:
                found.append(f"{path} includes {other}: {folder}/ uses the folders above it in docs/layout.md, and {other.split('/')[0]}/ is below")
    return found


def too_long(files):
    """Which files have too many lines."""
    found = []
    for path, text in files:
        if (lines := text.count("\n")) > MOST_LINES:
            found.append(f"include/lrcnn/{path}:{MOST_LINES + 1}: the file has {lines} lines, and {MOST_LINES} is the most; split it by what it "
                         "is about")
    return found


def long_functions(files):
    """Which functions have too many lines, from the line of the brace that opens them. A brace behind a parenthesis or one of a few words opens a
    function or a part of one; others open namespaces, types and lists of values."""
    found = []
    for path, text in files:
        begun = []   # (number of the line, whether it is code) of the braces at hand
        for number, line in enumerate(text.split("\n"), 1):
            code = re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])'|//.*", "", line)
            for at, character in enumerate(code):
                if character == "{":
                    begun.append((number, bool(re.search(r"(\)|\b(const|noexcept|override|else|do|try|mutable)|-> [\w:<>, &*]+)\s*$", code[:at]))))
                elif character == "}" and begun:
                    first, is_code = begun.pop()
                    if is_code and number - first + 1 > MOST_OF_FUNCTION:
                        found.append(f"include/lrcnn/{path}:{first}: the function has {number - first + 1} lines, and {MOST_OF_FUNCTION} is the most; "
                                     "give its parts names of their own")
    return found


def pieces(path, text):
    """(number of the first line, text) of what is read as one: a source, or each block of a page and what lies between them."""
    if not path.endswith(".md"):
        return [(1, text)]
    found, lines, begin, recipe = [], text.split("\n"), 0, False
    in_block = False
    for at, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if not (in_block and recipe):
            found.append((begin + 1, "\n".join(lines[begin:at])))
        in_block, begin = not in_block, at + 1
        recipe = in_block and at > 0 and lines[at - 1].startswith("<!-- recipe: include/")
    return found + [(begin + 1, "\n".join(lines[begin:]))]


def details_named(path, text, namespaces):
    """Where a file outside include/ names something in the library's `detail`. `namespaces`: those of the library."""
    found = []
    for first, piece in pieces(path, text):
        own = re.search(r"^\s*(inline\s+)?namespace\s+detail\b", piece, re.MULTILINE)
        for match in re.finditer(r"((?:\w+::)*)\bdetail\b(?:::(\w+))?", piece):
            names = [name for name in match[1].split("::") if name]
            if not names and (match[2] is None or own):
                continue   # the word, or the file's own namespace
            if names and names[0] not in namespaces:
                continue   # another library's
            line = first + piece.count("\n", 0, match.start())
            found.append(f"{path}:{line}: {match[0]}: what is in `detail` is the headers' own; use what is public, or make it public")
    return found


def functions(text):
    """(namespace, name, parameters, line) of the functions that begin at the start of a line."""
    found, spaces = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if opened := re.match(r"namespace ([\w:]+) \{$", line):
            spaces.append(opened[1])
        elif line.startswith("}   // namespace") and spaces:
            spaces.pop()
        elif function := re.match(r"(?:inline|constexpr)\b[^=(;]*?\b(\w+)\(([^()]*)\)[^;]*\{", line):
            types = [re.sub(r"( =.*|\b\w+)$", "", re.sub(r" = .*", "", part.strip())).strip() for part in function[2].split(",")]
            found.append(("::".join(spaces), function[1], tuple(types), number))
    return found


def hidden_by_detail(files):
    """Functions that one in `detail` hides from what is there, if its header comes first."""
    known, found = {}, []
    for path, text in files:
        for space, name, types, number in functions(text):
            known.setdefault((space, name, types), f"include/lrcnn/{path}:{number}")
    for (space, name, types), place in sorted(known.items()):
        if space.endswith("::detail") and (space.removesuffix("::detail"), name, types) in known:
            other = known[space.removesuffix("::detail"), name, types]
            found.append(f"{place}: {space}::{name} hides that of {other} from calls in detail that come behind it; give it another name")
    return found


def read_all(root, folder, endings):
    """(path from `root`/`folder`, text) of all its files with one of these endings."""
    files, top = [], os.path.join(root, folder)
    for at, _, names in os.walk(top):
        for name in names:
            if name.endswith(endings):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    files.append((os.path.relpath(path, top).replace(os.sep, "/"), file.read()))
    return sorted(files)


def try_rules(order):
    """The rules themselves are tried first."""
    assert order[0] == "core" and len(order) > 8, order
    assert len(problems(order, [("core/a.hpp", "#include <lrcnn/plan/plan.hpp>\n"), ("plan/b.hpp", "#include <lrcnn/core/a.hpp>\n")])) == 1
    assert len(problems(order, [("backend/onednn.hpp", "#include <lrcnn/precompiled/onednn.hpp>\nint x;\n")])) == 1
    assert len(problems(order, [("odd/a.hpp", "")])) == 1
    assert too_long([("core/a.hpp", "\n" * 350)]) == []
    assert too_long([("core/a.hpp", "\n" * 351)])[0].startswith("include/lrcnn/core/a.hpp:351: the file has 351 lines")

    def body(lines):
        return "namespace a {\nclass B {\n  void f() {\n" + "    g();\n" * lines + "  }\n};\n}   // namespace a\n"

    assert long_functions([("core/a.hpp", body(68))]) == []
    wrapped = body(69).replace("void f() {", "void f(int a,\n         const struct C& c) {")
    assert [text.split(":")[1] for text in long_functions([("core/a.hpp", wrapped)])] == ["4"]
    assert long_functions([("core/a.hpp", body(69))])[0].startswith("include/lrcnn/core/a.hpp:3: the function has 71 lines")

    def two(space, parameter):
        return [("a.hpp", "namespace lrcnn {\ninline int f(int a) {\n}   // namespace lrcnn\n"),
                ("b.hpp", f"namespace lrcnn {{\nnamespace {space} {{\ninline int f({parameter} of_b) {{\n}}   // namespace {space}\n}}   // namespace lrcnn\n")]

    assert len(hidden_by_detail(two("detail", "int"))) == 1
    assert hidden_by_detail(two("host", "int")) == [] and hidden_by_detail(two("detail", "long")) == []

    def lines(path, text):
        return [int(problem.split(":")[1]) for problem in details_named(path, text, {"lrcnn", "host"})]

    assert lines("a.cpp", "int a;\nint b = detail::f();\n") == [2]
    assert lines("a.cpp", "using namespace lrcnn::detail;\n::lrcnn::host::detail::f();\nhost::detail::f();\n") == [1, 2, 3]
    assert lines("a.cpp", "doctest::detail::f();\n// in detail\n") == []
    assert lines("a.cpp", "namespace detail {\nint f();\n}\ndetail::f();\nlrcnn::detail::f();\n") == [5]
    assert lines("a.cpp", "namespace lrcnn::detail {\n}\n") == [1]
    page = "In detail.\n```cpp\nnamespace detail {}\ndetail::f();\n```\n<!-- recipe: include/a.hpp -->\n```cpp\nhost::detail::f();\n```\nSay `detail::f`.\n"
    assert lines("a.md", page) == [10]


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "docs", "layout.md"), encoding="utf-8") as file:
        order = folders(file.read())
    try_rules(order)
    headers = read_all(root, os.path.join("include", "lrcnn"), (".hpp", ".cu", ".cpp"))
    namespaces = {name for _, text in headers for names in re.findall(r"^\s*namespace ([\w:]+) \{", text, re.MULTILINE) for name in names.split("::")}
    outside = [(f"{folder}/{path}", text) for folder in OUTSIDE for path, text in read_all(root, folder, (".hpp", ".cpp", ".cu", ".md"))]
    for page in sorted(name for name in os.listdir(root) if name.endswith(".md")):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            outside.append((page, file.read()))
    found = problems(order, headers) + too_long(headers) + long_functions(headers) + hidden_by_detail(headers)
    for path, text in outside:
        found += details_named(path, text, namespaces - {"detail"})
    print(*found, sep="\n")
    print(f"{len(headers)} headers in {len(order)} folders, {len(outside)} files outside, {len(found)} problems")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
