"""The VGG networks of include/lrcnn/network/vgg.hpp in PyTorch, for every program here that compares with it."""
from torch import nn
from torch.utils.checkpoint import checkpoint

# Convolutions in each of the five pool blocks.
VGG = {"vgg11": (1, 1, 2, 2, 2), "vgg13": (2, 2, 2, 2, 2), "vgg16": (2, 2, 3, 3, 3), "vgg19": (2, 2, 4, 4, 4)}
WIDTHS = (64, 128, 256, 512, 512)


class Vgg(nn.Module):
    """3x3 convolutions with ReLU, a 2x2 pool after each block, global average pool, one linear layer."""

    def __init__(self, name, checkpointed, classes=1000):
        super().__init__()
        self.checkpointed = checkpointed
        channels, blocks = 3, []
        for width, count in zip(WIDTHS, VGG[name]):
            layers = []
            for _ in range(count):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            blocks.append(nn.Sequential(*layers, nn.MaxPool2d(2)))
        self.blocks = nn.ModuleList(blocks)
        self.linear = nn.Linear(channels, classes)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.linear(x.mean((2, 3)))
