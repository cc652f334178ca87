"""What examples/classify.cpp does, with PyTorch: torchvision's ResNet-18 on CIFAR-10, with the same data, augmentation, kind of
initial values, optimizer and schedule.

    classify.py DIR [--seeds N] [--seed N] [--epochs N] [--batch N] [--images N] [--threads N] [--curve FILE]

DIR holds CIFAR-10's binary files, plain or with .gz: train.bin and test.bin, or as they are published, data_batch_1.bin to data_batch_5.bin
and test_batch.bin. --images trains on the first so many images only.

Random numbers are PyTorch's own, so single runs differ; means over seeds are what can be compared.
"""
import argparse
import gzip
import math
import pathlib
import statistics
import sys
import time

import numpy
import torch
import torchvision

RECORD = 1 + 3 * 32 * 32


def files_of(folder, part):
    """The files of a part, in order: those that lrcnn reads (lrcnn/data/cifar.hpp)."""
    def there(name):
        return next((path for path in (folder / name, folder / f"{name}.gz") if path.exists()), None)

    for name in ("train.bin",) if part == "train" else ("test.bin", "test_batch.bin"):
        if there(name):
            return [there(name)]
    batches = [there(f"data_batch_{number}.bin") for number in range(1, 6)] if part == "train" else []
    while batches and not batches[-1]:
        batches.pop()
    if None in batches:
        sys.exit(f"error: data_batch_{batches.index(None) + 1}.bin is missing in {folder}; parts of CIFAR-10 have no gaps; fetch it")
    if not batches:
        names = "train.bin and no data_batch_1.bin" if part == "train" else "test.bin and no test_batch.bin"
        sys.exit(f"error: no {names} in {folder}, plain or with .gz; it holds CIFAR-10's binary files; give their folder")
    return batches


def load(folder, part):
    data = b"".join(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files_of(folder, part))
    records = numpy.frombuffer(data, numpy.uint8).reshape(-1, RECORD)
    return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(records[:, 0].astype(numpy.int64))


def rate(step, batches, steps):
    """What the learning rate is multiplied with: a warm-up of one epoch of so many batches, then half a cosine down to 0."""
    if step < batches:
        return (step + 1) / batches
    return (1 + math.cos(math.pi * (step - batches) / max(steps - batches, 1))) / 2


def augmented(images, generator):
    """Padded by four black pixels, cropped at random, half of them flipped."""
    n = len(images)
    padded = torch.nn.functional.pad(images, (4, 4, 4, 4))
    tops, lefts = (torch.randint(0, 9, (n,), generator=generator).tolist() for _ in range(2))
    flips = torch.randint(0, 2, (n,), generator=generator).tolist()
    crops = [padded[i, :, y:y + 32, x:x + 32] for i, (y, x) in enumerate(zip(tops, lefts))]
    return torch.stack([crop.flip(2) if flip else crop for crop, flip in zip(crops, flips)])


def network():
    net = torchvision.models.resnet18(num_classes=10)
    for module in net.modules():
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
    return net.to(memory_format=torch.channels_last)


def train(train_set, test_set, seed, args, curve):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    (images, labels), (test_images, test_labels) = train_set, test_set
    scaled = images.double() / 255
    mean, deviation = scaled.mean((0, 2, 3)), scaled.std((0, 2, 3), unbiased=False)
    shape = lambda v: v.float().view(1, 3, 1, 1)
    normal = lambda x: ((x.float() / 255 - shape(mean)) / shape(deviation)).contiguous(memory_format=torch.channels_last)
    net = network()
    parameters = list(net.parameters())
    optimizer = torch.optim.SGD([{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 5e-4},
                                 {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}],
                                lr=0.02 * args.batch / 128, momentum=0.9, nesterov=True)
    batches = len(images) // args.batch
    steps = batches * args.epochs
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, batches, steps))
    accuracy = 0
    for epoch in range(args.epochs):
        net.train()
        order = torch.randperm(len(images), generator=generator)
        begun = time.perf_counter()
        for i in range(batches):
            chosen = order[i * args.batch:(i + 1) * args.batch]
            loss = torch.nn.functional.cross_entropy(net(normal(augmented(images[chosen], generator))), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            curve.append([epoch * batches + i + 1, loss.item(), "", ""])
        seconds = time.perf_counter() - begun
        net.eval()
        with torch.no_grad():
            scores = torch.cat([net(normal(part)) for part in test_images.split(100)])
            test_loss = torch.nn.functional.cross_entropy(scores, test_labels).item()
            accuracy = (scores.argmax(1) == test_labels).double().mean().item()
        curve[-1][2:] = [test_loss, accuracy]
        print(f"epoch {epoch + 1}: test loss {test_loss:.4f}, test accuracy {100 * accuracy:.2f} %, {seconds:.1f} s", flush=True)
    return accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--images", type=int, help="train on the first so many images only")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--curve", type=pathlib.Path)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    train_set, test_set = load(args.folder, "train"), load(args.folder, "test")
    if args.images is not None:
        train_set = tuple(part[:max(args.images, 0)] for part in train_set)
    if len(train_set[0]) < args.batch:
        sys.exit(f"error: {len(train_set[0])} training images are no batch of {args.batch}; an epoch has whole batches only; use a smaller --batch")
    accuracies = []
    for seed in range(args.seed, args.seed + args.seeds):
        print(f"\nSeed {seed}: PyTorch {torch.__version__}, {torch.get_num_threads()} threads", flush=True)
        curve = []
        accuracies.append(train(train_set, test_set, seed, args, curve))
        if args.curve and len(accuracies) == 1:
            args.curve.write_text("step,loss,test_loss,test_accuracy\n" + "".join(",".join(map(str, line)) + "\n" for line in curve))
    deviation = statistics.stdev(accuracies) if len(accuracies) > 1 else 0
    print(f"\nTest accuracy of {len(accuracies)} runs: " + " ".join(f"{100 * a:.2f} %" for a in accuracies)
          + f"; mean {100 * statistics.mean(accuracies):.2f} %, standard deviation {100 * deviation:.2f} %")


if __name__ == "__main__":
    main()
