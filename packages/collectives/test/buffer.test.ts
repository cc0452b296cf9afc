import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import {
  allocHost,
  asBuffer,
  type BufferLike,
  bufferSymbol,
  byteSize,
  dtypes,
  elementsOf,
} from '../src/index.ts';

const refusal = (value: unknown): string => {
  try {
    asBuffer(value as BufferLike, 'allReduce');
    return 'accepted';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('asBuffer', () => {
  it('takes every kind of typed array', () => {
    const kinds = [
      [Float32Array, 'float32'],
      [Float64Array, 'float64'],
      [Int8Array, 'int8'],
      [Int16Array, 'int16'],
      [Int32Array, 'int32'],
      [BigInt64Array, 'int64'],
      [Uint8Array, 'uint8'],
      [Uint8ClampedArray, 'uint8'],
      [Uint16Array, 'uint16'],
      [Uint32Array, 'uint32'],
      [BigUint64Array, 'uint64'],
      [Buffer.alloc(0).constructor, 'uint8'],
    ] as const;
    for (const [Kind, dtype] of kinds) {
      const array = new (Kind as typeof Float32Array)(3);
      expect(asBuffer(array)).toEqual({
        dtype,
        count: 3,
        device: { kind: 'cpu', index: 0 },
        host: array,
        handle: null,
      });
    }
  });

  it('takes arrays of another realm and on shared memory', () => {
    expect(asBuffer(runInNewContext('new Float32Array(4)')).count).toBe(4);
    expect(asBuffer(new Int32Array(new SharedArrayBuffer(8))).dtype).toBe('int32');
  });

  it('takes { data, dtype } where the element sizes fit', () => {
    for (const dtype of ['float16', 'bfloat16'] as const) {
      const data = new Uint16Array(5);
      expect(asBuffer({ data, dtype })).toMatchObject({ dtype, count: 5, host: data });
    }
    expect(asBuffer({ data: new Uint8Array(2), dtype: 'bool' }).dtype).toBe('bool');
    expect(refusal({ data: new Float32Array(2), dtype: 'float16' })).toBe(
      'allReduce: data does not hold float16; expected 2 bytes per element, got 4.',
    );
    expect(refusal({ data: new Uint8Array(2), dtype: 'float8' })).toMatch(
      'unknown dtype float8; expected one of float32,',
    );
  });

  it('takes whatever carries the buffer protocol, and checks what it says', () => {
    const view = allocHost(6, 'float64');
    expect(asBuffer({ [bufferSymbol]: () => view })).toBe(view);
    const handle = { address: 16n, owner: {}, stream: 0n };
    const device = { kind: 'cuda', index: 1 } as const;
    const remote = { dtype: 'float32', count: 2, device, host: null, handle } as const;
    expect(asBuffer({ [bufferSymbol]: () => remote })).toBe(remote);
    const faults = [
      { ...view, count: 7 },
      { ...view, count: -1 },
      { ...view, dtype: 'float8' },
      { ...view, host: null },
      { ...remote, handle: {} },
      { ...remote, handle: { ...handle, stream: 7 } },
      { ...view, device: undefined },
      { ...view, count: 1, host: new Uint8Array(new ArrayBuffer(16), 4, 8) },
      undefined,
    ].map((bad) => refusal({ [bufferSymbol]: () => bad }));
    expect(faults).toMatchInlineSnapshot(`
      [
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: expected 56 bytes, host has 48.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: count is -1.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: unknown dtype float8.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: it has neither host nor handle.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: the address of its handle is undefined.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: the stream of its handle is number.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: it has no device.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: host does not start at a whole element.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: got undefined.",
      ]
    `);
  });

  it('refuses everything else with a sentence that lists what it takes', () => {
    const got = [
      [1, 2],
      new DataView(new ArrayBuffer(4)),
      null,
      undefined,
      7,
      'x',
      {},
      new ArrayBuffer(8),
      new Map(),
    ];
    expect(got.map(refusal)).toMatchInlineSnapshot(`
      [
        "allReduce: cannot use a plain array as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member. Use Float32Array.from(array).",
        "allReduce: cannot use a DataView as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member. It has no element type: wrap its buffer.",
        "allReduce: cannot use null as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
        "allReduce: cannot use undefined as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
        "allReduce: cannot use number as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
        "allReduce: cannot use string as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
        "allReduce: cannot use an object (Object) as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
        "allReduce: cannot use an object (ArrayBuffer) as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
        "allReduce: cannot use an object (Map) as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member.",
      ]
    `);
    expect(refusal({ data: [1], dtype: 'float32' })).toMatch(
      '{ data, dtype } whose data is an object (Array)',
    );
  });

  it('refuses a detached array, and takes an empty one', () => {
    const array = new Float32Array(8);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    expect(refusal(array)).toBe(
      'allReduce: the buffer is detached. Its memory was transferred to another thread or freed.',
    );
    expect(asBuffer(new Float32Array(0)).count).toBe(0);
  });
});

describe('elementsOf', () => {
  it('shares the memory, from its offset on', () => {
    const whole = new Float32Array([1, 2, 3, 4]);
    const view = asBuffer(whole.subarray(1, 3));
    elementsOf(view).set([8, 9] as never);
    expect([...whole]).toEqual([1, 8, 9, 4]);
  });

  it('wraps where a clamped array would not', () => {
    const clamped = new Uint8ClampedArray(1);
    elementsOf(asBuffer(clamped)).set([257] as never);
    expect(clamped[0]).toBe(1);
  });
});

describe('allocHost', () => {
  it('gives zeroed memory of the right size for every dtype', () => {
    for (const dtype of dtypes) {
      const view = allocHost(10, dtype);
      expect([view.count, view.host?.byteLength, dtype]).toEqual([10, 10 * byteSize(dtype), dtype]);
    }
  });
});
