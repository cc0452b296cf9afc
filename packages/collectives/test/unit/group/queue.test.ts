import { describe, expect, it } from 'vitest';
import { loopback } from '../../../src/backends/loopback.ts';
import { solo } from '../../../src/backends/solo.ts';
import { CallQueue } from '../../../src/group/queue.ts';
import { Progress, type Steps } from '../../../src/group/steps.ts';
import { asBuffer, type Backend, type CollectiveError, type Operation } from '../../../src/index.ts';

const barrier = (seq: number): Operation => ({ verb: 'barrier', seq, timeoutMs: 1000, packing: 0 });
const message = (verb: 'send' | 'recv', peer: number): Operation => {
  return { verb, seq: 0, timeoutMs: 1000, buffer: asBuffer(new Float32Array(1)), peer, tag: 0 };
};

/** Returns a call whose steps have one operation each. */
function stepsOf([operation, ...rest]: readonly Operation[]): Steps<void> {
  const operations = [operation as Operation];
  if (rest.length === 0) return { operations, finish: () => {}, isFenceable: true };
  return { operations, more: () => stepsOf(rest) };
}

/** Makes a queue on a backend, with a log of its events, such as "a 0" when call a starts operation 0. */
function queueOn(backend: Backend) {
  const queue = new CallQueue();
  const events: string[] = [];
  const callOf = (name: string, ...operations: Operation[]) => {
    const starter = {
      begin: (operation: Operation, _: string, settle: Parameters<Backend['start']>[1]) => {
        events.push(`${name} ${operation.seq}`);
        return backend.start(operation, settle);
      },
      together: (begin: () => void) => begin(),
      failed: (error: unknown) => error as CollectiveError,
      allStarted: () => queue.startReady(),
    };
    const call: Progress<void> = new Progress(name, stepsOf(operations), starter, () => {
      events.push(`${name} ended`);
      queue.remove(call);
    });
    return call;
  };
  return { queue, events, callOf };
}

const startsIn = (events: readonly string[]) => events.filter((event) => !event.includes('ended'));

describe('calls of several operations', () => {
  it('start at once where all operations of the calls before them have been started', () => {
    const { queue, events, callOf } = queueOn(solo());
    queue.addCollectives(callOf('a', barrier(0)));
    queue.addCollectives(callOf('b', barrier(1)));
    expect([events, queue.isBusy]).toEqual([['a 0', 'b 1'], false]);
  });

  it('wait for the steps of the calls before them', async () => {
    const { queue, events, callOf } = queueOn(solo());
    queue.addCollectives(callOf('a', barrier(0), barrier(1)));
    queue.addCollectives(callOf('b', barrier(2), barrier(3)));
    queue.addCollectives(callOf('c', barrier(4)));
    expect([events, queue.isBusy]).toEqual([['a 0'], true]);
    await queue.end();
    expect(startsIn(events)).toEqual(['a 0', 'a 1', 'b 2', 'b 3', 'c 4']);
    expect(queue.isBusy).toBe(false);
  });

  it('do not wait if they are messages', async () => {
    const [own, peer] = loopback(2) as [Backend, Backend];
    const { queue, events, callOf } = queueOn(own);
    queue.addCollectives(callOf('a', barrier(0), barrier(1)));
    queue.addMessages(callOf('b', message('send', 1)));
    expect(events).toEqual(['a 0', 'b 0']);
    for (const operation of [message('recv', 0), barrier(0), barrier(1)]) peer.start(operation, () => {});
    await queue.end();
    expect(startsIn(events)).toEqual(['a 0', 'b 0', 'a 1']);
  });
});

describe('blocking', () => {
  it('for a turn starts all that is queued, and no more', () => {
    const { queue, events, callOf } = queueOn(solo());
    queue.addCollectives(callOf('a', barrier(0), barrier(1)));
    queue.addCollectives(callOf('b', barrier(2)));
    queue.waitUntilFree();
    expect([events, queue.isBusy]).toEqual([['a 0', 'a 1', 'b 2'], false]);
  });

  it.each(['waitFor', 'fence'] as const)('by %s() ends a call that is still queued', (method) => {
    const { queue, events, callOf } = queueOn(solo());
    const [a, b] = [callOf('a', barrier(0), barrier(1)), callOf('b', barrier(2))];
    queue.addCollectives(a);
    queue.addCollectives(b);
    queue[method](b);
    expect([a.isAllStarted, b.hasEnded]).toEqual([true, true]);
    expect(events).toContain('b ended');
  });
});

describe('the end', () => {
  it('comes at once where nothing is pending', async () => {
    await queueOn(solo()).queue.end();
  });

  it('requests progress of a call, and of those that it waits for', () => {
    const requests: number[] = [];
    const start: Backend['start'] = ({ seq }) => {
      return { wait: () => {}, requestProgress: () => requests.push(seq) };
    };
    const { queue, callOf } = queueOn({ ...solo(), start });
    const [a, b] = [callOf('a', barrier(0), barrier(1)), callOf('b', barrier(2))];
    queue.addCollectives(a);
    queue.addCollectives(b);
    requests.length = 0;
    queue.requestProgress(b);
    expect(requests).toEqual([0]);
    void queue.end();
    expect(requests).toEqual([0, 0]);
  });
});
