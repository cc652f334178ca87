#!/usr/bin/env python3
"""Headers use their own folder and those above it in docs/layout.md's list of folders, and no others.

    layering.py ROOT

precompiled/ stands below all, for it names what is compiled ahead; two headers of backend/ include it as their last line all the same,
because a program that includes a backend shall find out by itself what it need not compile.
"""
import os
import re
import sys

LAST_LINES = {"backend/onednn.hpp": "precompiled/onednn.hpp", "backend/cudnn.hpp": "precompiled/cudnn.hpp"}


def folders(page):
    """The folders of include/lrcnn in the page's order."""
    start = page.index("## Folders")
    return re.findall(r"^\| `(\w+)/` \|", page[start:page.index("\n\n", page.index("| --- |", start))], re.MULTILINE)


def problems(order, files):
    """What is wrong with files: pairs of path and text. A folder's rank is its place in `order`."""
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


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "docs", "layout.md"), encoding="utf-8") as file:
        order = folders(file.read())
    include, files = os.path.join(root, "include", "lrcnn"), []
    for folder, _, names in os.walk(include):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                files.append((os.path.relpath(path, include).replace(os.sep, "/"), file.read()))
    # The rule itself is tried first.
    assert order[0] == "core" and len(order) > 8, order
    assert len(problems(order, [("core/a.hpp", "#include <lrcnn/plan/plan.hpp>\n"), ("plan/b.hpp", "#include <lrcnn/core/a.hpp>\n")])) == 1
    assert len(problems(order, [("backend/onednn.hpp", "#include <lrcnn/precompiled/onednn.hpp>\nint x;\n")])) == 1
    assert len(problems(order, [("odd/a.hpp", "")])) == 1
    found = problems(order, sorted(files))
    print(*found, sep="\n")
    print(f"{len(files)} headers in {len(order)} folders, {len(found)} problems")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
