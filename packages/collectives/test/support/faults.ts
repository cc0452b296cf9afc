// Tests of a group whose process is killed or stopped in the middle of a verb, for each verb.
import { startRanks, withDeadlines } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { CallName } from './calls.ts';
import { isAlive, useControl } from './control.ts';

const module = new URL('./host-ranks.ts', import.meta.url);
const victim = 1;

/** The calls that `npm test` interrupts: a reduction and messages. `npm run test:all` interrupts the others. */
export const quickCalls: readonly CallName[] = ['allReduce', 'batch'];

/** Declares tests that kill or stop a rank of the backend in the middle of each of these calls. */
export function faultsDuring(names: readonly CallName[], backend: 'host' | 'tcp' = 'host'): void {
  const canBlock = backend === 'host';
  describe.each(names)(`on ${backend}, in the middle of %s`, (name) => {
    const control = useControl();

    /** Starts three ranks and waits until they are at work. */
    async function startWork(sync: boolean, timeoutMs: number) {
      const ranks = await startRanks(3, module, 'callForever', {
        args: [control.port, name, sync, timeoutMs],
        env: { RINGWISE_BACKEND: backend },
      });
      await control.allReady(3, ranks);
      return ranks;
    }

    it.each(canBlock ? [false, true] : [false])(
      'a killed rank is named by all others long before the deadline (sync: %s)',
      async (sync) => {
        const ranks = await startWork(sync, 120_000);
        ranks.kill(victim);
        const results = await ranks.results;
        expect(results[victim]!.signal).toBe('SIGKILL');
        for (const survivor of results.filter((_, rank) => rank !== victim)) {
          expect(survivor.error).toMatchObject({
            code: 'ERR_COLL_PEER_LOST',
            peers: [victim],
            secondary: true,
          });
        }
      },
    );

    it('a stopped rank is named at the deadline, and learns of it when it goes on', async () => {
      await withDeadlines([700, 15_000], async (deadlineMs) => {
        await control.reset();
        const ranks = await startWork(canBlock, deadlineMs);
        ranks.kill(victim, 'SIGSTOP');
        const others = ranks.pids.filter((_, rank) => rank !== victim);
        await expect.poll(() => others.some(isAlive), { interval: 10 }).toBe(false);
        ranks.kill(victim, 'SIGCONT');
        const results = await ranks.results;
        for (const { error } of results)
          expect(error).toMatchObject({ code: 'ERR_COLL_TIMEOUT', peers: [victim] });
      });
    });
  });
}
