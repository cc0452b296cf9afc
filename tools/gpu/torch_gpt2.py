"""Times the step of bench-gpt2.mjs in PyTorch: eager under the same name, and with torch.compile under the name of our
captured step. Prints one JSON array to standard output; --eager leaves torch.compile out."""
import json
import math
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

from torch_block import Block

torch.manual_seed(1)
device, batch, context, layers, heads, width, vocab = "cuda", 16, 1024, 12, 12, 768, 50304
rows = []


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))

    def forward(self, x, y):
        hidden = self.tokens(x) + self.positions(torch.arange(context, device=device))
        scores = F.linear(self.norm(self.blocks(hidden)), self.tokens.weight)
        return F.cross_entropy(scores.view(-1, vocab), y.view(-1))


model = Gpt2().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
x, y = (torch.randint(0, vocab, (batch, context), device=device) for _ in range(2))


def timed(name, network):
    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = network(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def once():
        start = time.perf_counter()
        for _ in range(4):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6 / 4

    once()
    us = statistics.median(once() for _ in range(5))
    rows.append({"name": name, "us": us, "unit": "k tokens/s", "rate": batch * context * 1000 / us})


timed("GPT-2 124M step, 16 x 1024, bfloat16 autocast, eager", model)
if "--eager" not in sys.argv:
    try:
        timed("GPT-2 124M step, 16 x 1024, bfloat16 autocast, captured", torch.compile(model))
    except Exception as error:  # noqa: BLE001: print what has been measured so far
        print(f"torch_gpt2.py: {error}", file=sys.stderr)
print(json.dumps(rows))
