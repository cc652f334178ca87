"""Weights from PyTorch to lrcnn and back, for every network of torchvision's that lrcnn has, and a U-Net. Started by scripts/bench --weights.

    weights.py --exchange LRCNN_EXCHANGE [--threads N] [NETWORK...]

A network gets random weights, running statistics included, and goes to a file by the safetensors library. lrcnn_exchange reads it, predicts,
trains one step of stochastic gradient descent (momentum, weight decay), predicts again and writes its weights; PyTorch does the same. Then
a new network in PyTorch takes lrcnn's file, strictly, and predicts. Compared are all predictions, the loss, and every tensor of the trained
weights: the largest difference as a share of the tensor's largest element. In fp64 (lrcnn's plain loops) at most 1e-12 is allowed, in fp32
(oneDNN) 1e-5. Batch norms over few values are ill-conditioned in deep networks: where rounding alone takes PyTorch further ("own": the difference
of its fp32 and its fp64; for fp64, times the ratio of their precisions), four times that is allowed instead. "change" is how much the step has changed the weights, likewise; the learning rate is such that it is about
0.01 in fp64 and 1e-4 in fp32.

Status 1: a difference is larger. Numbers of classes are ten, dropout and stochastic depth are off.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"))
from make_golden_networks import UNet
from networks import randomise

LIMITS = {"fp64": (torch.float64, 1e-12), "fp32": (torch.float32, 1e-5)}
OWN = 4
CHANGES = {"fp64": 1e-2, "fp32": 1e-4}
MOMENTUM, DECAY = 0.9, 1e-4
CLASSES = 10


def make(name):
    if name == "unet":
        return UNet(CLASSES, 16)
    options = {"num_classes": CLASSES}
    if name.startswith(("vgg", "mobilenet", "squeezenet")):
        options["dropout"] = 0.0
    if name.startswith("convnext"):
        options["stochastic_depth_prob"] = 0.0
    return getattr(torchvision.models, name)(**options)


def empty(name):
    """The network without memory for its weights: load_state_dict(assign=True) gives it some."""
    with torch.device("meta"):
        return make(name)


def size(name):
    """Rows and columns that leave batch norms enough values."""
    return 32 if name.startswith(("vgg", "convnext")) else 64


def predict(net, images):
    net.eval()
    with torch.no_grad():
        return net(images)


def difference(ours, theirs):
    """The largest, as a share of the largest element; infinite where shapes or types differ, or a number is none."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    d = ((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-30)).item() if theirs.numel() else 0.0
    return d if d == d else float("inf")


def steps(name, state, images, labels, lr):
    """PyTorch's predictions before and after a step, its loss, the weights after it, and the learning rate: a share of the weights if lr is text."""
    net = make(name).to(images.dtype)
    net.load_state_dict(state)
    before = predict(net, images)
    net.train()
    loss = F.cross_entropy(net(images), labels)
    loss.backward()
    if lr in CHANGES:
        lr = CHANGES[lr] / max((p.grad.abs().max() / p.detach().abs().max()).item() for p in net.parameters())
    torch.optim.SGD(net.parameters(), lr=lr, momentum=MOMENTUM, weight_decay=DECAY).step()
    return {"before": before, "after": predict(net, images), "loss": loss.detach()}, {n: t.detach() for n, t in net.state_dict().items()}, lr


def worst(ours, theirs):
    """The largest difference of tensors, and which has it."""
    return max((difference(ours[n], t), n) for n, t in theirs.items())


def rounding_of(name, first, images, labels, lr, said, weights):
    """How far rounding alone takes PyTorch: its fp32 against its fp64; in fp64 that, times the ratio of the types' precisions."""
    in_fp32 = images.dtype == torch.float32
    other = torch.float64 if in_fp32 else torch.float32
    said_other, weights_other, _ = steps(name, {n: t.to(other) if t.is_floating_point() else t for n, t in first.items()}, images.to(other), labels, lr)
    apart = max(worst({n: t.double() for n, t in mine.items()}, {n: t.double() for n, t in others.items()})[0]
                for mine, others in ((said, said_other), (weights, weights_other)))
    return apart if in_fp32 else apart * torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps


def exchange(program, name, arithmetic, threads, folder):
    """Largest differences: (of predictions, of weights, of predictions with lrcnn's weights), PyTorch's own, the change, seconds of lrcnn."""
    dtype, _ = LIMITS[arithmetic]
    start, batch, trained, predictions = (folder / f"{n}.safetensors" for n in ("start", "batch", "trained", "predictions"))
    torch.manual_seed(sum(name.encode()))
    net = make(name).to(dtype)
    randomise(net)
    first = {n: t.detach().clone() for n, t in net.state_dict().items()}
    del net
    s = size(name)
    images = torch.randn(2, 3, s, s, dtype=dtype)
    labels = torch.randint(0, CLASSES, (2, s, s) if name == "unet" else (2,))
    save_file(first, start, metadata={"format": "pt"})
    save_file({"images": images, "labels": labels.to(dtype)}, batch)
    said, theirs, lr = steps(name, first, images, labels, arithmetic)
    own = rounding_of(name, first, images, labels, lr, said, theirs)
    begun = time.perf_counter()
    subprocess.run([program, name, arithmetic, "--weights", start, "--batch", batch, "--trained", trained, "--predictions", predictions,
                    f"--lr={lr!r}", f"--momentum={MOMENTUM}", f"--weight-decay={DECAY}"] + ([f"--threads={threads}"] if threads else []),
                   check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    predicted, ours = load_file(predictions), load_file(trained)
    if set(ours) != set(first):
        raise SystemExit(f"error: {name}: lrcnn's file has other names: {sorted(set(ours) ^ set(first))}")
    change = max(difference(t, first[n]) for n, t in theirs.items() if t.is_floating_point() and "running" not in n)
    again = empty(name)
    again.load_state_dict(ours, strict=True, assign=True)
    return worst(predicted, said)[0], worst(ours, theirs), difference(predict(again, images), predicted["after"]), own, change, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchange", required=True, type=pathlib.Path)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--arithmetic", choices=[*LIMITS], action="append")
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    there = subprocess.run([args.exchange, "--list"], check=True, capture_output=True, text=True).stdout.split()
    for name in args.networks:
        if name not in there:
            sys.exit(f"error: no network {name}; there are {' '.join(there)}; choose one of them")
    print(f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}")
    print(f"{'network':16}{'':6}{'predictions':>13}{'weights':>10}{'back again':>12}{'own':>9}{'change':>9}{'lrcnn':>9}")
    failed = []
    for name in args.networks or there:
        for arithmetic in args.arithmetic or LIMITS:
            with tempfile.TemporaryDirectory() as folder:
                predictions, (weights, where), back, own, change, seconds = exchange(args.exchange, name, arithmetic, args.threads, pathlib.Path(folder))
            print(f"{name:16}{arithmetic:6}{predictions:13.1e}{weights:10.1e}{back:12.1e}{own:9.1e}{change:9.1e}{seconds:7.1f} s", flush=True)
            if max(predictions, weights, back) > max(LIMITS[arithmetic][1], OWN * own):
                failed.append(f"{name} in {arithmetic} (worst weights: {where})")
    if failed:
        print(f"Not within {', '.join(f'{limit:g} ({a})' for a, (_, limit) in LIMITS.items())} or {OWN} times PyTorch's own: " + "; ".join(failed))
        sys.exit(1)
    print("All are within " + ", ".join(f"{limit:g} ({a})" for a, (_, limit) in LIMITS.items()) + f", or {OWN} times PyTorch's own.")


if __name__ == "__main__":
    main()
