"""What PyTorch's step costs on the shapes of lrcnn_gpu_bench: VGG-16, forward + backward without an update.

    peers.py [--out FILE.json] [--quick] [--filter REGEX] [--device cuda|cpu]

--filter measures those cases alone whose name, such as "resnet50 224x32 bf16 eager", has a match of the expression.
channels_last, cudnn.benchmark on; in fp32 also by PyTorch's own layout ("planes"), and with deterministic algorithms alone.
eager, eager with torch.utils.checkpoint per pool block, by gradient accumulation over single images, and the eager step captured as
a CUDA graph, which leaves out the time in which Python starts kernels. fp32 (without TF32), tf32 and bf16 (autocast). Time is the
median of steps, each waited for. Memory is what a step takes at its peak beyond parameters, their gradients and the images:
torch.cuda.max_memory_allocated.
"""
import argparse
import json
import os
import re
import statistics
import sys
import time

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import networks


def captured(start):
    """The work that a function starts, as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            start()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        start()
    return graph


def run(network, batch, side, precision, mode, device, least):
    """One case as a dictionary; running out of memory is a result too."""
    result = {"network": network, "size": side, "batch": batch, "precision": precision, "policy": mode, "program": "pytorch"}
    cuda = device == "cuda"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.deterministic = mode == "deterministic"
    torch.manual_seed(1)
    try:
        layout = torch.contiguous_format if mode == "planes" else torch.channels_last
        net = networks.make(network, mode == "checkpoint").to(device=device, memory_format=layout)
        for p in net.parameters():
            p.grad = torch.zeros_like(p)
        x = torch.randn(batch, 3, side, side, device=device).to(memory_format=layout)
        labels = torch.full((batch,), 3, device=device)
        pieces = batch if mode == "images1" else 1

        def start():
            for p in net.parameters():
                p.grad.zero_()
            for a, b in zip(x.chunk(pieces), labels.chunk(pieces)):
                with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16", cache_enabled=mode != "graph"):
                    loss = nn.functional.cross_entropy(net(a).float(), b, reduction="sum") / batch
                loss.backward()

        def step():
            if graph:
                graph.replay()
            else:
                start()
            if cuda:
                torch.cuda.synchronize()

        graph = None
        step()
        if mode == "graph":
            graph = captured(start)
        elif cuda:
            torch.cuda.empty_cache()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        step()
        if cuda and not graph:
            result["measured_bytes"] = torch.cuda.max_memory_allocated() - before
        seconds = []
        while len(seconds) < least or (sum(seconds) < 0.8 and len(seconds) < 30 and least > 1):
            begun = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begun)
        result["seconds"] = statistics.median(seconds)
    except torch.OutOfMemoryError as e:
        result["error"] = "out of memory: " + str(e).split("\n")[0]
    except ImportError as e:   # torchvision, which has the ResNets, may be missing
        result["error"] = str(e)
    finally:
        net = x = labels = graph = None
        if cuda:
            torch.cuda.empty_cache()
    print(json.dumps(result), flush=True)
    return result


def largest(device, precision):
    """The largest side, in steps of 256, whose step fits: doubling, then halving the gap."""
    fits, fails = 1024, None
    while fails is None or fails - fits > 256:
        side = fits * 2 if fails is None else (fits + fails) // 2 // 256 * 256
        if "error" in run("vgg16", 1, side, precision, "eager", device, 1):
            fails = side
        else:
            fits = side
    return fits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--filter", type=re.compile, default=re.compile("."))
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("lrcnn skips: PyTorch finds no CUDA device", file=sys.stderr)
        return 77
    torch.backends.cudnn.benchmark = True
    shapes = [(2, 64)] if args.quick else [(32, 224), (256, 224), (1, 1024), (1, 4096)]
    results = []

    def note(result):
        results.append(result)
        if args.out:   # after each case: the program may be cut off
            with open(args.out + ".part", "w") as file:
                json.dump({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "results": results}, file, indent=1)
            os.replace(args.out + ".part", args.out)

    usual = ("eager", "graph", "checkpoint")
    modes = {"tf32": usual, "fp32": usual + ("planes", "deterministic"), "bf16": usual}

    def measure(network, batch, side, precision, mode):
        captures = mode != "graph" or args.device == "cuda"
        if captures and args.filter.search(f"{network} {side}x{batch} {precision} {mode}"):
            note(run(network, batch, side, precision, mode, args.device, 3))

    for batch, side in shapes:
        for precision in ("tf32", "fp32", "bf16"):
            for mode in modes[precision] + (("images1",) if batch > 1 and precision == "tf32" else ()):
                measure("vgg16", batch, side, precision, mode)
    for batch, side in [(2, 64)] if args.quick else [(32, 224), (1, 1024), (1, 4096)]:
        for precision in ("tf32", "fp32", "bf16"):
            for mode in modes[precision]:
                measure("resnet50", batch, side, precision, mode)
    if not args.quick and args.filter.search("vgg16 largest tf32 eager"):
        note({"network": "vgg16", "largest": True, "size": largest(args.device, "tf32"), "precision": "tf32", "policy": "eager",
              "program": "pytorch"})
        print(json.dumps(results[-1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
