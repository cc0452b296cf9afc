import { describe, expect, it } from 'vitest';
import { asBuffer, bytesWritten, type Operation } from '../../../src/index.ts';

const common = { seq: 0, timeoutMs: 1000, packing: 0 };
const whole = new Float32Array([1, 2, 3, 4]);
const [input, output] = [asBuffer(whole.subarray(0, 1)), asBuffer(whole.subarray(2))];

describe('bytesWritten', () => {
  it('is the output where there is one, at its place in memory', () => {
    const bytes = bytesWritten({ ...common, verb: 'allGather', input, output, counts: null });
    expect([bytes.buffer, bytes.byteOffset, bytes.byteLength]).toEqual([whole.buffer, 8, 8]);
  });

  it('is the buffer of an operation in place', () => {
    const bytes = bytesWritten({ ...common, verb: 'broadcast', buffer: input, root: 0 });
    expect([bytes.buffer, bytes.byteOffset, bytes.byteLength]).toEqual([whole.buffer, 0, 4]);
  });

  it.each<Operation>([
    { ...common, verb: 'barrier' },
    { ...common, verb: 'send', buffer: input, peer: 1, tag: 0 },
    { ...common, verb: 'gather', input, output: null, counts: null, root: 1 },
  ])('is empty for $verb if this rank writes nothing', (operation) => {
    expect(bytesWritten(operation).byteLength).toBe(0);
  });
});
