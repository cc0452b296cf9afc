import { describe, expect, it } from 'vitest';
import { Curve } from '../../src/monitor/curve.ts';
import { parseReport } from '../../src/monitor/events.ts';
import { Feed } from '../../src/monitor/feed.ts';
import { prometheusText } from '../../src/monitor/files/prometheus.ts';
import { JobView } from '../../src/monitor/job-view.ts';
import { viewText } from '../../src/monitor/membership.ts';
import { Meter } from '../../src/monitor/meter.ts';
import { Ring } from '../../src/monitor/ring.ts';
import { statusText } from '../../src/monitor/status-line.ts';
import { parseView, type ViewFacts } from '../../src/rendezvous/elastic/view-facts.ts';

describe('a curve', () => {
  it('has the mean over ranks of each step, in order of steps', () => {
    const curve = new Curve(1);
    for (const [step, value] of [
      [0, 1],
      [1, 5],
      [0, 3],
      [2, 7],
      [1, 6],
    ] as const)
      curve.add(step, value);
    expect(curve.read()).toEqual({ from: 0, x: [0, 1, 2], y: [2, 5.5, 7], bad: [] });
    expect(curve.last).toBe(7);
  });

  it('stays small however long it gets, and keeps its mean', () => {
    const curve = new Curve(1);
    const count = 100_000;
    for (let step = 0; step < count; step++) curve.add(step, step);
    const { x, y } = curve.read();
    expect(x.length).toBeGreaterThan(500);
    expect(x.length).toBeLessThanOrEqual(2_000);
    expect(x[0]).toBe(0);
    for (let i = 1; i < x.length; i++) expect(x[i]! - x[i - 1]!).toBe(x[1]! - x[0]!);
    expect(y[0]).toBe((x[1]! - 1) / 2);
  });

  it('stays small when reports are far apart', () => {
    const curve = new Curve(1);
    for (let step = 0; step < 1e9; step += 1e5) curve.add(step, 1);
    expect(curve.read().x.length).toBeLessThanOrEqual(2_000);
    expect(new Set(curve.read().y)).toEqual(new Set([1]));
  });

  it('is taken up again where training resumes', () => {
    const curve = new Curve(1);
    for (let step = 0; step < 10; step++) curve.add(step, 1);
    curve.takeChanges();
    curve.resume();
    curve.add(4, 2);
    curve.add(5, 2);
    expect(curve.read().x).toEqual([0, 1, 2, 3, 4, 5]);
    expect(curve.takeChanges()).toEqual({ from: 4, x: [4, 5], y: [2, 2], bad: [] });
    expect(curve.takeChanges()).toBe(null);
  });

  it('has a gap where a value is not a number', () => {
    const curve = new Curve(1);
    curve.add(0, 1);
    curve.add(1, Number.NaN);
    expect(curve.read().y).toEqual([1, null]);
  });
});

it('a ring keeps its last items', () => {
  const ring = new Ring<number>(3);
  expect(ring.items).toEqual([]);
  for (let i = 0; i < 5; i++) ring.push(i);
  expect(ring.items).toEqual([2, 3, 4]);
  ring.clear();
  ring.push(9);
  expect(ring.items).toEqual([9]);
});

it('a meter tells samples per second of the last seconds', () => {
  const meter = new Meter();
  meter.add(0, 1_000_000);
  expect(meter.perSecond).toBe(null);
  for (let ms = 100; ms <= 20_000; ms += 100) meter.add(ms, 10);
  expect(meter.perSecond).toBeCloseTo(100, 6);
  meter.add(80_000, 6_000);
  expect(meter.perSecond).toBeCloseTo(100, 6);
});

describe('parseReport', () => {
  it('takes what a rank reports, and numbers that JSON has not', () => {
    const line = '{"clockMs":5,"step":3,"values":{"loss":"NaN","lr":0.1}}';
    expect(parseReport(line)).toEqual({ clockMs: 5, step: 3, values: { loss: 'NaN', lr: 0.1 } });
  });

  it('leaves out malformed reports, and values beyond the limits', () => {
    expect(parseReport('')).toBe(null);
    expect(parseReport('null')).toBe(null);
    expect(parseReport('{"step":"3","values":{}}')).toBe(null);
    const values = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`v${i}`, i]));
    expect(Object.keys(parseReport(JSON.stringify({ step: 0, clockMs: 0, values }))!.values)).toHaveLength(
      32,
    );
    const strange = JSON.stringify({
      step: 1,
      clockMs: 0,
      values: { a: 'x', b: {}, c: 1 },
      timing: { agoMs: 1 },
    });
    expect(parseReport(strange)).toEqual({ clockMs: 0, step: 1, values: { c: 1 } });
    expect(parseReport(`{"step":1,"values":{"${'x'.repeat(100_000)}":1}}`)).toBe(null);
  });
});

