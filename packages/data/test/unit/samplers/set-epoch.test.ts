import { afterEach, expect, it, vi } from 'vitest';
import { DistributedSampler, RandomSampler } from '../../../src/index.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

it('warns once of a pass without setEpoch, where that repeats a shuffled order', () => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const pass = (sampler: Iterable<number>) => [...sampler];
  const told = new DistributedSampler(6, { replicas: 2, rank: 0 });
  const fixed = new DistributedSampler(6, { replicas: 2, rank: 0, shuffle: false });
  const random = new RandomSampler(6);
  for (let epoch = 0; epoch < 3; epoch++) {
    told.setEpoch(epoch);
    for (const sampler of [told, fixed, random]) pass(sampler);
  }
  expect(warning).not.toHaveBeenCalled();
  const forgetful = new DistributedSampler(6, { replicas: 2, rank: 0 });
  for (let epoch = 0; epoch < 3; epoch++) pass(forgetful);
  expect(warning).toHaveBeenCalledTimes(1);
  expect(warning).toHaveBeenCalledWith(
    expect.stringContaining('DistributedSampler: a pass without setEpoch'),
    { type: 'RingwiseWarning', code: 'RINGWISE_SET_EPOCH' },
  );
});

it('does not warn of two passes in each epoch, and warns of a third', () => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const sampler = new DistributedSampler(6, { replicas: 2, rank: 0 });
  for (let epoch = 0; epoch < 3; epoch++) {
    sampler.setEpoch(epoch);
    for (let pass = 0; pass < 2; pass++) void [...sampler]; // training, then evaluation on the same samples
  }
  expect(warning).not.toHaveBeenCalled();
  void [...sampler];
  expect(warning).toHaveBeenCalledTimes(1);
});
