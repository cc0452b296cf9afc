// Tests the statistics of a step.
import { expect, it } from 'vitest';
import { ddp, postLocalSGDHook } from '../../../src/index.ts';
import { onRanks, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

/** Largest difference in ms between two clocks that are read one after the other. */
const apartMs = 50;

function run(size: number, steps: number) {
  return onRanks(size, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group, bucketBytes: 100, firstBucketBytes: 40 });
    expect(model.statistics()).toBeNull();
    for (let step = 0; step < steps; step++) {
      net.loss(0, 1);
      net.autograd.backward();
      await model.finish();
      net.autograd.zeroGrad();
    }
    return { statistics: model.statistics()!, trace: await model.trace(), plan: model.plan };
  });
}

it('names gradients in order of arrival, and says when their buckets left', async () => {
  for (const { statistics, plan } of values(await run(2, 3))) {
    expect(statistics.step).toBe(2);
    expect(statistics.arrivalOrder).toEqual(['b2', 'w2', 'b1', 'w1', 'b0', 'w0']);
    expect(statistics.buckets.map(({ params }) => params)).toEqual([
      ['b2', 'w2'],
      ['b1', 'w1'],
      ['b0', 'w0'],
    ]);
    expect(statistics.buckets.map(({ bytes }) => bytes)).toEqual(plan.map(({ count }) => 4 * count));
    for (const { readyMs, launchedMs, startedMs, communicationMs } of statistics.buckets) {
      expect(readyMs).toBeGreaterThanOrEqual(0);
      expect(launchedMs).toBeGreaterThanOrEqual(readyMs);
      expect(launchedMs).toBeLessThanOrEqual(statistics.backwardMs);
      expect(startedMs).toBeGreaterThanOrEqual(readyMs - apartMs);
      expect(startedMs! + communicationMs!).toBeLessThanOrEqual(
        statistics.backwardMs + statistics.exposedMs + apartMs,
      );
      expect(communicationMs).toBeGreaterThanOrEqual(0);
    }
    expect(statistics.exposedMs).toBeGreaterThanOrEqual(0);
  }
});

it('keeps the last 64 steps, and gives rank 0 those of all ranks as a Chrome trace', async () => {
  const [first, second] = values(await run(2, 70));
  expect(second!.trace).toBeNull();
  const { traceEvents } = JSON.parse(JSON.stringify(first!.trace)) as NonNullable<typeof first>['trace'] &
    object;
  for (const rank of [0, 1]) {
    const own = traceEvents.filter(({ pid }) => pid === rank);
    const named = (prefix: string) => own.filter(({ ph, name }) => ph === 'X' && name.startsWith(prefix));
    expect(named('backward').map(({ name }) => name)).toEqual(
      Array.from({ length: 64 }, (_, i) => `backward ${6 + i}`),
    );
    expect(named('bucket')).toHaveLength(3 * 64);
    for (const { ts, dur } of own.filter(({ ph }) => ph === 'X')) {
      expect(Number.isFinite(ts)).toBe(true);
      expect(dur).toBeGreaterThanOrEqual(0);
    }
    expect(own.filter(({ ph }) => ph === 'M').map(({ name }) => name)).toContain('process_name');
  }
});

it('does not take the operation of another group for that of a bucket', async () => {
  const ran = onRanks(2, async (group) => {
    const subgroup = (await group.split(0))!;
    const net = new TinyMlp(1);
    const hook = postLocalSGDHook({ startStep: 1, subgroup });
    const model = await ddp(net, { group, hook });
    const times: (number | null)[] = [];
    for (let step = 0; step < 3; step++) {
      net.loss(0, 1);
      net.autograd.backward();
      await model.finish();
      net.autograd.zeroGrad();
      times.push(model.statistics()!.buckets[0]!.communicationMs);
    }
    return times;
  });
  for (const times of values(await ran)) expect(times).toEqual([expect.any(Number), null, null]);
});

it('a group of one has no buckets to tell of', async () => {
  const [only] = values(await run(1, 2));
  const { statistics, trace } = only!;
  expect(statistics.buckets).toEqual([]);
  expect(statistics.arrivalOrder).toHaveLength(6);
  expect(trace!.traceEvents.length).toBeGreaterThan(0);
});