/** Returns a job of two ranks, started at clock 1000 ms, whose ranks have reported steps 0 and 1. */
function running(): JobView {
  const view = new JobView(1_000);
  view.startRound(2, 1, 0, null);
  for (const rank of [0, 1]) view.handle({ kind: 'started', rank, host: 'a', pid: 10 + rank });
  for (const rank of [0, 1]) {
    for (const step of [0, 1]) {
      const values = { loss: 2 - step + rank, samples: 32, 'top "1"': 0.5 };
      view.handle({ kind: 'report', rank, report: { clockMs: 1_100 + 100 * step, step, values } });
    }
  }
  return view;
}

describe('a job', () => {
  it('sums samples per second over ranks, and takes the mean of their losses', () => {
    const view = running();
    expect(view.step).toBe(1);
    expect(view.samplesPerSecond).toBeCloseTo(640, 6);
    expect(view.curves.get('loss')!.read().y).toEqual([2.5, 1.5]);
    expect(view.curves.has('samples')).toBe(false);
  });

  it('forgets ranks that a smaller world has not, and counts restarts', () => {
    const view = running();
    view.handle({ kind: 'ended', rank: 0, exitCode: 3, signal: null, hasFailed: true });
    view.handle({ kind: 'ended', rank: 1, exitCode: null, signal: 'SIGTERM', hasFailed: false });
    expect([...view.ranks.values()].map(({ state, ending }) => [state, ending])).toEqual([
      ['failed', 'exit code 3'],
      ['stopped', 'SIGTERM'],
    ]);
    view.startRound(1, 1, 1, 'restart 1 of 3');
    view.handle({ kind: 'started', rank: 0, host: 'a', pid: 20 });
    expect([...view.ranks.keys()]).toEqual([0]);
    expect(view.ranks.get(0)).toMatchObject({ pid: 20, restarts: 1, state: 'running', step: null });
  });

  it('keeps a bounded number of names, lines and steps', () => {
    const view = running();
    for (let i = 0; i < 5_000; i++) {
      view.handle({ kind: 'line', rank: 0, text: `\x1b[31m${i} ${'x'.repeat(10_000)}` });
      view.handle({
        kind: 'report',
        rank: 0,
        report: { clockMs: 2_000 + i, step: i, values: { [`v${i}`]: 1 } },
      });
    }
    const { lines, spans } = view.ranks.get(0)!;
    expect(view.curves.size).toBe(16);
    expect(lines.items).toHaveLength(200);
    expect(lines.items.at(-1)!.text).toBe(`4999 ${'x'.repeat(995)}`);
    expect(spans.items).toHaveLength(100);
    expect(view.ranks.get(0)!.values.size).toBe(16);
  });
});

describe('the feed', () => {
  it('tells everything first, and then only what is new', () => {
    const view = running();
    const feed = new Feed(view, 'train.ts');
    feed.changes(1_300);
    view.handle({ kind: 'line', rank: 1, text: 'hello' });
    view.handle({ kind: 'report', rank: 0, report: { clockMs: 1_300, step: 2, values: { loss: 1 } } });
    const whole = feed.whole(1_400);
    expect(whole).toMatchObject({ isWhole: true, lines: [{ rank: 1, text: 'hello' }] });
    expect(whole.curves.loss).toEqual({ from: 0, x: [0, 1, 2], y: [2.5, 1.5, 1], bad: [] });
    expect(whole.spans).toHaveLength(5);
    expect(whole.ranks).toMatchObject([
      { rank: 0, behind: 0, silentMs: 100 },
      { rank: 1, behind: 1, silentMs: 200 },
    ]);
    const changes = feed.changes(1_400);
    expect(changes.curves).toEqual({ loss: { from: 2, x: [2], y: [1], bad: [] } });
    expect([changes.lines.length, changes.spans.length]).toEqual([1, 1]);
    expect(feed.changes(1_400)).toMatchObject({ curves: {}, lines: [], spans: [] });
  });
});

