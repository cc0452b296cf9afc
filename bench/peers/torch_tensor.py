"""The peer of bench/tensor-peers.ts: runs the same work in PyTorch on one thread, and prints one JSON line per task.

  torch_tensor.py FOLDER    reads tasks.json from FOLDER, and the arrays that the tasks use (raw float32 and int32)"""
import json, os, sys, time

os.environ['OMP_NUM_THREADS'] = os.environ['MKL_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'
import numpy as np
import torch
import torch.nn as nn

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


for task in json.load(open(os.path.join(folder, 'tasks.json'))):
    if task['kind'] == 'mlp':
        result = mlp(task)
    else:
        with torch.no_grad():
            result = matmul(task)
    print(json.dumps({'name': task['name'], 'peer': 'torch ' + torch.__version__.split('+')[0], **result}), flush=True)
