"""Networks of include/lrcnn/network in PyTorch, for pytorch_step.py: VGGs, torchvision's ResNets, and a U-Net."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from vgg import VGG, Vgg

RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
NAMES = [*VGG, *RESNETS, "unet"]
# Without statistics of a batch its images may go one after the other.
ACCUMULATING = list(VGG)


class Checkpointed(nn.Module):
    """A module whose backward pass computes it again."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, *x):
        return checkpoint(self.body, *x, use_reentrant=False)


def resnet(name, checkpointed):
    """torchvision's; checkpointed: each residual block."""
    import torchvision

    net = getattr(torchvision.models, name)()
    if checkpointed:
        for layer in (net.layer1, net.layer2, net.layer3, net.layer4):
            for i, block in enumerate(layer):
                layer[i] = Checkpointed(block)
    return net


class Double(nn.Sequential):
    """Two 3x3 convolutions, each with batch norm and ReLU."""

    def __init__(self, channels, width):
        units = []
        for c in (channels, width):
            units += [nn.Conv2d(c, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        super().__init__(*units)


class UNet(nn.Module):
    """lrcnn's UNet<classes>: padded, four levels above the bottom, 2x2 up-convolutions; checkpointed: each double convolution."""

    def __init__(self, checkpointed, classes=2, width=64):
        super().__init__()
        made = Checkpointed if checkpointed else lambda body: body
        widths = [width << level for level in range(5)]
        self.down = nn.ModuleList(made(Double(c, w)) for c, w in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(made(Double(2 * w, w)) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for level, down in enumerate(self.down):
            x = down(x if level == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(skips[:-1])):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


def make(name, checkpointed):
    if name in VGG:
        return Vgg(name, checkpointed)
    return UNet(checkpointed) if name == "unet" else resnet(name, checkpointed)


def labels(name, batch, size):
    """Ten classes of images, or two of pixels."""
    return torch.arange(batch * size * size).reshape(batch, size, size) % 2 if name == "unet" else torch.arange(batch) % 10


def randomise(net):
    """Norms, running statistics and layer scales as no initialisation has them; all else is as PyTorch begins it."""
    with torch.no_grad():
        for name, t in net.state_dict().items():
            last = name.rsplit(".", 1)[-1]
            if last == "running_mean" or (last == "bias" and t.dim() == 1):
                t.normal_(0, 0.1)
            elif last == "running_var" or (last == "weight" and t.dim() == 1):
                t.uniform_(0.5, 1.5)
            elif last == "layer_scale":
                t.uniform_(0.1, 0.5)
