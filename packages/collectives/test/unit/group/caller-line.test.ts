// Tests that the error of a call has the line of the program that made it or awaits it.
import { describe, expect, it } from 'vitest';
import { loopback } from '../../../src/backends/loopback.ts';
import { addCallSite } from '../../../src/group/caller-line.ts';
import { type CollectiveError, type FlightEntry, Group } from '../../../src/index.ts';

function pair(): [Group, Group] {
  const groups = loopback(2).map((backend) => new Group(backend, { name: 'world', timeoutMs: 60_000 }));
  return groups as [Group, Group];
}

async function inFunction(group: Group, count: number): Promise<void> {
  await group.allReduce(new Float32Array(count));
}

const stackOf = async (call: Promise<unknown> | PromiseLike<unknown>): Promise<string> =>
  await call.then(
    () => 'no error',
    (error: CollectiveError) => error.stack ?? '',
  );

it('the functions that await the call are in the stack', async () => {
  const [a, b] = pair();
  const stacks = await Promise.all([stackOf(inFunction(a, 1)), stackOf(inFunction(b, 2))]);
  for (const stack of stacks)
    expect(stack).toMatch(/at (async )?inFunction \(.*caller-line\.test\.ts:\d+:\d+\)/);
});

it('the place of the call is in the stack, also if the program awaits it elsewhere', async () => {
  const [a, b] = pair();
  const first = a.allReduce(new Float32Array(1));
  const second = b.allReduce(new Float32Array(2));
  const stack = await stackOf(first);
  await stackOf(second);
  const place = a.flightRecord()[0]!.callSite!;
  expect(place).toMatch(/caller-line\.test\.ts:\d+$/);
  expect(stack.split('\n')).toContain(`    at ${place}`);
});

describe('a call whose place was not looked up', () => {
  const entry = (fields: Partial<FlightEntry>): FlightEntry => ({
    ...{ number: 0, verb: 'allReduce', seq: 0, dtype: 'float32', count: 8, bytes: 32, op: 'sum', root: null },
    ...{ peer: null, tag: null, label: null, state: 'done', queuedMs: 0, startedMs: 0, endedMs: 0 },
    ...{ algorithm: null, callSite: null },
    ...fields,
  });
  const record = [
    entry({ seq: 0, callSite: 'train.ts:1' }),
    entry({ seq: 1, callSite: 'batch at train.ts:2' }),
    entry({ seq: 2, count: 9, callSite: 'train.ts:3' }),
    entry({ seq: 3, label: 'loss', callSite: 'train.ts:4' }),
    entry({ seq: 4, state: 'failed' }),
    entry({ seq: 5, op: 'max', state: 'failed' }),
    entry({ seq: 6, callSite: 'train.ts:7' }),
  ];
  const added = (seq: number) => {
    const error = new Error('lost');
    const before = error.stack!;
    addCallSite(error, { verb: 'allReduce', seq }, record);
    return error.stack!.slice(before.length);
  };

  it('has that of the last call like it, and says so', () => {
    expect(added(4)).toBe('\n    at train.ts:7 (the line of an earlier call like this one)');
  });

  it('has none if no call was like it, or it is not in the record', () => {
    expect(added(5)).toBe('');
    expect(added(99)).toBe('');
  });

  it('has its own if it was looked up', () => {
    expect(added(1)).toBe('\n    at train.ts:2');
  });
});

it('in a loop, few places are looked up, and the error of the last call has the line', async () => {
  const [a, b] = pair();
  const call = (group: Group, count: number) => group.allReduce(new Float32Array(count));
  for (let step = 0; step < 10_000; step++) await Promise.all([call(a, 1), call(b, 1)]);
  const [last, other] = [call(a, 1), call(b, 2)];
  const stack = await stackOf(last);
  await stackOf(other);
  const record = a.flightRecord();
  expect(record.filter(({ callSite }) => callSite !== null).length).toBeLessThan(record.length / 2);
  expect(stack).toMatch(/\n {4}at \S*caller-line\.test\.ts:\d+/);
});

it('a refused call has the line of the call, once', async () => {
  const [a] = pair();
  const stack = await stackOf(a.allReduce('text' as never));
  expect(stack.match(/caller-line\.test\.ts/g)).toHaveLength(1);
});
