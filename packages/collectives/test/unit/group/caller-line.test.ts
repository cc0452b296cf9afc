// Tests that the error of a call has the line of the program that made it or awaits it.
import { expect, it } from 'vitest';
import { loopback } from '../../../src/backends/loopback.ts';
import { type CollectiveError, Group } from '../../../src/index.ts';

function pair(): [Group, Group] {
  const groups = loopback(2).map((backend) => new Group(backend, { name: 'world', timeoutMs: 5000 }));
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

it('a refused call has the line of the call, once', async () => {
  const [a] = pair();
  const stack = await stackOf(a.allReduce('text' as never));
  expect(stack.match(/caller-line\.test\.ts/g)).toHaveLength(1);
});
