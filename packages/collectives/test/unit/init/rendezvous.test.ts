import { MemoryStore, PrefixStore } from '@ringwise/store';
import { describe, expect, it } from 'vitest';
import { exchange } from '../../../src/index.ts';
import { meet } from '../../../src/init/exchange.ts';

const bytes = (text: string) => Buffer.from(text);
const settled = (promises: Promise<unknown>[]) => Promise.allSettled(promises);

describe('exchange', () => {
  it('gives every rank all payloads in rank order', async () => {
    const store = new MemoryStore();
    const all = [2, 0, 1].map((rank) => exchange(store, rank, 3, bytes(`from ${rank}`), 60_000));
    for (const payloads of await Promise.all(all)) {
      expect(payloads.map(String)).toEqual(
        ['from 0', 'from 1', 'from 2'].map((text) => String(new Uint8Array(bytes(text)))),
      );
    }
  });

  it('can be repeated under another prefix', async () => {
    const store = new MemoryStore();
    for (const round of ['a', 'b']) {
      const own = new PrefixStore(round, store);
      const all = await Promise.all(
        [0, 1].map((rank) => exchange(own, rank, 2, bytes(`${round}${rank}`), 60_000)),
      );
      expect(Buffer.from(all[0]?.[1] as Uint8Array).toString()).toBe(`${round}1`);
    }
  });

  it('refuses a rank that comes twice, and leaves the first one alone', async () => {
    const store = new MemoryStore();
    const first = exchange(store, 0, 2, bytes('first'), 60_000);
    await expect(exchange(store, 0, 2, bytes('second'), 60_000)).rejects.toMatchObject({
      code: 'ERR_COLL_INIT',
      what: 'rank 0 has arrived already; expected every rank once',
    });
    await exchange(store, 1, 2, bytes('other'), 60_000);
    await first;
  });

  it('tells a rank that comes after the others have given up', async () => {
    const store = new MemoryStore();
    const early = await settled([0, 1].map((rank) => exchange(store, rank, 3, bytes(`${rank}`), 50)));
    for (const { reason } of early as PromiseRejectedResult[]) expect(reason.peers).toEqual([2]);
    await expect(exchange(store, 2, 3, bytes('2'), 60_000)).rejects.toMatchObject({
      what: 'rank 2 arrived after the others had given up waiting',
    });
  });

  it('agrees when a rank arrives between two deadlines: all have met, or none', async () => {
    const store = new MemoryStore();
    const patient = exchange(store, 1, 3, bytes('1'), 1_000);
    const [hasty] = await settled([exchange(store, 0, 3, bytes('0'), 30)]);
    const late = exchange(store, 2, 3, bytes('2'), 60_000);
    const outcomes = [hasty, ...(await settled([patient, late]))].map((outcome) => outcome?.status);
    expect(outcomes).toEqual(['rejected', 'rejected', 'rejected']);
  });

  it('passes on the error of a store that fails', async () => {
    const store = new MemoryStore();
    const pending = exchange(store, 0, 2, bytes('0'), 60_000);
    await store.close();
    await expect(pending).rejects.toMatchObject({ code: 'ERR_STORE_CLOSED' });
  });
});

it('refuses a rank that comes twice even if its settings differ, and leaves the first one alone', async () => {
  const store = new MemoryStore();
  const at = (rank: number, size: number) =>
    meet(
      { store, rank, size, timeoutMs: 60_000, settings: { 'world size': `${size}` } },
      bytes(`${rank} of ${size}`),
    );
  const first = at(1, 2);
  await expect(at(1, 3)).rejects.toMatchObject({
    what: 'rank 1 has arrived already; expected every rank once',
  });
  await Promise.all([first, at(0, 2)]);
});
