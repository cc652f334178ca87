#!/usr/bin/env python3
"""Prints tests/train/optimizer_golden.hpp: what torch.optim makes of a fixed sequence of gradients, in fp64.

    python3 tests/train/optimizer_golden.py > tests/train/optimizer_golden.hpp      (needs PyTorch)

Start values and gradients are multiples of 1/8 (see start() and gradient(); optimizer.cpp has the same two lines),
learning rates follow the factors below, so that a difference can come from the update alone.
"""
import torch

ELEMENTS, STEPS = 5, 6
FACTORS = [0.5, 1.0, 1.0, 0.25, 0.25, 0.125]
CASES = [
    ("sgd", "Sgd{.lr = 0.1}", torch.optim.SGD, dict(lr=0.1)),
    ("sgd_decay", "Sgd{.lr = 0.1, .weight_decay = 0.01}", torch.optim.SGD, dict(lr=0.1, weight_decay=0.01)),
    ("momentum", "Sgd{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4}", torch.optim.SGD,
     dict(lr=0.05, momentum=0.9, weight_decay=5e-4)),
    ("nesterov", "Sgd{.lr = 0.05, .momentum = 0.8, .nesterov = true, .weight_decay = 1e-3}", torch.optim.SGD,
     dict(lr=0.05, momentum=0.8, nesterov=True, weight_decay=1e-3)),
    ("adamw", "AdamW{}", torch.optim.AdamW, dict()),
    ("adamw_settings", "AdamW{.lr = 0.02, .beta1 = 0.4, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1}",
     torch.optim.AdamW, dict(lr=0.02, betas=(0.4, 0.95), eps=1e-3, weight_decay=0.1)),
]


def start(i):
    return (5 * i % 9 - 4) / 8


def gradient(t, i):
    return ((7 * t + 3 * i) % 11 - 5) / 8


print("#pragma once")
print(f"// Made by optimizer_golden.py with PyTorch {torch.__version__.split('+')[0]}; do not edit.")
print("#include <lrcnn/train/optimizer.hpp>")
print("#include <array>")
print("namespace golden {")
print(f"inline constexpr int elements = {ELEMENTS};")
print(f"inline constexpr std::array<double, {STEPS}> factors{{{', '.join(map(repr, FACTORS))}}};")
print("struct Case {\n  const char* name;\n  lrcnn::Optimizer optimizer;")
print(f"  std::array<std::array<double, {ELEMENTS}>, {STEPS}> parameters;  // after each step\n}};")
print("inline const Case cases[] = {")
for name, text, kind, settings in CASES:
    w = torch.nn.Parameter(torch.tensor([start(i) for i in range(ELEMENTS)], dtype=torch.float64))
    optimizer = kind([w], foreach=False, **settings)
    lr = optimizer.param_groups[0]["lr"]
    print(f'    {{"{name}", lrcnn::{text}, {{{{')
    for t in range(STEPS):
        optimizer.param_groups[0]["lr"] = lr * FACTORS[t]
        w.grad = torch.tensor([gradient(t, i) for i in range(ELEMENTS)], dtype=torch.float64)
        optimizer.step()
        print("         {" + ", ".join(repr(v) for v in w.tolist()) + "},")
    print("     }}},")
print("};\n}  // namespace golden")