it('Prometheus gets the state of each rank, with labels quoted as it wants them', () => {
  const text = prometheusText(running());
  expect(text).toContain('# TYPE ringwise_world_size gauge\nringwise_world_size 2\n');
  expect(text).toContain('ringwise_rank_step{rank="1",host="a"} 1\n');
  expect(text).toContain('ringwise_rank_samples_total{rank="0",host="a"} 64\n');
  expect(text).toContain('ringwise_reported{rank="0",host="a",name="top \\"1\\""} 0.5\n');
  for (const line of text.trimEnd().split('\n')) {
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{.*\})? [-+.\deE]+)$/);
  }
});

describe('the membership of an elastic job', () => {
  const view = (number: number, members: string[], more: Partial<ViewFacts> = {}): ViewFacts => ({
    ...{
      number,
      members,
      joined: [],
      lost: [],
      left: [],
      ...{ epoch: 0, standbys: [], canMove: false },
      finalSteps: 10 * number,
      ended: null,
    },
    ...more,
  });

  it('is shown with its changes, of which the first view has none', () => {
    const job = new JobView(0);
    job.resize(3, 2);
    const all = ['0.0', '1.0', '2.0'];
    job.showView(view(0, all, { joined: all }), 1_000);
    expect(statusText(job, 1_000)).toBe('ringwise  0:01  3 ranks on 2 hosts  view 0');
    job.showView(view(1, ['0.0', '2.0'], { lost: ['1.0'] }), 2_000);
    expect(statusText(job, 2_000)).toBe('ringwise  0:02  2 of 3 ranks on 2 hosts  view 1  1 lost');
    job.showView(view(2, ['0.0', '1.1'], { joined: ['1.1'], left: ['2.0'] }), 3_000);
    expect(statusText(job, 3_000)).toBe(
      'ringwise  0:03  2 of 3 ranks on 2 hosts  view 2  1 lost  1 left  1 joined',
    );
    const { views, losses, leaves, joins } = new Feed(job, 'train.ts').whole(3_000).job;
    expect({ losses, leaves, joins }).toEqual({ losses: 1, leaves: 1, joins: 1 });
    expect(views.at(-1)).toEqual({
      number: 2,
      atMs: 3_000,
      ranks: 2,
      step: 20,
      joined: [1],
      lost: [],
      left: [2],
    });
  });

  it('is told in a sentence', () => {
    expect(viewText(view(0, ['0.0'], { joined: ['0.0'] }))).toBeNull();
    expect(viewText(view(3, ['0.0', '1.1'], { joined: ['1.1'], lost: ['2.0', '3.4'] }))).toBe(
      'view 3, after step 30: 2 ranks, lost ranks 2, 3, rank 1 joined.',
    );
  });
});

describe('parseView', () => {
  it('reads what @ringwise/elastic writes, and nothing else', () => {
    const members = [{ id: '0.0', slot: 0, host: 'a', standby: 'a:1' }];
    const text = {
      number: 1,
      epoch: 2,
      members,
      joined: [],
      lost: ['1.0'],
      left: [],
      finalSteps: 3,
      decision: 'redo',
      ended: null,
    };
    expect(parseView(JSON.stringify(text))).toEqual({
      number: 1,
      epoch: 2,
      members: ['0.0'],
      joined: [],
      lost: ['1.0'],
      left: [],
      standbys: ['a:1'],
      canMove: false,
      finalSteps: 3,
      ended: null,
    });
    const three = ['a:1', 'b:1', 'c:1'].map((standby, slot) => ({ ...members[0], id: `${slot}.0`, standby }));
    const wide = parseView(JSON.stringify({ ...text, members: three }));
    expect(wide).toMatchObject({ standbys: ['a:1', 'b:1', 'c:1'], canMove: true });
    const wrongs = [
      { number: -1 },
      { epoch: 'x' },
      { members: {} },
      { members: [3] },
      { lost: [1] },
      { ended: 3 },
    ];
    for (const wrong of wrongs) {
      expect(parseView(JSON.stringify({ ...text, ...wrong }))).toBeNull();
    }
    for (const wrong of ['', 'null', '[]', '{']) expect(parseView(wrong)).toBeNull();
  });
});
