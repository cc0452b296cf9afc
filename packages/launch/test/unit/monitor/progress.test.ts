import { describe, expect, it } from 'vitest';
import { parseReport } from '../../../src/monitor/events.ts';
import { Feed } from '../../../src/monitor/feed.ts';
import { JobView } from '../../../src/monitor/job-view.ts';
import { paceOf } from '../../../src/monitor/pace.ts';
import { Progress } from '../../../src/monitor/progress.ts';

const nothing = { epoch: undefined, epochs: undefined, steps: undefined };

describe('the progress of a job', () => {
  it('follows from the number of steps', () => {
    const progress = new Progress();
    progress.add({ ...nothing, step: 0, steps: 100 }, 1_000);
    expect([progress.done, progress.etaMs(1_000)]).toEqual([0.01, null]);
    for (let step = 1; step < 50; step++) progress.add({ ...nothing, step }, 1_000 + 100 * step);
    expect(progress.done).toBe(0.5);
    expect(progress.etaMs(5_900)).toBeCloseTo(5_000);
    expect(progress.etaMs(6_900)).toBeCloseTo(4_000);
    expect(progress.etaMs(60_000)).toBe(0);
  });

  it('follows from epochs as soon as one whole epoch is known', () => {
    const progress = new Progress();
    const add = (step: number, epoch: number) =>
      progress.add({ step, epoch, epochs: 4, steps: undefined }, 10 * step);
    for (let step = 0; step < 25; step++) add(step, 0);
    expect([progress.epoch, progress.epochs, progress.done]).toEqual([0, 4, null]);
    for (let step = 25; step < 50; step++) add(step, 1);
    expect(progress.done).toBe(0.5);
    expect(progress.etaMs(490)).toBeCloseTo(500);
  });

  it('takes an epoch with a fraction as it is', () => {
    const progress = new Progress();
    progress.add({ step: 0, epoch: 0.5, epochs: 2, steps: undefined }, 0);
    progress.add({ step: 1, epoch: 1.5, epochs: 2, steps: undefined }, 1_000);
    expect([progress.done, progress.etaMs(1_000)]).toEqual([0.75, 500]);
  });

  it('ignores what cannot be, and ranks that are behind', () => {
    const progress = new Progress();
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, -1, 0]) {
      progress.add({ step: 1, epoch: bad === 0 ? undefined : bad, epochs: bad, steps: bad }, 0);
    }
    expect([progress.epoch, progress.epochs, progress.steps, progress.done]).toEqual([
      null,
      null,
      null,
      null,
    ]);
    progress.add({ ...nothing, step: 9, epoch: 2, steps: 10 }, 1);
    progress.add({ ...nothing, step: 3, epoch: 1, steps: 10 }, 2);
    expect([progress.epoch, progress.done]).toEqual([2, 1]);
    progress.add({ ...nothing, step: 30, steps: 10 }, 3);
    expect(progress.done).toBe(1);
  });

  it('begins again with a round of restarted ranks', () => {
    const view = new JobView(0);
    const feed = new Feed(view, '');
    const report = (clockMs: number, step: number) =>
      view.handle({ kind: 'report', rank: 0, report: { clockMs, step, values: { steps: 10, epoch: 0 } } });
    view.startRound(1, 1, 0, null);
    view.handle({ kind: 'started', rank: 0, host: 'a', pid: 1 });
    for (let step = 0; step < 8; step++) report(100 * step, step);
    expect(feed.whole(700).job).toMatchObject({ done: 0.8, steps: 10, epoch: 0 });
    expect(feed.whole(700).job.etaMs).toBeCloseTo(200);
    view.startRound(1, 1, 1, 'restart 1 of 1');
    view.handle({ kind: 'started', rank: 0, host: 'a', pid: 2 });
    expect(feed.whole(1_000).job).toMatchObject({ done: null, etaMs: null, epoch: null });
    report(2_000, 4);
    report(2_100, 5);
    expect(feed.whole(2_100).job.done).toBe(0.6);
    expect(feed.whole(2_100).job.etaMs).toBeCloseTo(400);
    view.finish(0, null, 2_200);
    expect(feed.whole(2_200).job.etaMs).toBe(null);
  });

  it('makes no curves of what it is told', () => {
    const view = new JobView(0);
    view.startRound(1, 1, 0, null);
    view.handle({ kind: 'started', rank: 0, host: 'a', pid: 1 });
    const line = '{"step":3,"clockMs":5,"values":{"epoch":1,"epochs":"NaN","steps":9,"loss":1}}';
    view.handle({ kind: 'report', rank: 0, report: parseReport(line)! });
    expect([...view.curves.keys()]).toEqual(['loss']);
    expect(view.progress).toMatchObject({ epoch: 1, epochs: null, steps: 9 });
  });
});

describe('the pace of a rank', () => {
  const span = (step: number, atMs: number, stepMs: number | null, exposedMs?: number) => ({
    rank: 0,
    step,
    atMs,
    stepMs,
    timing: exposedMs === undefined ? null : { agoMs: 0, backwardMs: 0, exposedMs, buckets: [] },
  });

  it('is the mean of its last steps', () => {
    const spans = Array.from({ length: 60 }, (_, step) =>
      span(step, step < 30 ? step : 30 + 10 * (step - 30), 1, 4),
    );
    expect(paceOf(spans)).toEqual({ stepMs: 10, waitMs: 4 });
  });

  it('is known from two reports on, also of a program that reports each tenth step', () => {
    expect(paceOf([])).toEqual({ stepMs: null, waitMs: null });
    expect(paceOf([span(0, 5, null)])).toEqual({ stepMs: null, waitMs: null });
    expect(paceOf([span(0, 5, null), span(10, 105, 100)])).toEqual({ stepMs: 10, waitMs: null });
  });

  it('does not reach back behind a restart', () => {
    expect(paceOf([span(0, 0, null), span(1, 1, 1), span(0, 900, null), span(1, 950, 50)]).stepMs).toBe(50);
  });

  it('counts a second report of a step as none', () => {
    const view = new JobView(0);
    view.startRound(1, 1, 0, null);
    view.handle({ kind: 'started', rank: 0, host: 'a', pid: 1 });
    for (const [step, clockMs] of [
      [0, 100],
      [0, 101],
      [1, 200],
    ] as const) {
      view.handle({ kind: 'report', rank: 0, report: { clockMs, step, values: {} } });
    }
    expect(view.ranks.get(0)!.spans.items.map(({ step, stepMs }) => [step, stepMs])).toEqual([
      [0, null],
      [1, 100],
    ]);
  });
});
