// Tests DDP with parameters, gradients and buckets on a device. The software device and its NCCL run copies and
// collectives as late as they may, so that code that does not wait for them fails in every run. On a GPU, all ranks
// share the device.
import type { FlightEntry } from '@ringwise/collectives';
import type { BucketStatistics, DdpTrace, StepStatistics } from '@ringwise/ddp';
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { hasTestDevice, isTestGpu, startRanks, testDeviceOf, values, withRanks } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cnnAlone, gptAlone, mlpAlone } from '../../support/device-ddp-ranks.ts';
import { withoutNccl } from '../../support/without-nccl.ts';

const module = new URL('../../support/device-ddp-ranks.ts', import.meta.url);

const tolerance = 2e-5;
const timeoutMs = 110_000;

const largestDifference = (a: Float32Array, b: Float32Array): number => {
  expect(a.length).toBe(b.length);
  return a.reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i]!)), 0);
};

describe.skipIf(!hasTestDevice)(`ddp on a device${hasTestDevice ? '' : ' (skipped: there is none)'}`, () => {
  describe.each(['nccl', 'host'])('%s', (backend) => {
    beforeEach(({ skip }) => skip(backend === 'nccl' && withoutNccl !== '', withoutNccl));
    const run = async <T>(size: number, name: string, ...args: unknown[]): Promise<T[]> =>
      values<T>(await withRanks(size, module, name, { args: [backend, ...args], timeoutMs }));

    it('an MLP trains as in one process, whatever the way', { timeout: 120_000 }, async () => {
      const ranks = await run<Record<string, Float32Array>>(2, 'trainMlp');
      const expected = mlpAlone(2);
      expect(Object.keys(ranks[0]!)).toEqual(Object.keys(expected));
      for (const [way, trained] of Object.entries(expected)) {
        expect(ranks[1]![way], way).toEqual(ranks[0]![way]);
        expect(largestDifference(ranks[0]![way]!, trained), way).toBeLessThan(tolerance);
      }
    });

    it('a GPT with tied weights does, and ZeRO has its moments on the devices', {
      timeout: 120_000,
    }, async () => {
      const ranks = await run<{
        plain: Float32Array;
        zero: Float32Array;
        devices: string[];
        remembered: number;
        consolidated: number | null;
      }>(2, 'trainGpt');
      const expected = gptAlone(2);
      for (const [rank, { plain, zero, devices, remembered }] of ranks.entries()) {
        expect(plain).toEqual(ranks[0]!.plain);
        expect(zero).toEqual(ranks[0]!.zero);
        expect(largestDifference(plain, expected)).toBeLessThan(tolerance);
        expect(largestDifference(zero, expected)).toBeLessThan(tolerance);
        expect(devices).toEqual([`cuda:${testDeviceOf(rank)}`]);
        expect(remembered).toBeLessThan(0.6);
      }
      expect(ranks.map(({ consolidated }) => consolidated)).toEqual([1, null]);
    });

    it.each([
      [2, 2],
      [1, 4],
    ])('a CNN with batch norm over all ranks does, with batches of %i and %i', async (...counts) => {
      const ranks = await run<Float32Array>(2, 'trainCnn', counts);
      expect(ranks[1]).toEqual(ranks[0]);
      const expected = cnnAlone(counts[0]! + counts[1]!);
      expect(largestDifference(ranks[0]!, expected)).toBeLessThan(tolerance);
    });

    it('gradients lie in buckets on the device, which NCCL knows until the end', async () => {
      const registered = backend === 'nccl' && !isTestGpu ? [2, 0] : [0, 0];
      for (const [rank, found] of (await run(2, 'whereGradients')).entries())
        expect(found).toEqual({
          devices: [`cuda:${testDeviceOf(rank)}`],
          beginnings: [1, 1],
          backend,
          registered,
        });
    });

    it('large buckets lie where NVLink can use them, and small ones with the tensors', async () => {
      const isKnown = backend === 'nccl' && !isTestGpu;
      for (const found of await run(2, 'whereLargeBuckets'))
        expect(found).toEqual({
          counts: [513, 512 * 513],
          isAligned: true,
          averages: [[1], [3.5]],
          known: isKnown ? { registered: 2, shareable: 1 } : { registered: 0, shareable: 0 },
          left: 0,
        });
    });

    it('state buffers travel in one call', async ({ skip }) => {
      skip(backend === 'host' || isTestGpu, 'only the software NCCL counts');
      for (const found of await run(2, 'callsOfSteps'))
        expect(found).toEqual({ buckets: 1, buffers: 3, calls: [2, 2, 2] });
    });

    it('a trace has each bucket for as long as its operation ran', async () => {
      const ranks = await run<{
        atOnce: boolean[];
        statistics: StepStatistics;
        trace: DdpTrace | null;
        record: FlightEntry[];
      }>(2, 'traced');
      const bytes = [4 * (1104 + 640 * 1104), 4 * (640 + 256 * 640)];
      const events = ranks[0]!.trace!.traceEvents;
      expect(ranks[1]!.trace).toBeNull();
      for (const [rank, { atOnce, statistics, record }] of ranks.entries()) {
        // The NCCL backend has not yet reported the collectives' ends to this thread.
        if (!isTestGpu) expect(atOnce).toEqual(backend === 'host' ? [true, true] : [false, false]);
        const { step, backwardMs, buckets, arrivalOrder } = statistics;
        expect(step).toBe(2);
        expect(arrivalOrder).toEqual(['2.bias', '2.weight', '0.bias', '0.weight']);
        expect(buckets.map((bucket) => bucket.bytes)).toEqual(bytes);
        const [first, second] = buckets as [BucketStatistics, BucketStatistics];
        // The first bucket is sent before all gradients of the second are ready.
        expect(first.launchedMs).toBeLessThan(second.readyMs);
        expect(second.launchedMs).toBeLessThanOrEqual(backwardMs);
        // The length identifies a bucket's entries: the ranks call no other operation of that length.
        for (const bucket of buckets) {
          const entries = record.filter((entry) => entry.bytes === bucket.bytes);
          expect(entries).toHaveLength(3);
          const { startedMs, endedMs } = entries.at(-1)!;
          expect(bucket.communicationMs).toBeCloseTo(endedMs! - startedMs!, 1);
          expect(bucket.communicationMs).toBeGreaterThan(0);
        }
        const apartMs = record.at(-1)!.startedMs! - record.at(-2)!.startedMs!;
        expect(second.startedMs! - first.startedMs!).toBeCloseTo(apartMs, 1);

        const slices = events.filter(({ ph, pid }) => ph === 'X' && pid === rank);
        expect(slices.filter(({ name }) => name === 'backward 2')).toHaveLength(1);
        const drawn = slices.filter(({ name }) => name.startsWith('bucket '));
        expect(drawn.map(({ args }) => args!.bytes)).toEqual([...bytes, ...bytes, ...bytes]);
        for (const [i, slice] of drawn.slice(-2).entries()) {
          expect(slice.dur! / 1000).toBeCloseTo(buckets[i]!.communicationMs!, 1);
          const beganUs = slices.find(({ name }) => name === 'backward 2')!.ts!;
          expect((slice.ts! - beganUs) / 1000).toBeCloseTo(buckets[i]!.startedMs!, -1);
        }
      }
    });

    it('a hook in JavaScript is refused with a reason, as is a captured step on the host backend', async () => {
      const sentences = {
        hook: /ERR_DDP_INVALID hook: the bucket is in cuda:\d memory/,
        compile:
          /ERR_COLL_UNSUPPORTED allReduce: it cannot be part of a step that is being captured: the host backend takes no part in that/,
      };
      const ranks = await run<Partial<Record<keyof typeof sentences, string>>>(2, 'refused');
      for (const what of ['hook', 'compile'] as const) {
        const told = ranks.map((rank) => rank[what] ?? 'nothing');
        if (what === 'compile' && backend === 'nccl') {
          expect(told).toEqual(['nothing', 'nothing']);
          continue;
        }
        expect(told.some((text) => sentences[what].test(text))).toBe(true);
        // A rank that has not reached the failing call yet gets the error from the other rank.
        const aborted = /^ERR_COLL_ABORTED .* aborted the group: (hook|allReduce): /;
        for (const text of told) expect(sentences[what].test(text) || aborted.test(text), text).toBe(true);
      }
    });

    describe('when a rank is killed', () => {
      let server: StoreServer;
      let control: TcpStore;
      beforeEach(async () => {
        server = await serveStore();
        control = await TcpStore.connect({ host: server.host, port: server.port });
      });
      afterEach(async () => {
        await control.close();
        await server.close();
      });

      it('the step of the other rank names it, and the device of the other rank still works', async () => {
        const started = await startRanks(2, module, 'trainUntilKilled', { args: [backend, server.port] });
        await expect
          .poll(() => control.add('ready', 0), { timeout: 60_000, interval: 5 })
          .toBeGreaterThanOrEqual(2);
        started.kill(1);
        const [survivor] = await started.results;
        expect(survivor!.error, JSON.stringify(survivor)).toBeUndefined();
        expect(survivor!.value).toEqual({ code: 'ERR_COLL_PEER_LOST', peers: [1], sum: 3 });
      });
    });
  });

  it('one rank trains alone, also with weights', { timeout: 120_000 }, async () => {
    const options = { args: ['any'], timeoutMs };
    const [trained] = values<Record<string, Float32Array>>(await withRanks(1, module, 'trainMlp', options));
    for (const [way, expected] of Object.entries(mlpAlone(1)))
      expect(largestDifference(trained![way]!, expected), way).toBeLessThan(tolerance);
  });

  it('a captured step of one rank is the same step', async () => {
    const [trained] = values<Float32Array[]>(await withRanks(1, module, 'capturedAlone'));
    expect(trained![1]).toEqual(trained![0]);
  });

  it.skipIf(isTestGpu)(
    'a rank without a device of its own is told how many there are for how many ranks',
    async () => {
      const env = { CUDA_VISIBLE_DEVICES: '5,7' };
      expect(values(await withRanks(3, module, 'ownDevice', { env }))).toEqual([
        'cuda:0',
        'cuda:1',
        expect.stringMatching(
          /^cuda:2: there is no such device; 2 were found\. This host has 3 ranks for 2 devices \(CUDA_VISIBLE_DEVICES=5,7\): start one for each \(--nproc-per-node gpu\), or/,
        ),
      ]);
    },
  );
});
