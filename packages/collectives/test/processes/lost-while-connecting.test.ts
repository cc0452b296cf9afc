// A rank ends while the others connect with it. They must be told soon, not at their deadline, which is five minutes.
import { startRanks, values } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';

const module = new URL('../support/lost-while-connecting.ts', import.meta.url);

describe.each([
  ['host', /nothing listens at its address any more/],
  // The others may have connected with it before it ended.
  ['tcp', /it cannot be reached|it ended, or refused the proof/],
])('on %s', (backend, why) => {
  it('a rank that ends before it connects is named', async () => {
    const ranks = await startRanks(3, module, 'endsBeforeItConnects', { args: [backend] });
    const results = await ranks.results;
    const told = values(results.slice(0, 2)) as { code: string; peers: number[]; message: string }[];
    for (const { code, message } of told) expect([code, message]).toEqual(['ERR_COLL_PEER_LOST', message]);
    // The first rank that notices it ends its connections, and another one may notice that before.
    const first = told.find(({ message }) => why.test(message));
    expect(first?.peers).toEqual([2]);
  });

  it('a further loss while survivors connect is named, and they can go on without', async () => {
    const ranks = await startRanks(4, module, 'endsWhileItShrinks', { args: [backend] });
    const results = await ranks.results;
    for (const result of values([results[0]!, results[3]!]) as object[])
      expect(result).toMatchObject({
        told: { code: 'ERR_COLL_PEER_LOST', peers: [1, 2] },
        ranks: [0, 3],
      });
  });
});
