import { describe, expect, it } from 'vitest';
import { loopback } from '../../../src/backends/loopback.ts';
import { solo } from '../../../src/backends/solo.ts';
import { aborted, wrongCount } from '../../../src/errors.ts';
import { Admission } from '../../../src/group/admission.ts';
import type { StepCapture } from '../../../src/group/captured.ts';
import { Runner } from '../../../src/group/runner.ts';
import { GroupState } from '../../../src/group/state.ts';
import type { EarlierStep } from '../../../src/group/steps.ts';
import { type Backend, type BufferCarrier, bufferSymbol } from '../../../src/index.ts';
import { allReduce } from '../../../src/verbs/all-reduce.ts';
import { barrier } from '../../../src/verbs/barrier.ts';
import { recv, send } from '../../../src/verbs/messages.ts';
import { monitoredBarrier } from '../../../src/verbs/monitored-barrier.ts';

function runnerOn(backend: Backend) {
  const state = new GroupState(backend, 'world');
  const admission = new Admission(backend, state, 1000);
  const runner = new Runner(backend, state, admission);
  const recorded = () => runner.flightRecord().map(({ verb, seq, state }) => `${verb} ${seq} ${state}`);
  return { backend, state, admission, runner, recorded };
}
const runners = () => loopback(2).map(runnerOn) as [ReturnType<typeof runnerOn>, ReturnType<typeof runnerOn>];

/** Returns a call of two barriers, one after the other. */
function twoBarriers(admission: Admission, finish = () => 'both'): EarlierStep<string> {
  const first = barrier(admission, {});
  const second = { ...first, seq: admission.reserve() };
  return { operations: [first], more: () => ({ operations: [second], finish }) };
}

describe('a call of one operation', () => {
  it('starts at once, and is recorded until it ends', async () => {
    const [a, b] = runners();
    const [x, y] = [Float32Array.of(1), Float32Array.of(2)];
    const work = a.runner.start('allReduce', allReduce(a.admission, x, {}));
    expect([work.verb, work.seq, work.done]).toEqual(['allReduce', 0, false]);
    expect(a.recorded()).toEqual(['allReduce 0 running']);
    await b.runner.start('allReduce', allReduce(b.admission, y, {}));
    expect([await work, x[0], y[0]]).toEqual([undefined, 3, 3]);
    expect(a.recorded()).toEqual(['allReduce 0 done']);
  });

  it('gives the sender of a receive', async () => {
    const [a, b] = runners();
    const work = a.runner.start<number>('recv', recv(a.admission, new Float32Array(1), 1, {}));
    await b.runner.start('send', send(b.admission, Float32Array.of(1), 0, {}));
    expect(await work).toBe(1);
  });

  it('runs on this thread', () => {
    const { runner, admission, recorded } = runnerOn(solo());
    const x = Float32Array.of(3);
    runner.run('allReduce', allReduce(admission, x, { op: 'premulSum', factor: 2 }));
    expect([x[0], recorded()]).toEqual([6, ['allReduce 0 done']]);
  });
});

describe('a call of steps', () => {
  it('is followed by the collectives that are called after it', async () => {
    const { runner, admission, recorded } = runnerOn(solo());
    const steps = runner.start('two', twoBarriers(admission));
    const later = runner.start('allReduce', allReduce(admission, new Float32Array(1), {}));
    expect([steps.seq, later.seq, recorded()]).toEqual([0, 2, ['barrier 0 running']]);
    expect([await steps, await later]).toEqual(['both', undefined]);
    expect(recorded()).toEqual(['barrier 0 done', 'barrier 1 done', 'allReduce 2 done']);
  });

  it('goes before a call that blocks', () => {
    const { runner, admission, recorded } = runnerOn(solo());
    const steps = runner.start('two', twoBarriers(admission));
    runner.run('barrier', barrier(admission, {}));
    expect(recorded().map((entry) => entry.slice(0, 9))).toEqual(['barrier 0', 'barrier 1', 'barrier 2']);
    expect(steps.fence()).toBe('both');
    expect(runner.run('two', twoBarriers(admission))).toBe('both');
  });
});

