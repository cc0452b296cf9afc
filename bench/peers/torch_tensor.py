"""The peer of bench/tensor-peers.ts: runs the same work in PyTorch on one thread, and prints one JSON line per task.

  torch_tensor.py FOLDER    reads tasks.json from FOLDER, and the arrays that the tasks use (raw float32 and int32)"""
import json, os, sys, time

os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
folder = sys.argv[1]
now = time.perf_counter


def read(name, shape, dtype=np.float32):
    return torch.from_numpy(np.fromfile(os.path.join(folder, name), dtype=dtype).reshape(shape))


def median_us(times):
    return sorted(times)[len(times) // 2] * 1e6


def mlp(task):
    batch, batches = task['batch'], task['batches']
    sizes = task['sizes']
    layers = []
    for i in range(len(sizes) - 1):
        linear = nn.Linear(sizes[i], sizes[i + 1])
        with torch.no_grad():
            linear.weight.copy_(read(f'w{i}', (sizes[i + 1], sizes[i])))
            linear.bias.copy_(read(f'b{i}', (sizes[i + 1],)))
        layers += [linear, nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    images = read('images', (-1, sizes[0]))
    labels = read('labels', (-1,), np.int32).long()
    optimizer = torch.optim.SGD(model.parameters(), lr=task['lr'], momentum=task['momentum'])
    cross_entropy = nn.CrossEntropyLoss()
    times, losses = [], []
    for step in range(task['warmup'] + task['steps']):
        start = now()
        at = step % batches * batch
        loss = cross_entropy(model(images[at:at + batch]), labels[at:at + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(now() - start)
    return {'us': median_us(times[task['warmup']:]), 'check': losses[::10]}


def matmul(task):
    m, n, k = task['m'], task['n'], task['k']
    a = read('a', (-1,))[:m * k]
    b = read('b', (-1,))[:k * n]
    a = a.view(k, m).t() if task['transA'] else a.view(m, k)
    b = b.view(n, k).t() if task['transB'] else b.view(k, n)
    out = torch.empty(m, n)
    times = []
    end = now() + task['seconds']
    while len(times) < 5 or now() < end:
        start = now()
        for _ in range(task['calls']):
            torch.mm(a, b, out=out)
        times.append((now() - start) / task['calls'])
    return {'us': median_us(times), 'check': [float(out[0, 0]), float(out[m - 1, n - 1]), float(out.double().sum())]}


ROWS = 20_000


def layer(task):
    size = lambda shape: int(np.prod(shape, dtype=np.int64))
    x = read('a', (-1,))[:size(task['shape'])].view(task['shape']).clone().requires_grad_()
    noise, at, weights = read('b', (-1,)), 0, []
    for shape in task['weights']:
        weights.append((noise[at:at + size(shape)].view(shape) * 0.1).requires_grad_())
        at += size(shape)
    places = torch.tensor([(i * 7919) % ROWS for i in range(2 * ROWS)])
    name = task['name']
    if name == 'lstm':
        model = nn.LSTM(128, 128)
        with torch.no_grad():
            for parameter, weight in zip(model.parameters(), weights):
                parameter.copy_(weight)
        parameters = list(model.parameters())
    else:
        parameters = weights
    forward = {
        'lstm': lambda: model(x)[0],
        'groupNorm': lambda: F.group_norm(x, 8, weights[0], weights[1]),
        'convTranspose2d': lambda: F.conv_transpose2d(x, weights[0], weights[1], stride=2, padding=1),
        'rows by index': lambda: x[places],
        'rows added by index': lambda: x.index_add(0, places, weights[0]),
        'bilinear interpolation': lambda: F.interpolate(x, scale_factor=2, mode='bilinear'),
    }[name]

    def step():
        for leaf in [x, *parameters]:
            leaf.grad = None
        loss = forward().square().sum()
        loss.backward()
        return loss.item()

    step()
    times = []
    end = now() + task['seconds']
    while len(times) < 5 or now() < end:
        start = now()
        step()
        times.append(now() - start)
    return {'us': median_us(times), 'check': [step(), float(x.grad.double().sum())]}


for task in json.load(open(os.path.join(folder, 'tasks.json'))):
    if task['kind'] == 'mlp':
        result = mlp(task)
    elif task['kind'] == 'layer':
        result = layer(task)
    else:
        with torch.no_grad():
            result = matmul(task)
    print(json.dumps({'name': task['name'], 'peer': 'torch ' + torch.__version__.split('+')[0], **result}), flush=True)
