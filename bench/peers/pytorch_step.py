"""One training step of PyTorch, forward and backward, as compare.py asks for it. The only program here that needs torch.

    pytorch_step.py --about                                 versions, networks and modes, as JSON
    pytorch_step.py NETWORK SIZE BATCH MODE --threads=N     seconds and bytes of a step, as JSON

A warm-up step, the timed step, and a third whose memory is measured as lrcnn measures its own
(include/lrcnn/exec/resident.hpp): what earlier steps left in the allocator is given back, then the greatest growth of the
resident set is read. Parameters and their gradients are there beforehand; the allocator has its default settings.
"""
import argparse
import ctypes
import json
import re
import sys
import time

import torch
import networks

# Name: channels_last, checkpoint per block, gradients accumulated over single images, bf16 by autocast.
MODES = {
    "eager": (False, False, False, False),
    "channels_last": (True, False, False, False),
    "checkpointed": (True, True, False, False),
    "accumulated": (True, False, True, False),
    "accumulated+checkpointed": (True, True, True, False),
    "channels_last-bf16": (True, False, False, True),
    "checkpointed-bf16": (True, True, False, True),
}


def about():
    onednn = re.search(r"MKL-DNN v([0-9.]+)", torch.__config__.show())
    return {"torch": torch.__version__, "onednn": onednn.group(1) if onednn else "unknown", "networks": networks.NAMES,
            "accumulating": networks.ACCUMULATING,
            "modes": {name: {"arithmetic": "bf16" if bf16 else "fp32", "accumulates": accumulated,
                             "keeps_everything": not checkpointed and not accumulated}
                      for name, (_, checkpointed, accumulated, bf16) in MODES.items()}}


def status_bytes(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key + ":"))


def growth(step):
    """The greatest growth of the resident set during a step; None where the system does not say."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = status_bytes("VmRSS")
        step()
        return status_bytes("VmHWM") - before
    except (OSError, AttributeError, StopIteration):
        return None


def measure(network, size, batch, mode, threads):
    channels_last, checkpointed, accumulated, bf16 = MODES[mode]
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    net = networks.make(network, checkpointed).to(memory_format=layout)
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    images = torch.randn(batch, 3, size, size).to(memory_format=layout)
    labels = networks.labels(network, batch, size)
    pieces = batch if accumulated else 1

    def step():
        for x, y in zip(images.chunk(pieces), labels.chunk(pieces)):
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                scores = net(x)
            (torch.nn.functional.cross_entropy(scores.float(), y, reduction="sum") / labels.numel()).backward()

    step()
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "measured_bytes": growth(step)}


def main():
    if sys.argv[1:] == ["--about"]:
        print(json.dumps(about()))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=networks.NAMES)
    parser.add_argument("size", type=int)
    parser.add_argument("batch", type=int)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--threads", type=int, required=True)
    print(json.dumps(measure(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
