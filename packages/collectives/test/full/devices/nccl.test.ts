// Tests the nccl backend on the software device and the software libnccl (native/test/software_gpu) if they
// have been built, or on a GPU that all ranks share.
import { isTestGpu, type PoolStarter, Pools, startRanks, values, withRanks } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../contract/index.ts';
import { mismatchKinds } from '../../../contract/scenarios/failures.ts';
import { loadNative } from '../../../src/backends/native.ts';
import { isReducibleByNccl } from '../../../src/backends/nccl/nccl.ts';
import { type DType, dtypes } from '../../../src/dtype.ts';
import { reduceOps } from '../../../src/reduce-ops.ts';
import { useControl } from '../../support/control.ts';
import { hasDevice } from '../../support/device-twin.ts';

const module = new URL('../../support/nccl-ranks.ts', import.meta.url);

function ranks(checksAhead: boolean): PoolStarter {
  return async (size, port) => {
    const options = { args: [port, checksAhead], timeoutMs: 600_000 };
    const started = await startRanks(size, module, 'serveScenarios', options);
    return { ended: started.results.then(values) };
  };
}

/** Tests of the contract that the nccl backend never passes. */
const always = [
  {
    reason: 'NCCL does not say what min and max make of NaN',
    tests: ['gives NaN for min and max where a rank has NaN'],
  },
  {
    reason: 'the parts of an allToAll are not compared: their lengths differ from pair to pair',
    tests: ['names both sides when ranks disagree in counts of allToAll, and leaves their memory alone'],
  },
];
/** Tests that pass only if ranks compare their calls before NCCL starts (RINGWISE_NCCL_CHECK=1). */
const unlessAhead = {
  reason:
    'the ranks are compared beside the operation, whose memory may be written by then: see RINGWISE_NCCL_CHECK',
  tests: [
    ...mismatchKinds
      .filter((kind) => !kind.includes('pair') && kind !== 'counts of allToAll')
      .map((kind) => `names both sides when ranks disagree in ${kind}, and leaves their memory alone`),
    ...['broadcast', 'reduce', 'gather', 'broadcast of a list', 'scatter'].map(
      (call) => `tells every rank, at close() at the latest, that roots of ${call} differ`,
    ),
    'tells every rank, at close() at the latest, that roots of broadcast differ, Sync',
  ],
};

/** The reason why the tests are skipped; empty if they run. */
const missing = hasDevice ? (isTestGpu ? loadNative().nccl.about().reason : '') : 'no device has been built';
// On a GPU each call costs milliseconds, because the ranks take turns there.
const [sizesAhead, sizesBeside] = isTestGpu
  ? [
      [1, 2, 4],
      [1, 2],
    ]
  : [
      [1, 2, 3, 4],
      [1, 3],
    ];