describe('an error', () => {
  it('of a buffer that the program has transferred before the turn of its call fails the group', async () => {
    const [a, b] = runners();
    void a.runner.start('two', twoBarriers(a.admission));
    const x = new Float32Array(4);
    const later = a.runner.start('allReduce', allReduce(a.admission, x, {}));
    structuredClone(x, { transfer: [x.buffer] });
    void b.runner.start('two', twoBarriers(b.admission));
    const work = b.runner.start('allReduce', allReduce(b.admission, new Float32Array(4), {}));
    const seen = { code: 'ERR_COLL_SYSTEM', verb: 'allReduce', seq: 2, peers: [0] };
    await expect(later).rejects.toMatchObject(seen);
    await expect(work).rejects.toMatchObject(seen);
    expect(a.state.failure?.what).toBe('rank 0 has detached a buffer of the call before its turn came');
  });

  it('of an operation names the call, and fails the group', async () => {
    const [{ runner, admission, state, recorded }] = runners();
    const work = runner.start('monitoredBarrier', monitoredBarrier(admission, { timeoutMs: 20 }));
    await expect(work).rejects.toMatchObject({ code: 'ERR_COLL_TIMEOUT', verb: 'monitoredBarrier', seq: 0 });
    expect(state.failure?.verb).toBe('monitoredBarrier');
    expect(state.failure?.what).toMatch(/^ranks? \d+(, \d+)* did not call monitoredBarrier\(\) within 20 ms/);
    expect(recorded()).toEqual(['allToAll 0 failed']);
  });

  it('that the backend throws fails the group', async () => {
    const fail = () => {
      throw new RangeError('out of range');
    };
    for (const method of ['start', 'run'] as const) {
      const { runner, admission, state, recorded } = runnerOn({ ...solo(), start: fail, run: fail });
      await expect((async () => runner[method]('barrier', barrier(admission, {})))()).rejects.toBe(
        state.failure,
      );
      expect([state.failure?.code, recorded()]).toEqual(['ERR_COLL_SYSTEM', ['barrier 0 failed']]);
    }
  });

  it('that the backend throws fails the group on all ranks', async () => {
    const [first, second] = loopback(2) as [Backend, Backend];
    const fail = () => {
      throw new RangeError('out of range');
    };
    const [a, b] = [runnerOn({ ...first, start: fail }), runnerOn(second)];
    const waiting = b.runner.start('barrier', barrier(b.admission, {}));
    const failed = a.runner.start('barrier', barrier(a.admission, {}));
    const told = { code: 'ERR_COLL_SYSTEM', what: 'rank 0 failed with RangeError: out of range', peers: [0] };
    await expect(failed).rejects.toMatchObject({ ...told, secondary: false });
    await expect(waiting).rejects.toMatchObject({ ...told, secondary: true });
  });

  it('of the last step fails the group, unless its arguments are wrong', async () => {
    const { runner, admission, state } = runnerOn(solo());
    const wrong = state.error(wrongCount('two', 'output', 1, 2));
    const refuse = (error: unknown) => () => {
      throw error;
    };
    await expect(runner.start('two', twoBarriers(admission, refuse(wrong)))).rejects.toBe(wrong);
    expect(state.failure).toBeNull();
    const work = runner.start('two', twoBarriers(admission, refuse(new Error('disk full'))));
    await expect(work).rejects.toMatchObject({ code: 'ERR_COLL_SYSTEM' });
    await expect(work).rejects.toBe(state.failure);
  });

  it('of abort() ends what is pending on all ranks', async () => {
    const [a, b] = runners();
    const works = [a, b].map(({ runner, admission }) => runner.start('two', twoBarriers(admission)));
    const cause = a.state.error(aborted(0, 'NaN'));
    a.runner.abort(cause);
    await expect(works[0]).rejects.toBe(cause);
    await expect(works[1]).rejects.toMatchObject({ code: 'ERR_COLL_ABORTED' });
    expect(a.state.failure).toBe(cause);
  });
});

describe('leaving', () => {
  it('waits for the steps of pending calls', async () => {
    const states: string[][] = [];
    const { runner, admission, recorded } = runnerOn({
      ...solo(),
      close: async () => void states.push(recorded()),
    });
    void runner.start('two', twoBarriers(admission));
    await runner.leave();
    expect(states).toEqual([['barrier 0 done', 'barrier 1 done']]);
  });

  it('rejects with an error of the backend, and fails the group', async () => {
    const { runner, state } = runnerOn({ ...solo(), close: () => Promise.reject(new Error('stuck')) });
    await expect(runner.leave()).rejects.toThrow('stuck');
    expect(state.failure?.code).toBe('ERR_COLL_SYSTEM');
  });
});

describe('a captured step', () => {
  it('is numbered at each launch, behind the calls before it', async () => {
    const { runner, admission, recorded } = runnerOn(solo());
    const slots = globalThis as { [key: symbol]: { now: StepCapture | null } | undefined };
    const slot = slots[Symbol.for('ringwise.capture')]!;
    let end: (isAbandoned: boolean) => void = () => {};
    let launch: (stream: bigint) => () => void = () => () => {};
    let isDropped = false;
    slot.now = {
      stream: 7n,
      onEnd: (ended) => (end = ended),
      onRun: (before) => (launch = before),
      drop: () => (isDropped = true),
    };
    const memory: BufferCarrier = {
      [bufferSymbol]: () => ({
        ...{ dtype: 'float32', count: 1, device: { kind: 'cuda', index: 0 }, host: null },
        handle: { address: 16n, owner: {}, stream: 7n },
      }),
    };
    try {
      runner.start('allReduce', allReduce(admission, memory, {})).fence();
      end(false);
    } finally {
      slot.now = null;
    }
    const steps = runner.start('two', twoBarriers(admission));
    launch(7n)();
    launch(7n)();
    await steps;
    expect(recorded().map((entry) => entry.replace(/ \w+$/, ''))).toEqual([
      ...['allReduce 0', 'barrier 1', 'barrier 2', 'capturedStep 3', 'capturedStep 4'],
    ]);
    await runner.leave();
    expect(isDropped).toBe(true);
  });
});
