// The state of a job of 64 ranks, made by the launcher's own code from events as ranks send them.

import { Feed, type Message } from '../../src/monitor/feed.ts';
import { JobView } from '../../src/monitor/job-view.ts';

export const slowRank = 17;
export const lateRank = 40;

const stepMs = 100;

export interface ManyRanks {
  readonly view: JobView;
  readonly feed: Feed;
  /** The whole state, as a page gets it. */
  readonly message: Message;
  /** Time of the message, in milliseconds. */
  readonly nowMs: number;
  /** Lets a rank report a step that took so long without waiting. */
  readonly report: (rank: number, step: number, ownMs: number) => void;
}

/** Makes a job in which rank 17 lets the others wait, and rank 40 has not reported its last two steps. */
export function manyRanks(count = 64, steps = 120): ManyRanks {
  const view = new JobView(0);
  const feed = new Feed(view, 'train.ts --wide');
  view.startRound(count, count / 8, 0, null);
  for (let rank = 0; rank < count; rank++) {
    view.handle({ kind: 'started', rank, host: `node-${rank >> 3}`, pid: 4000 + rank });
    view.handle({ kind: 'memory', rank, bytes: (700 + (rank % 5)) * 2 ** 20 });
  }
  const report = (rank: number, step: number, ownMs: number) => {
    const backwardMs = 0.6 * ownMs;
    const exposedMs = stepMs - ownMs;
    const timing = { agoMs: backwardMs + exposedMs, backwardMs, exposedMs, buckets: [[5, 20] as const] };
    const values = { loss: 3 * Math.exp(-step / 90), samples: 16, steps: 2 * steps };
    view.handle({ kind: 'report', rank, report: { clockMs: stepMs * (step + 1), step, values, timing } });
  };
  for (let step = 0; step < steps; step++) {
    for (let rank = 0; rank < count; rank++) {
      if (rank === lateRank && step >= steps - 2) continue;
      report(rank, step, 40 + ((7 * step + 13 * rank) % 4) * 0.5 + (rank === slowRank ? 38 : 0));
    }
  }
  const nowMs = stepMs * steps + 2_000;
  return { view, feed, message: feed.whole(nowMs), nowMs, report };
}