describe.skipIf(missing)(`nccl${missing && ` (skipped: ${missing})`}`, () => {
  for (const [name, checksAhead, sizes, skip] of [
    ['nccl, compared ahead', true, sizesAhead, always],
    ['nccl', false, sizesBeside, [...always, unlessAhead]],
  ] as const) {
    const pools = new Pools(ranks(checksAhead));
    backendContract({ describe, it, expect }, name, {
      sizes,
      skip,
      run: pools.run,
    });
    afterAll(pools.end);
  }

  it('reduces the dtypes and ops that NCCL has, and bools by band and bor as min and max', () => {
    const on = (dtype: DType, size = 2) => reduceOps.filter((op) => isReducibleByNccl(op, dtype, size));
    const floats = ['sum', 'avg', 'prod', 'min', 'max', 'premulSum'];
    const { reducesFloat8 } = loadNative().nccl.about();
    for (const dtype of dtypes) {
      const isKnown = dtype.startsWith('float8') ? reducesFloat8 : dtype !== 'int16' && dtype !== 'uint16';
      const ops = dtype.includes('float') ? floats : ['sum', 'prod', 'min', 'max'];
      const known = dtype === 'bool' ? ['min', 'max', 'band', 'bor'] : isKnown ? ops : [];
      expect(on(dtype), dtype).toEqual(known);
      const alone = dtype.startsWith('float8') ? known.filter((op) => op !== 'premulSum') : known;
      expect(on(dtype, 1), dtype).toEqual(alone);
    }
  });

  it('takes host and device memory in one group, and a fence does not block the host', async () => {
    const found = values(await withRanks(3, module, 'bothKinds'));
    for (const one of found) {
      expect(one).toMatchObject({
        backend: 'auto',
        device: Array(5).fill(6),
        host: [3, 3, 3],
        wasDone: false,
      });
      expect((one as { message: string }).message).toContain("'bxor' is not defined for float32");
    }
  });

  it('a fence of many buffers blocks the host only if some of them are in host memory', async () => {
    for (const [rank, one] of values(await withRanks(2, module, 'fencedLists')).entries()) {
      const { wasDone, ...rest } = one as { readonly wasDone: boolean[] };
      expect(rest).toEqual({ sums: [[12], [12], [3]], said: 'first' });
      if (rank === 0) expect(wasDone[0]).toBe(false); // rank 1 has not begun
      expect(wasDone[2]).toBe(true);
    }
  });

  it.skipIf(isTestGpu)(
    'passes many buffers on a device to NCCL in one group of calls, and compares them as one',
    async () => {
      for (const one of values(await withRanks(2, module, 'lists'))) {
        const twice = [2]; // the average of 0 and 1, then the sum over both ranks times 2
        const asOne = [1, 1];
        expect(one).toEqual({ counts: [[1, 2], asOne, asOne], sums: [twice, twice, [], twice, [1], [1]] });
      }
    },
  );

  it.skipIf(isTestGpu)('registers memory with NCCL, and deregisters it in call order', async () => {
    for (const one of values(await withRanks(2, module, 'registered')))
      expect(one).toEqual({ counts: [0, 1, 3, 1, 3, 0], sums: [8, 8, 6] });
  });

  it.each([false, true])(
    'tells both sides that they disagree, and does not hang (sync: %s)',
    async (sync) => {
      for (const one of values(await withRanks(2, module, 'disagree', { args: [sync] }))) {
        expect(one).toMatchObject({ code: 'ERR_COLL_MISMATCH', peers: [0, 1] });
        expect((one as { message: string }).message).toContain(
          'rank 0 called allReduce sum 1400000 × float32',
        );
        expect((one as { message: string }).message).toContain(
          'rank 1 called allReduce sum 1500000 × float32',
        );
      }
    },
  );

  it('tells a rank of a mismatch also when the other rank has left because of it', async () => {
    const what =
      'rank 0 called allReduce sum 1500000 × float32 but rank 1 called allReduce max 1500000 × float32';
    const told = { code: 'ERR_COLL_MISMATCH', what };
    expect(values(await withRanks(2, module, 'disagreeAndLeave'))).toEqual([[told], [told, told, told]]);
  });

  it.each([
    [3, false],
    [100, false],
    [100, true],
  ])(
    'names the third of %i buffers if ranks disagree about that one only (sync: %s)',
    async (total, sync) => {
      const of = `as number 3 of ${total} on the device`;
      for (const one of values(await withRanks(3, module, 'disagreeInList', { args: [total, sync] }))) {
        const what = `rank 0 called allReduce sum 1400000 × float32 ${of} but rank 1 called allReduce sum 1500000 × float32 ${of}`;
        expect(one).toEqual({ code: 'ERR_COLL_MISMATCH', peers: [0, 1], what });
      }
    },
  );

  it('refuses a second device, and goes on', async () => {
    const refused = 'ERR_COLL_UNSUPPORTED the auto backend cannot reach cuda:1 memory; expected cuda:0';
    expect(values(await withRanks(2, module, 'secondDevice'))).toEqual([
      [refused, 'ok', 'ok'],
      [refused, 'ok', 'ok'],
    ]);
  });

  it('tells all ranks when one passes two devices in the call that opens the first', async () => {
    const what = 'the auto backend cannot reach cuda:1 memory; expected cuda:0';
    const [own, other] = values(await withRanks(2, module, 'twoDevicesAtOnce'));
    expect(own).toEqual({ code: 'ERR_COLL_UNSUPPORTED', peers: [], what });
    expect(other).toEqual({ code: 'ERR_COLL_ABORTED', peers: [0], what });
  });

  it('reports a mismatch to a loop that never returns to the event loop', async () => {
    for (const { code, rounds } of values<{ code: string; rounds: number }>(
      await withRanks(2, module, 'disagreeBlocking'),
    )) {
      expect(code).toBe('ERR_COLL_MISMATCH');
      expect(rounds).toBeLessThan(200);
    }
  });

  interface Told {
    readonly code: string;
    readonly peers: readonly number[];
    readonly what: string;
  }

  it.skipIf(isTestGpu)(
    'reports a mismatch though NCCL cannot connect the ranks, and does not block',
    async () => {
      for (const { code } of values<Told>(await withRanks(2, module, 'disagreeStalled')))
        expect(code).toBe('ERR_COLL_MISMATCH');
    },
  );

  it.skipIf(isTestGpu).each([false, true])(
    'tells all ranks of a failure that only the NCCL of one reports (closing: %s)',
    async (closing) => {
      const told = values<Told>(await withRanks(2, module, 'failsOnOne', { args: [closing] }));
      for (const { code, peers, what } of told) {
        expect([code, peers]).toEqual(['ERR_COLL_SYSTEM', [0]]);
        expect(what).toMatch(/^rank 0: NCCL: .*the cable is out/);
      }
    },
  );

  describe('a group with a timeout of 3 s on a device that is busy with earlier work for 6 s', () => {
    const ends = async (isMissing: boolean) =>
      values<{ code?: string; peers?: number[]; sum: number[]; tookMs: number }>(
        await withRanks(2, module, 'behindQueuedWork', { args: [isMissing] }),
      );

    it('does not time out', async () => {
      for (const { code, sum, tookMs } of await ends(false)) {
        expect(code).toBeUndefined();
        expect(sum).toEqual([12, 12, 12, 12, 12]);
        expect(tookMs).toBeGreaterThan(3_500); // the timeout, and the time that NCCL has after it
      }
    });

    it('names a missing rank at the deadline', async () => {
      const [present] = await ends(true);
      expect(present).toMatchObject({ code: 'ERR_COLL_TIMEOUT', peers: [1] });
      expect(present!.tookMs).toBeGreaterThanOrEqual(3_000);
    });
  });

  it('says where it has looked for the library', async () => {
    for (const message of values<string>(await withRanks(2, module, 'withoutLibrary')))
      expect(message).toContain('/nowhere/libnccl.so');
  });

  it.skipIf(isTestGpu)('refuses a library that is too old, and says which it needs', async () => {
    const told = async (version: number) =>
      values<string>(await withRanks(1, module, 'ofVersion', { args: [version] }))[0]!;
    const refusal = await told(22606);
    expect(refusal).toMatch(/^init: .*\.so is version 2\.26\.6; expected NCCL 2\.27 or newer/);
    expect(refusal).toContain('Install NCCL 2.27 or newer');
    expect(await told(22703)).toBe('made');
  });

  it.skipIf(isTestGpu)('reduces floats of 8 bits where the device does', async () => {
    const asked = async (major: number) =>
      values<boolean>(await withRanks(1, module, 'reducesFloat8', { args: [major] }))[0];
    expect(await asked(9)).toBe(true);
    expect(await asked(8)).toBe(false);
  });

  it('leaves device memory to the host backend if NCCL is missing and no backend is named', async () => {
    const count = 5_000_001; // 20 MB, more than one slot holds
    for (const one of values(await withRanks(2, module, 'autoWithoutLibrary', { args: [count] })))
      expect(one).toEqual({
        backend: 'host',
        device: [3],
        slots: [{ bytes: 3 * 2 ** 21, isRegistered: true }],
      });
  });

  describe('when a rank is killed', () => {
    const control = useControl();
    const lost = { code: 'ERR_COLL_PEER_LOST', peers: [1] };

    it.each([false, true])(
      'all pending operations of the others name it, and they make a new group (sync: %s)',
      async (sync) => {
        const started = await startRanks(3, module, 'survive', { args: [control.port, sync] });
        await control.allReady(3);
        started.kill(1);
        const results = await started.results;
        for (const rank of [2, 0]) {
          const { error, value } = results[rank]!;
          expect(error, JSON.stringify(results[rank])).toBeUndefined();
          expect(value).toMatchObject({ told: Array(sync ? 1 : 3).fill(lost), sum: [4, 4, 4] });
        }
      },
    );

    it.each(['nccl', 'auto'])('the others go on by shrink() (%s)', async (backend) => {
      const started = await startRanks(4, module, 'goOn', { args: [control.port, backend] });
      await control.allReady(4);
      started.kill(1);
      const results = await started.results;
      const sum = Array(3).fill(1 + 3 + 4);
      const left = { name: 'world[0,2-3]', ranks: [0, 2, 3], kind: backend, device: sum, host: sum };
      expect(values(results.filter((_, rank) => rank !== 1))).toEqual([left, left, left]);
    });
  });
});
