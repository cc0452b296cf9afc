// Tests collectives inside steps that `compile` captures, on the test device. DDP must train as it does step by step,
// ranks that capture or run different steps must fail with an error, and a rank that is killed or late must not block
// the others beyond the deadline.
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { hasTestDevice, isTestGpu, startRanks, values, withRanks } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { alone, type Task } from '../../support/device-captured-ranks.ts';
import { withoutNccl } from '../../support/without-nccl.ts';

const module = new URL('../../support/device-captured-ranks.ts', import.meta.url);

interface Trained {
  readonly state: Float32Array;
  readonly losses: number[];
  readonly isReplayed: boolean;
  readonly statisticsStep: number;
}

describe.skipIf(!hasTestDevice)(
  `captured collectives${hasTestDevice ? '' : ' (skipped: there is no device)'}`,
  () => {
    beforeEach(({ skip }) => skip(withoutNccl !== '', withoutNccl));
    const run = async <T>(size: number, name: string, ...args: unknown[]): Promise<T[]> =>
      values<T>(await withRanks(size, module, name, { args, timeoutMs: 100_000 }));

    it.each<Task>(['mlp', 'normed', 'gpt'])(
      'ddp in a captured step trains as it does without (%s)',
      async (task) => {
        const ranks = await run<{ eager: Trained; captured: Trained; runs: string[] }>(2, 'train', task);
        for (const { eager, captured, runs } of ranks) {
          expect(captured.isReplayed).toBe(true);
          expect(captured.state).toEqual(eager.state);
          expect(captured.losses).toEqual(eager.losses);
          expect(captured.state).toEqual(ranks[0]!.captured.state);
          // The first 2 of 8 steps are warm-ups. The third is captured, then run as the first replay.
          expect(runs).toHaveLength(6);
          expect(runs[0]).toMatch(/^done: captured step 0: \d+ allReduce/);
          // The statistics show the last step that ran eagerly: DDP sees neither the capture nor the replays.
          expect([eager.statisticsStep, captured.statisticsStep]).toEqual([7, 1]);
        }
        if (task === 'normed') return; // batch norm over the batch of all ranks has other statistics
        const expected = alone(task, 2);
        for (const [i, value] of ranks[0]!.captured.state.entries())
          expect(Math.abs(value - expected[i]!)).toBeLessThan(2e-5);
      },
    );

    it('verbs give the same results in a captured step as in an eager one, fenced or not', async () => {
      const each = [3, 4, 6, 1, 2, 7.5, 10.5].flatMap((value) => [value, value, value, value]);
      const expected = [...each, 6, 6, 9, 9, 9, 9];
      for (const seen of await run<number[][]>(2, 'verbs')) expect(seen).toEqual(Array(5).fill(expected));
    });

    it.skipIf(isTestGpu)('a list of buffers is one group of calls, also in the step', async () => {
      const seen = [1, 2, 3].map((i) => [3 * i, 30 * i, 300 * i]);
      for (const one of await run(2, 'lists')) expect(one).toEqual({ counts: [1, 1], seen });
    });

    it('of one rank: those that leave its memory alone are part of a step, those that copy are refused', async () => {
      const run = 'done: captured step 0: 2 allReduce, 1 broadcast';
      expect(values(await withRanks(1, module, 'single'))).toEqual([
        {
          backend: 'solo',
          seen: [3, 3, 5, 5, 7, 7, 9, 9],
          runs: [run, run, run],
          text: expect.stringMatching(
            /^ERR_COLL_UNSUPPORTED allGather: .* captured: a single rank copies it by way of the host; expected/,
          ),
        },
      ]);
    });

    it.each([
      [
        'longer',
        'allReduce avg 20 × float32 in captured step 0',
        'allReduce avg 24 × float32 in captured step 0',
      ],
      ['twice', 'run of captured step 0: 1 allReduce', 'allReduce avg 20 × float32 in captured step 0'],
      ['eager', 'run of captured step 0: 1 allReduce', 'allReduce avg 20 × float32'],
      ['other step', 'run of captured step 0: 1 allReduce', 'run of captured step 1: 1 allReduce'],
    ])('ranks that differ are told so (%s)', async (how, zero, one) => {
      for (const text of await run<string>(2, 'disagree', how)) {
        expect(text).toMatch(/^ERR_COLL_MISMATCH (capturedStep|allReduce|barrier): /);
        expect(text).toContain(`rank 0 called ${zero} but rank 1 called ${one}`);
      }
    });

    it('ranks that agree are told nothing', async () => {
      expect(await run(2, 'disagree', 'same')).toEqual(['nothing', 'nothing']);
    });

    it('calls that no run of the step would repeat are refused', { timeout: 120_000 }, async () => {
      const place = "expected a collective on memory of that step's device, by the nccl backend";
      const sentences: Record<string, string> = {
        'host memory': `ERR_COLL_UNSUPPORTED allReduce: it cannot be part of a step that is being captured: its memory is on the host; ${place}`,
        barrier: 'barrier: it cannot be part of a step that is being captured: it has no memory',
        object: 'broadcast: it cannot be part of a step that is being captured: its memory is on the host',
        message: 'send: it cannot be part of a step that is being captured: messages go through the host',
        'host backend':
          'allReduce: it cannot be part of a step that is being captured: the host backend takes no part in that',
        skip: 'backward: finding parameters that no rank uses cannot be part of a step that is being captured',
        hook: 'backward: a communication hook cannot be part of a step that is being captured',
        weights: 'backward: an average with weights cannot be part of a step that is being captured',
        join: 'backward: join() cannot be part of a step that is being captured',
        noSync: 'noSync: a step whose capture averages gradients runs inside it',
        'closed model': 'a captured step: this model was closed',
        works: 'nothing',
        closed: 'ERR_COLL_CLOSED capturedStep: the group is closed',
      };
      const ranks = await run<Record<string, string>>(2, 'refused');
      for (const [name, sentence] of Object.entries(sentences)) {
        const answers = ranks.map((rank) => rank[name]!);
        expect(
          answers.some((text) => text.includes(sentence)),
          `${name}: ${answers.join(' | ')}`,
        ).toBe(true);
      }
    });

    it('a process may end while a captured step and its group exist', async () => {
      expect(await run(2, 'leave')).toEqual([0, 1]);
    });

    describe('when a rank is killed or late', () => {
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
      const start = async (timeoutMs: number, yieldsToEventLoop: boolean) => {
        const started = await startRanks(2, module, 'lateRank', {
          args: [server.port, timeoutMs, yieldsToEventLoop],
        });
        await expect
          .poll(() => control.add('ready', 0), { timeout: 60_000, interval: 5 })
          .toBeGreaterThanOrEqual(2);
        return started;
      };
      interface Late {
        readonly text: string;
        readonly tookMs: number;
        readonly sum: number;
      }

      it.each([true, false])(
        'a killed rank is named by the run that waits for it, and the device still works (the rank yields to its event loop: %s)',
        async (yieldsToEventLoop) => {
          const started = await start(20_000, yieldsToEventLoop);
          started.kill(1);
          const [survivor] = await started.results;
          expect(survivor!.error, JSON.stringify(survivor)).toBeUndefined();
          const { text, sum } = survivor!.value as Late;
          expect(text).toMatch(/^ERR_COLL_PEER_LOST capturedStep: .*lost rank 1/);
          expect(sum).toBe(3);
        },
      );

      // The time limit includes NCCL's connecting of the ranks, which takes longer on a GPU.
      const deadlineMs = isTestGpu ? 5_000 : 1_000;
      it.each([true, false])(
        'a late rank is named at the deadline (the rank yields to its event loop: %s)',
        async (yieldsToEventLoop) => {
          const started = await start(deadlineMs, yieldsToEventLoop);
          await new Promise((resolve) => setTimeout(resolve, deadlineMs + 3_000));
          started.kill(1);
          const [survivor] = await started.results;
          expect(survivor!.error, JSON.stringify(survivor)).toBeUndefined();
          const { text, tookMs, sum } = survivor!.value as Late;
          expect(text).toMatch(/^ERR_COLL_TIMEOUT capturedStep: .*rank 1/);
          expect(sum).toBe(3);
          expect(tookMs).toBeGreaterThan(deadlineMs - 100);
        },
      );
    });
  },
);
