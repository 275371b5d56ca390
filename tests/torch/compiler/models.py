"""Small models with random weights: what people build, with nothing changed for this backend."""

import torch
from torch import nn
from torch.nn import functional


def mlp():
    return nn.Sequential(
        nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)
    )


class GPT2Block(nn.Module):
    """Causal attention and a gelu MLP, each behind a layer_norm."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in parts)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, width))
        hidden = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.down(hidden)


class LlamaBlock(nn.Module):
    """Grouped-query attention with rotary embedding, and swiglu, each behind an rms_norm."""

    def __init__(self, width=32, heads=4, groups=2, hidden=48):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        narrow = groups * self.size
        shapes = {
            "q": (width, width), "k": (width, narrow), "v": (width, narrow), "o": (width, width),
            "gate": (width, hidden), "up": (width, hidden), "down": (hidden, width),
        }  # fmt: skip
        for name, (a, b) in shapes.items():
            self.add_module(name, nn.Linear(a, b, bias=False))
        turns = 1 / 10000 ** (torch.arange(0, self.size, 2) / self.size)
        self.register_buffer("turns", turns)

    def forward(self, x):
        b, t, width = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, t, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        angles = torch.arange(t, device=x.device)[:, None] * self.turns
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        q, k = _turned(q, cos, sin), _turned(k, cos, sin)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).reshape(b, t, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def _turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class ViTBlock(nn.Module):
    """Patches by a convolution, a class token, positions, and one encoder layer."""

    def __init__(self, width=16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 5, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True
        )

    def forward(self, x):
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.token.expand(len(x), -1, -1), y), 1) + self.positions
        return self.layer(y)[:, 0]


class Residual(nn.Module):
    def __init__(self, a, b, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(b), nn.BatchNorm2d(b)
        self.short = nn.Identity()
        if stride > 1 or a != b:
            self.short = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.short(x))


class ResNet18(nn.Module):
    """The network of 18 layers, `width` channels wide at first instead of 64."""

    def __init__(self, width=4, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, a = [], width
        for k in range(4):
            b = width << k
            blocks += [Residual(a, b, 2 if k else 1), Residual(b, b)]
            a = b
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(a, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class UNetBlock(nn.Module):
    """Group norms, silu, a time embedding, down and up again, joined with what came before."""

    def __init__(self, c=8):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, c), nn.GroupNorm(4, c)
        self.conv1, self.conv2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.time, self.down = nn.Linear(6, c), nn.Conv2d(c, c, 3, 2, 1)
        self.out = nn.Conv2d(2 * c, c, 1)

    def forward(self, x, t):
        h = self.conv1(functional.silu(self.norm1(x)))
        h = h + self.time(functional.silu(t))[:, :, None, None]
        h = x + self.conv2(functional.silu(self.norm2(h)))
        small = functional.interpolate(self.down(h), scale_factor=2, mode="nearest")
        return self.out(torch.cat((h, small), 1))


class LSTM(nn.Module):
    """An LSTM cell over a few steps."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(6, 8)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[1], 8)
        for t in x:
            h, c = self.cell(t, (h, c))
        return torch.cat((h, c), -1)


class MixtureOfExperts(nn.Module):
    """Each token goes to the two experts that the router likes best."""

    def __init__(self, width=8, experts=4, chosen=2):
        super().__init__()
        self.router, self.chosen = nn.Linear(width, experts), chosen
        self.up = nn.Parameter(torch.randn(experts, width, 16) * 0.3)
        self.down = nn.Parameter(torch.randn(experts, 16, width) * 0.3)

    def forward(self, x):
        weights, which = self.router(x).softmax(-1).topk(self.chosen, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        hidden = functional.silu(torch.einsum("td,edf->etf", x, self.up))
        each = torch.einsum("etf,efd->etd", hidden, self.down)
        share = x.new_zeros(x.shape[0], self.up.shape[0]).scatter(1, which, weights)
        return torch.einsum("etd,te->td", each, share)


MODELS = {
    "mlp": (mlp, ((5, 8),)),
    "gpt2": (GPT2Block, ((2, 8, 32),)),
    "llama": (LlamaBlock, ((2, 8, 32),)),
    "vit": (ViTBlock, ((2, 3, 8, 8),)),
    "unet": (UNetBlock, ((2, 8, 8, 8), (2, 6))),
    "lstm": (LSTM, ((2, 2, 6),)),
    "moe": (MixtureOfExperts, ((6, 8),)),
    "resnet18": (ResNet18, ((2, 3, 32, 32),)),
}
