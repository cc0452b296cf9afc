// Compares optimisers, schedules, and trainings from the same weights with PyTorch; generator.test.ts compares ops.
// training.py computes PyTorch's numbers if a Python with PyTorch is there (RINGWISE_PYTHON, default python3);
// otherwise the test reads training.json, which the same program wrote.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import * as optim from '../../../../src/optim/index.ts';
import { averageOf, averages } from './averages.ts';
import { optimizers, type Resumed, resumedSteps, schedules, stepsOf } from './optimizers.ts';
import { cnn, gpt, mlp } from './training.ts';

interface Expected {
  readonly optimizers: Readonly<Record<string, Readonly<Record<'float32' | 'float64', number[][]>>>>;
  readonly resumed: Readonly<Record<string, Resumed>>;
  readonly schedules: Readonly<Record<string, number[]>>;
  readonly averages: Readonly<Record<string, number[]>>;
  readonly training: Readonly<Record<'mlp' | 'cnn' | 'gpt', number[]>>;
}

function load(): Expected {
  const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const python = process.env.RINGWISE_PYTHON || 'python3';
  const live = spawnSync(python, [file('./training.py')], { encoding: 'utf8', timeout: 120_000 });
  return JSON.parse(
    live.status === 0 ? live.stdout : readFileSync(file('./training.json'), 'utf8'),
  ) as Expected;
}

const expected = load();

/** Compares numbers. The tolerance is relative to the number, or to `floor` if the number is smaller. */
function expectNear(got: ArrayLike<number>, want: readonly number[], tolerance: number, floor = 1e-2): void {
  expect(got.length).toBe(want.length);
  for (const [i, value] of want.entries()) {
    const error = Math.abs(got[i]! - value) / Math.max(floor, Math.abs(value));
    if (!(error <= tolerance)) expect.fail(`element ${i}: PyTorch has ${value}, we have ${got[i]}`);
  }
}

test('both sides have the same cases', () => {
  expect(Object.keys(optimizers)).toEqual(Object.keys(expected.optimizers));
  const shared = Object.keys(optimizers).filter((name) => name !== 'Lion'); // PyTorch has no Lion
  expect(Object.keys(expected.resumed)).toEqual(shared);
  expect(Object.keys(schedules)).toEqual(Object.keys(expected.schedules));
  expect(Object.keys(averages)).toEqual(Object.keys(expected.averages));
});

test('every optimiser and schedule is compared, or stands here with the reason', () => {
  const apart = {
    'a base class': ['Optimizer', 'LrSchedule', 'RateSetter', 'Schedule'],
    'not of PyTorch: schedules.test.ts': ['WarmupCosineLR'],
    'averages.ts': [
      ...['AveragedModel', 'getEmaAvgFn', 'getEmaMultiAvgFn', 'getSwaAvgFn', 'getSwaMultiAvgFn', 'updateBn'],
    ],
    'goes on from a state of PyTorch': ['fromTorchState'],
    'clip.test.ts, autocast.test.ts': ['clipGradNorm', 'clipGradValue', 'GradScaler'],
  };
  const compared = Object.keys({ ...optimizers, ...schedules }).map((name) => name.split(' ')[0]!);
  expect(Object.keys(optim).sort()).toEqual(
    [...new Set([...compared, ...Object.values(apart).flat()])].sort(),
  );
});

describe('optimiser steps', () => {
  test.each(Object.keys(optimizers))('%s, 20 in float64', (name) => {
    for (const [i, got] of stepsOf(name, 'float64', [5, 20]).entries())
      expectNear(got, expected.optimizers[name]!.float64[i]!, 1e-6);
  });

  test.each(Object.keys(optimizers))('%s, 100 in float32', (name) => {
    // L-BFGS divides by differences of gradients that are nearly equal, which makes roundings larger.
    const tolerances = name.startsWith('LBFGS') ? [1e-3, 1e-3, 1e-3] : [1e-5, 2e-5, 1e-4];
    for (const [i, got] of stepsOf(name, 'float32', [1, 20, 100]).entries())
      expectNear(got, expected.optimizers[name]!.float32[i]!, tolerances[i]!);
  });
});

describe('goes on from a state of PyTorch', () => {
  test.each(Object.keys(expected.resumed))('%s', (name) => {
    const resumed = expected.resumed[name]!;
    expectNear(resumedSteps(name, resumed), resumed.after, name.startsWith('LBFGS') ? 1e-5 : 1e-6);
  });
});

describe('learning rates', () => {
  test.each(Object.entries(schedules))('%s', (name, make) => {
    expectNear(make(), expected.schedules[name]!, 1e-8, 1e-3);
  });
});

describe('averages of weights, and statistics for them', () => {
  test.each(Object.entries(averages))('%s', async (name, options) => {
    expectNear(await averageOf(options), expected.averages[name]!, 1e-6);
  });
});

describe('losses of 200 steps', () => {
  test.each([
    ['mlp', mlp],
    ['cnn', cnn],
    ['gpt', gpt],
  ] as const)('%s', (name, train) => {
    expectNear(train(), expected.training[name], 1e-4);
  });
});
