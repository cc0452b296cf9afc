// Tests the sentence for ranks that did not come to a monitoredBarrier.
import { expect, it } from 'vitest';
import { textOfMissingRanks } from '../../../src/verbs/monitored-barrier.ts';

const late = { code: 'ERR_COLL_TIMEOUT', verb: 'allToAll', seq: 4 } as const;

it.each([
  [
    'rank 1 never entered allToAll #4 (2 × uint8, monitoredBarrier at a.mjs:3) within 2000 ms; it has not started any operation',
    [1],
    'rank 1 did not call monitoredBarrier() within 2000 ms; it has not started any operation',
  ],
  [
    'no answer from ranks 1, 3 within 50 ms',
    [1, 3],
    'ranks 1, 3 did not call monitoredBarrier() within 50 ms',
  ],
])('%s', (what, peers, expected) => {
  expect(textOfMissingRanks({ ...late, peers, what })).toBe(expected);
});

it('leaves other failures as they are', () => {
  const what = 'lost rank 1 (its connection closed)';
  expect(textOfMissingRanks({ ...late, code: 'ERR_COLL_PEER_LOST', peers: [1], what })).toBe(what);
});
