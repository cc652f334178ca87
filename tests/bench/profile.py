#!/usr/bin/env python3
"""Tests bench/profile/table.py on files of launches.  profile.py FOLDER_OF_BENCH_PEERS"""
import pathlib
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(sys.argv[1]).parent / "profile" / "table.py"
UNITS = "void cub::detail::for_each::static_kernel<policy, long, op<lrcnn::loops::detail::JoinLoop<lrcnn::bfloat16, lrcnn::ReluFunctor> > >(long)"
BLOCKS = "void lrcnn::loops::detail::run_block<lrcnn::loops::detail::MomentsLoop<float, lrcnn::loops::detail::ToParts> >(x)"


def step(begin, scale):
    """Two graphs, 2 and 5, with a kernel between them; the numbers of steps differ."""
    return [(begin, 100_000 * scale, 2, "sm90_xmma_fprop"), (begin + 1_000_000, 200_000 * scale, 2, UNITS),
            (begin + 2_000_000, 300_000 * scale, 0, "copy"), (begin + 3_000_000, 400_000 * scale, 5, BLOCKS),
            (begin + 4_000_000, 500_000 * scale, 5, "nvjet_sm90")]


def run(lines, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "kernels.txt"
        file.write_text("".join(line if isinstance(line, str) else " ".join(map(str, line)) + "\n" for line in lines))
        done = subprocess.run([sys.executable, "-B", str(TABLE), str(file), *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


steps = step(0, 3) + step(10_000_000, 2) + step(20_000_000, 1)   # of the last but one, kernels take twice as long as of the last
code, out, err = run(steps)
assert code == 0, err
rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:4]] for line in out.splitlines()}
assert rows["cuDNN and cuBLAS"] == ["2", "1.200"], out
assert rows["JoinLoop"] == ["1", "0.400"] and rows["MomentsLoop"] == ["1", "0.800"] and rows["copies and fills"] == ["1", "0.600"], out
assert rows["all"] == ["5", "9.500"], out   # from the end of the step before, 5.5 ms, to 15
assert rows["between them"] == ["", "6.500"], out
code, out, err = run(steps, "--each")
assert code == 0 and "| nvjet_sm90 | 1 |" in out and "| sm90_xmma_fprop | 1 |" in out, out

for lines, word in ((steps[:10], "fewer than three recorded steps"), ([], "fewer than three"), ([(1, 2, 0, "copy")] * 9, "fewer than three"),
                    (["12 x 3 kernel\n"], "line 1 is no launch"), (steps + ["1 2\n"], "line 16 is no launch")):
    code, out, err = run(lines)
    assert code == 2 and word in err and not out, (lines, err)
done = subprocess.run([sys.executable, "-B", str(TABLE), "/no/such/file"], capture_output=True, text=True)
assert done.returncode == 2 and "/no/such/file" in done.stderr, done.stderr
print("the table of a profile: all checks passed")
