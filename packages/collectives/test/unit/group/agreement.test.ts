// Tests the comparison of calls that do not pass through the host group, among loopback ranks.
import { describe, expect, it } from 'vitest';
import type { Backend, Operation } from '../../../src/backend.ts';
import { Agreement } from '../../../src/backends/agreement/agreement.ts';
import type { BackendContext } from '../../../src/backends/context.ts';
import { loopback } from '../../../src/backends/loopback.ts';
import type { CollectiveError } from '../../../src/errors.ts';
import { asBuffer } from '../../../src/group/buffer.ts';
import { signatureOf } from '../../../src/group/signature.ts';

/** Compares one list of calls per rank. Returns each rank's result and the operations of the host group. */
async function compare(calls: readonly (readonly Operation[])[]) {
  const hosts = loopback(calls.length, 'world');
  const started: string[] = [];
  const told = hosts.map((host, rank) => {
    const counted: Backend = {
      ...host,
      start: (operation, settle) => {
        started.push(operation.verb);
        return host.start(operation, settle);
      },
    };
    const context = { group: 'world', rank, size: calls.length } as BackendContext;
    const agreement = new Agreement(context, counted);
    const { verb, seq, timeoutMs } = calls[rank]![0]!;
    const call = { verb, seq, timeoutMs, signatures: calls[rank]!.map(signatureOf) };
    return new Promise<CollectiveError | undefined>((resolve) => agreement.ask(call, resolve));
  });
  const outcomes = await Promise.all(told);
  for (const host of hosts) await host.close();
  return { outcomes, started };
}

const list = (counts: readonly number[], seq = 7): Operation[] =>
  counts.map((count, at) => ({
    verb: 'allReduce',
    seq: seq + at,
    timeoutMs: 5000,
    packing: 0,
    buffer: asBuffer(new Float32Array(count)),
    op: 'sum',
    factor: 1,
    wire: 'full',
    residual: null,
  }));
const range = (length: number) => Array.from({ length }, (_, at) => at + 1);

describe('the comparison of a call', () => {
  it.each([1, 3, 400])('of %i buffers is one gather', async (length) => {
    const { outcomes, started } = await compare([
      list(range(length)),
      list(range(length)),
      list(range(length)),
    ]);
    expect(outcomes).toEqual([undefined, undefined, undefined]);
    expect(started).toEqual(['allGather', 'allGather', 'allGather']);
  });

  it('names both sides of a single operation', async () => {
    const { outcomes } = await compare([list([4]), list([4]), list([5])]);
    for (const error of outcomes) {
      expect(error).toMatchObject({ code: 'ERR_COLL_MISMATCH', peers: [0, 2], seq: 7, verb: 'allReduce' });
      expect(error!.what).toBe(
        'rank 0 called allReduce sum 4 × float32 but rank 2 called allReduce sum 5 × float32',
      );
    }
  });

  it('names the first difference of lists that are too long for an announcement', async () => {
    const odd = range(300).with(270, 9).with(280, 9);
    const { outcomes, started } = await compare([list(range(300)), list(odd), list(odd)]);
    for (const error of outcomes) {
      expect(error).toMatchObject({ code: 'ERR_COLL_MISMATCH', peers: [0, 1], seq: 277 });
      expect(error!.what).toBe(
        'rank 0 called allReduce sum 271 × float32 as number 271 of 300 on the device ' +
          'but rank 1 called allReduce sum 9 × float32 as number 271 of 300 on the device',
      );
    }
    expect(started.filter((verb) => verb === 'allGather')).toHaveLength(3);
    expect(started.filter((verb) => verb === 'send')).toHaveLength(4);
  });

  it('is the error of later calls too, when the other rank has left because of it', async () => {
    const hosts = loopback(2, 'world');
    const [zero, one] = hosts.map(
      (host, rank) => new Agreement({ group: 'world', rank, size: 2 } as BackendContext, host),
    );
    const ask = (agreement: Agreement, [operation]: Operation[]) => {
      const { verb, seq, timeoutMs } = operation!;
      const call = { verb, seq, timeoutMs, signatures: [signatureOf(operation!)] };
      return new Promise<CollectiveError | undefined>((resolve) => agreement.ask(call, resolve));
    };
    const later = [ask(one!, list([5])), ask(one!, list([6], 8))];
    await ask(zero!, list([4]));
    await hosts[0]!.close();
    const what = 'rank 0 called allReduce sum 4 × float32 but rank 1 called allReduce sum 5 × float32';
    for (const [at, error] of (await Promise.all(later)).entries()) {
      expect(error).toMatchObject({ code: 'ERR_COLL_MISMATCH', what, seq: 7 + at });
    }
    await hosts[1]!.close();
  });

  it('tells a list from a longer one that begins with it', async () => {
    const { outcomes } = await compare([list([3, 2]), list([3])]);
    for (const error of outcomes)
      expect(error!.what).toBe(
        'rank 0 called allReduce sum 2 × float32 as number 2 of 2 on the device ' +
          'but rank 1 called no more than 1 on the device',
      );
  });
});
