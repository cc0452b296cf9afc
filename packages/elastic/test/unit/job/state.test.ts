// States of objects as plain values, and the streams of random numbers of micro-batches.
import { generator } from '@ringwise/tensor';
import { expect, it } from 'vitest';
import { setStateOf, stateOf } from '../../../src/job/stateful.ts';
import { beginMicroBatch, seedOf } from '../../../src/job/streams.ts';

const microBatch = (epoch: number, step: number, index: number) => ({ epoch, step, index, start: 0, end: 1 });

it('reads and sets the state of an object in each form', () => {
  let value: unknown = 1;
  const read = () => value;
  const write = (state: unknown) => {
    value = state;
  };
  for (const object of [
    { stateDict: read, loadStateDict: write },
    { state: read, setState: write },
    { state: read, load: write },
  ]) {
    value = 1;
    expect(stateOf(object)).toBe(1);
    setStateOf(object, 2);
    expect(value).toBe(2);
  }
});

it('gives each micro-batch, step, epoch and generator another stream, the same on every rank', () => {
  const seeds = [0, 1].flatMap((epoch) =>
    [0, 1, 2].flatMap((step) =>
      [0, 1, 2].flatMap((index) => [0, 1].map((which) => seedOf(7, microBatch(epoch, step, index), which))),
    ),
  );
  expect(new Set(seeds).size).toBe(seeds.length);
  expect(seeds.every(Number.isSafeInteger)).toBe(true);
  const [first, second] = [generator(1), generator(2)];
  second.uniform(new Float32Array(9));
  for (const each of [first, second]) beginMicroBatch([each], 7, microBatch(0, 1, 2));
  expect(second.state()).toEqual(first.state());
});
