"""The peer of bench/loader-peers.ts: reads the same files with PyTorch's DataLoader, and prints one JSON line per task and
number of workers.

  torch_loader.py FOLDER    reads tasks.json from FOLDER"""
import json, os, sys, time

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.set_num_threads(1)


class Tokens(Dataset):
    """Windows of a file of tokens, as nanoGPT reads them: a memory map, and two copies of each window."""

    def __init__(self, path, block):
        self.data = np.memmap(path, dtype=np.uint16, mode='r')
        self.block = block

    def __len__(self):
        return (len(self.data) - 1) // self.block

    def __getitem__(self, index):
        at = index * self.block
        x = torch.from_numpy(self.data[at : at + self.block].astype(np.int64))
        y = torch.from_numpy(self.data[at + 1 : at + 1 + self.block].astype(np.int64))
        return x, y


class Images(Dataset):
    """A folder with a subfolder of images per class, as torchvision's ImageFolder reads it."""

    def __init__(self, path, size):
        self.size = size
        classes = sorted(os.listdir(path))
        self.files = [
            (os.path.join(path, name, file), label)
            for label, name in enumerate(classes)
            for file in sorted(os.listdir(os.path.join(path, name)))
        ]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        with open(path, 'rb') as file:
            image = Image.open(file).convert('RGB')
        if image.size != (self.size, self.size):
            image = ImageOps.fit(image, (self.size, self.size), Image.Resampling.LANCZOS)
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous(), label


def dataset_of(task):
    if task['kind'] == 'tokens':
        return Tokens(task['path'], task['block'])
    if task['kind'] == 'images':
        return Images(task['path'], task['size'])
    x = np.fromfile(task['x'], dtype=np.float32).reshape(-1, 64)
    y = np.fromfile(task['y'], dtype=np.int32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def check_of(task, batches):
    if task['kind'] == 'images':
        labels = sum(int(label.sum()) for _, label in batches)
        return [labels, sum(float(image.double().mean(dim=(1, 2, 3)).sum()) for image, _ in batches)]
    return [sum(float(batch[i].double().sum()) for batch in batches) for i in (0, 1)]


for task in json.load(open(os.path.join(sys.argv[1], 'tasks.json'))):
    dataset = dataset_of(task)
    for workers in task['workerCounts']:
        loader = DataLoader(
            dataset,
            batch_size=task['batch'],
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        for _ in loader:
            pass
        began = time.perf_counter()
        batches = [batch for batch in loader]
        us = (time.perf_counter() - began) * 1e6 / len(dataset)
        check = check_of(task, batches)
        del batches
        print(json.dumps({'task': task['name'], 'workers': workers, 'usPerSample': us, 'check': check}), flush=True)
