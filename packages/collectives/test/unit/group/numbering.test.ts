// Tests the flight record of a native group for operations that reached it in pieces.
// packages/ringwise/test/full/devices/device-collectives.test.ts does the same with a device.
import { describe, expect, it } from 'vitest';
import type { AllReduce } from '../../../src/backend.ts';
import { Numbering } from '../../../src/backends/device/numbering.ts';
import { asBuffer } from '../../../src/group/buffer.ts';
import type { FlightEntry } from '../../../src/index.ts';

const operationOf = (seq: number, count: number): AllReduce => ({
  ...({ verb: 'allReduce', op: 'sum', factor: 1, wire: 'full', residual: null } as const),
  ...{ seq, timeoutMs: 1000, packing: 0, buffer: asBuffer(new Float32Array(count)) },
});

/** Returns an entry of one millisecond. `seq` is the number that the native group gave it. */
function entryOf(number: number, seq: number, rest: Partial<FlightEntry> = {}): FlightEntry {
  return {
    ...{ number, verb: 'allReduce', seq, dtype: 'float32', count: 1, bytes: 4, op: 'sum', root: null },
    ...{ peer: null, tag: null, state: 'done', queuedMs: 10 * number, startedMs: 10 * number },
    ...{ endedMs: 10 * number + 1, label: null, algorithm: 'ring', callSite: `train.ts:${number}`, ...rest },
  };
}
const sent = (number: number, seq: number) => entryOf(number, seq, { verb: 'send', peer: 1, tag: 0 });

const facts = (entries: readonly FlightEntry[]) =>
  entries.map(({ number, verb, seq, count, bytes, state, startedMs, endedMs }) =>
    [number, verb, seq, count, bytes, state, startedMs, endedMs].join(' '),
  );

/** Starts operations of 1, 3, 1, 2 and 1 pieces. Those of several pieces have 30 elements. */
function numbering(): {
  readonly numbers: Numbering;
  readonly failed: (() => void)[];
  readonly firsts: number[];
} {
  const numbers = new Numbering();
  const taken = [1, 3, 1, 2, 1].map((pieces, seq) =>
    numbers.take(operationOf(seq, pieces > 1 ? 30 : 1), pieces),
  );
  return { numbers, failed: taken.map(({ failed }) => failed), firsts: taken.map(({ first }) => first) };
}

describe('numbers of operations in pieces', () => {
  it('go on behind the pieces', () => {
    const { numbers, firsts } = numbering();
    expect(firsts).toEqual([0, 1, 4, 5, 7]);
    expect(numbers.numbered(operationOf(5, 1)).seq).toBe(8);
    expect(new Numbering().isSame).toBe(true);
    expect(numbers.isSame).toBe(false);
  });

  it('are those of the group in the record, where an operation lasts as long as its pieces', () => {
    const record = [
      ...[sent(0, 0), entryOf(1, 0), entryOf(2, 1), sent(3, 1), entryOf(4, 2), entryOf(5, 3)],
      ...[sent(6, 2), entryOf(7, 4), entryOf(8, 5), entryOf(9, 6), entryOf(10, 7)],
    ];
    const told = numbering().numbers.byOperation(record);
    expect(facts(told)).toEqual([
      '0 send 0 1 4 done 0 1',
      '1 allReduce 0 1 4 done 10 11',
      '2 allReduce 1 30 120 done 20 51',
      '3 send 1 1 4 done 30 31',
      '4 send 2 1 4 done 60 61',
      '5 allReduce 2 1 4 done 70 71',
      '6 allReduce 3 30 120 done 80 91',
      '7 allReduce 4 1 4 done 100 101',
    ]);
    expect(told[2]).toMatchObject({ algorithm: 'ring', callSite: 'train.ts:2' });
  });

  it('are left out where the record has lost the first piece', () => {
    const record = [sent(3, 1), entryOf(4, 2), entryOf(5, 3), sent(6, 2), entryOf(7, 4)];
    expect(facts(numbering().numbers.byOperation(record))).toEqual([
      '3 send 1 1 4 done 30 31',
      '4 send 2 1 4 done 60 61',
      '5 allReduce 2 1 4 done 70 71',
    ]);
    expect(facts(numbering().numbers.byOperation([sent(11, 0)]))).toEqual(['8 send 0 1 4 done 110 111']);
  });

  it('belong to an operation that runs until its last piece has ended or a piece has failed', () => {
    const { numbers, failed } = numbering();
    const begun = [entryOf(1, 0), entryOf(2, 1), entryOf(4, 2)];
    const last = (pieces: readonly FlightEntry[]) => facts(numbers.byOperation(pieces)).at(-1);
    const queued = entryOf(2, 1, { state: 'queued', startedMs: null, endedMs: null });
    expect(last([queued])).toBe('2 allReduce 1 30 120 queued  ');
    expect(last(begun)).toBe('2 allReduce 1 30 120 running 20 ');
    expect(last([...begun, entryOf(5, 3, { state: 'running', endedMs: null })])).toBe(
      '2 allReduce 1 30 120 running 20 ',
    );
    expect(last([...begun, entryOf(5, 3, { state: 'failed' })])).toBe('2 allReduce 1 30 120 failed 20 51');
    failed[1]!(); // the failure is on the device, so there is no third piece
    expect(last(begun)).toBe('2 allReduce 1 30 120 failed 20 41');
  });

  it('are kept for as many operations as a record has entries, also if more have run', () => {
    const numbers = new Numbering();
    const firsts = Array.from({ length: 5000 }, (_, seq) => numbers.take(operationOf(seq, 8), 2).first);
    const record = firsts
      .slice(-500)
      .flatMap((first) => [entryOf(first, first), entryOf(first + 1, first + 1)]);
    const told = numbers.byOperation(record);
    expect(told.map(({ seq }) => seq)).toEqual(Array.from({ length: 500 }, (_, i) => 4500 + i));
    expect(told.map(({ number }) => number)).toEqual(told.map(({ seq }) => seq));
  });
});
