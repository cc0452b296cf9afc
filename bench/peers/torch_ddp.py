"""The peer of bench/ddp-peers.ts: the same training in PyTorch, DDP over Gloo, one thread per rank, PyTorch's defaults.

  torch_ddp.py FOLDER    reads from FOLDER task.json, the initial parameters (raw float32, one after the other), data

Steps with DDP take turns with the same steps in the same processes without it, as in bench/ddp-step.ts. Rank 0 prints
one JSON line with the same names."""
import json, os, sys, time

os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'
os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

now = time.perf_counter


def read(folder, name, dtype):
    return torch.from_numpy(np.fromfile(os.path.join(folder, name), dtype=dtype))


def median(values):
    return sorted(values)[len(values) // 2]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, x):
        batch, count, width = x.shape
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).split(width, 2)
        q, k, v = (part.view(batch, count, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        if hasattr(F, 'scaled_dot_product_attention'):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
            future = torch.ones(count, count, dtype=torch.bool).triu(1)
            y = scores.masked_fill(future, float('-inf')).softmax(-1) @ v
        return self.out_proj(y.transpose(1, 2).reshape(batch, count, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, time, layers, width, heads, vocab):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(time, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, x):
        hidden = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


def mlp_job(folder, task, rank, ranks):
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    images = read(folder, 'images', np.uint8).view(-1, 784).float() / 255
    labels = read(folder, 'labels', np.uint8).long()

    def batches():
        dataset = TensorDataset(images, labels)
        sampler = DistributedSampler(dataset, num_replicas=ranks, rank=rank)
        loader = DataLoader(dataset, batch_size=task['batch'], sampler=sampler, drop_last=True)
        epoch = 0
        while True:
            sampler.set_epoch(epoch)
            yield from loader
            epoch += 1

    return nn.Sequential(*layers), batches(), lambda p: torch.optim.SGD(p, lr=1e-3)


def gpt_job(folder, task, rank, ranks):
    sizes = task['sizes']
    text = read(folder, 'text', np.int32).long()

    def batches():
        step = 0
        while True:
            windows = torch.arange(task['batch']) + (step * ranks + rank) * task['batch']
            window = text[(windows[:, None] * 37 + torch.arange(sizes['time'] + 1)) % len(text)]
            yield window[:, :-1], window[:, 1:].reshape(-1)
            step += 1

    def optimizer(parameters):
        return torch.optim.AdamW(parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)

    return Gpt(**sizes), batches(), optimizer


class Contender:
    def __init__(self, folder, task, rank, ranks, with_ddp):
        make = {'mlp': mlp_job, 'gpt': gpt_job}[task['job']]
        self.net, self.batches, optimizer = make(folder, task, rank, ranks)
        start, at = read(folder, 'weights', np.float32), 0
        parameters = dict(self.net.named_parameters())
        for name in task['parameters']:
            parameter = parameters.pop(name)
            with torch.no_grad():
                parameter.copy_(start[at:at + parameter.numel()].view_as(parameter))
            at += parameter.numel()
        assert not parameters and at == len(start)
        self.model = nn.parallel.DistributedDataParallel(self.net) if with_ddp else self.net
        self.optimizer = optimizer(self.net.parameters())
        self.rates, self.step_us = [], []

    def run(self, count, units):
        losses = []
        dist.barrier()
        begin = before = now()
        for i in range(count):
            x, y = next(self.batches)
            out = self.model(x)
            loss = F.cross_entropy(out.view(len(y), -1), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            value = loss.item()
            if i % 10 == 0:
                losses.append(value)
            end = now()
            self.step_us.append((end - before) * 1e6)
            before = end
        rate = torch.tensor([count * units / (before - begin)], dtype=torch.float64)
        dist.all_reduce(rate)
        self.rates.append(float(rate))
        return losses


def main(rank, folder, task, ranks):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{folder}/meeting', rank=rank, world_size=ranks)
    units = task['batch'] * task['unitsPerSample']
    together, alone = (Contender(folder, task, rank, ranks, with_ddp) for with_ddp in (True, False))
    losses = torch.tensor(together.run(task['warmup'], units), dtype=torch.float64)
    dist.all_reduce(losses)
    alone.run(task['warmup'], units)
    for each in (together, alone):
        each.rates, each.step_us = [], []
    for _ in range(task['rounds']):
        for each in (together, alone):
            each.run(task['steps'], units)
    if rank == 0:
        print(json.dumps({
            'peer': 'torch ' + torch.__version__.split('+')[0], task['rate']: median(together.rates), 'alone': median(alone.rates),
            'ratio': median([a / b for a, b in zip(together.rates, alone.rates)]), 'stepUs': median(together.step_us),
            'aloneStepUs': median(alone.step_us), 'losses': (losses / ranks).tolist()}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    folder = sys.argv[1]
    with open(os.path.join(folder, 'task.json')) as file:
        task = json.load(file)
    torch.multiprocessing.spawn(main, (folder, task, task['ranks']), nprocs=task['ranks'])
