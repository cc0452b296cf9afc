import { describe, expect, it } from 'vitest';
import type { AllReduce, Recv, Send } from '../../../src/backend.ts';
import { loopback } from '../../../src/backends/loopback.ts';
import { Admission } from '../../../src/group/admission.ts';
import type { StepCapture } from '../../../src/group/captured.ts';
import { GroupState } from '../../../src/group/state.ts';
import { asBuffer, type Backend, type BufferView } from '../../../src/index.ts';

function admissionOf(): Admission {
  const [backend] = loopback(3) as [Backend];
  return new Admission(backend, new GroupState(backend, 'world'), 1000);
}

const buffer = asBuffer(new Float32Array(4));

const allReduceOf = (admission: Admission, changes: Partial<AllReduce> = {}): AllReduce => ({
  ...({ verb: 'allReduce', op: 'sum', factor: 1, wire: 'full', residual: null, packing: 0 } as const),
  ...{ seq: admission.seq, timeoutMs: admission.timeoutMs, buffer, ...changes },
});
const messageOf = <V extends 'send' | 'recv'>(admission: Admission, verb: V, peer: number) =>
  ({ verb, seq: admission.messageSeq(verb, peer), timeoutMs: 1000, buffer, peer, tag: 0 }) as V extends 'send'
    ? Send
    : Recv;

/** Returns memory that adds `name` to `told` when a call notifies its owner. */
const watched = (name: string, told: string[], refusal?: Error): BufferView => ({
  ...asBuffer(new Float32Array(4)),
  written: () => {
    told.push(name);
    if (refusal !== undefined) throw refusal;
  },
});

describe('numbers', () => {
  it('count collectives, with those of later steps', () => {
    const admission = admissionOf();
    const first = admission.accept(allReduceOf(admission));
    const reserved = admission.reserve();
    const last = admission.acceptTold(allReduceOf(admission));
    expect([first.seq, reserved, last.seq, admission.seq]).toEqual([0, 1, 2, 3]);
  });

  it('count messages by direction and peer, where any rank is a peer of its own', () => {
    const admission = admissionOf();
    const accept = (verb: 'send' | 'recv', peer: number) =>
      admission.acceptMessage(messageOf(admission, verb, peer)).seq;
    const [sends, receives] = [
      [1, 1, 2],
      [1, -1, 2, -1],
    ] as const;
    expect(sends.map((peer) => accept('send', peer))).toEqual([0, 1, 0]);
    expect(receives.map((peer) => accept('recv', peer))).toEqual([0, 0, 0, 1]);
    expect(admission.seq).toBe(0);
  });

  it('are not used by refused calls', () => {
    const admission = admissionOf();
    const told: string[] = [];
    expect(() => admission.accept(allReduceOf(admission, { timeoutMs: 0 }))).toThrow(
      'timeoutMs is not usable',
    );
    const reluctant = watched('a', told, new Error('the tape needs it.'));
    expect(() => admission.accept(allReduceOf(admission, { buffer: reluctant }))).toThrow(
      'the tape needs it',
    );
    expect(() => admission.acceptMessage(messageOf(admission, 'send', 0))).toThrow('is this rank itself');
    expect([admission.seq, admission.messageSeq('send', 0)]).toEqual([0, 0]);
  });
});

describe('owners of memory', () => {
  it('are told of what an accepted operation writes', () => {
    const admission = admissionOf();
    const told: string[] = [];
    const [a, b] = [watched('a', told), watched('b', told)];
    admission.accept(allReduceOf(admission, { buffer: a, wire: 'int8', residual: b }));
    admission.acceptTold(allReduceOf(admission, { buffer: a }));
    admission.acceptMessage({ ...messageOf(admission, 'send', 1), buffer: a });
    admission.acceptMessage({ ...messageOf(admission, 'recv', 1), buffer: b });
    expect(told).toEqual(['a', 'b', 'b']);
  });

  it('are told of nothing if the operation is refused, or if one of its buffers is read-only', () => {
    const admission = admissionOf();
    const told: string[] = [];
    const a = watched('a', told);
    const picture = { ...a, readOnly: { reason: 'it is a picture', next: 'Copy it.' } };
    expect(() =>
      admission.accept(allReduceOf(admission, { buffer: a, op: 'premulSum', factor: Number.NaN })),
    ).toThrow("needs this rank's factor");
    expect(() => admission.tell('allGather', [a, picture])).toThrow('it is a picture');
    expect(told).toEqual([]);
  });
});

describe('a capture', () => {
  it('refuses operations that a launch would not repeat', () => {
    const admission = admissionOf();
    const slots = globalThis as { [key: symbol]: { now: StepCapture | null } | undefined };
    const slot = slots[Symbol.for('ringwise.capture')]!;
    slot.now = { stream: 1n, onEnd: () => {}, onRun: () => {}, drop: () => {} };
    try {
      expect(() => admission.accept(allReduceOf(admission))).toThrow(
        'the loopback backend takes no part in that',
      );
    } finally {
      slot.now = null;
    }
    expect(admission.accept(allReduceOf(admission)).seq).toBe(0);
  });
});
