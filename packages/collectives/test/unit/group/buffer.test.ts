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
} from '../../../src/index.ts';

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
    const arrays = [
      [new Float32Array(3), 'float32'],
      [new Float64Array(3), 'float64'],
      [new Int8Array(3), 'int8'],
      [new Int16Array(3), 'int16'],
      [new Int32Array(3), 'int32'],
      [new BigInt64Array(3), 'int64'],
      [new Uint8Array(3), 'uint8'],
      [new Uint8ClampedArray(3), 'uint8'],
      [new Uint16Array(3), 'uint16'],
      [new Uint32Array(3), 'uint32'],
      [new BigUint64Array(3), 'uint64'],
      [Buffer.alloc(3), 'uint8'],
    ] as const;
    for (const [array, dtype] of arrays) {
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

  it('takes { data, dtype } where the array holds the dtype, and no other array of the same width', () => {
    const arrays = [
      Float32Array,
      Float64Array,
      Int8Array,
      Int16Array,
      Int32Array,
      BigInt64Array,
      Uint8Array,
      Uint8ClampedArray,
      Uint16Array,
      Uint32Array,
      BigUint64Array,
    ] as const;
    const holds: Record<string, string> = {
      float32: 'Float32Array',
      float64: 'Float64Array',
      float16: 'Uint16Array',
      bfloat16: 'Uint16Array',
      int8: 'Int8Array',
      int16: 'Int16Array',
      int32: 'Int32Array',
      int64: 'BigInt64Array',
      uint8: 'Uint8Array Uint8ClampedArray',
      uint16: 'Uint16Array',
      uint32: 'Uint32Array',
      uint64: 'BigUint64Array',
      bool: 'Uint8Array',
      float8_e4m3fn: 'Uint8Array',
      float8_e5m2: 'Uint8Array',
    };
    for (const dtype of dtypes) {
      const taken = arrays.filter((Kind) => refusal({ data: new Kind(2), dtype }) === 'accepted');
      expect([dtype, taken.map(({ name }) => name).join(' ')]).toEqual([dtype, holds[dtype]]);
    }
    const data = new Uint16Array(5);
    expect(asBuffer({ data, dtype: 'bfloat16' })).toMatchObject({ dtype: 'bfloat16', count: 5, host: data });
    expect(refusal({ data: new Float32Array(2), dtype: 'int32' })).toBe(
      'allReduce: data does not hold int32; expected Int32Array, got Float32Array.',
    );
    expect(refusal({ data: new BigInt64Array(2), dtype: 'float64' })).toBe(
      'allReduce: data does not hold float64; expected Float64Array, got BigInt64Array.',
    );
    expect(refusal({ data: new Uint8Array(2), dtype: 'float8' })).toMatch(
      'unknown dtype float8; expected one of float32,',
    );
  });

  it('takes a Float16Array as float16, where there is one', () => {
    const { Float16Array } = globalThis as { Float16Array?: new (count: number) => Uint16Array };
    if (Float16Array === undefined) return;
    const data = new Float16Array(3);
    expect([refusal(data), refusal({ data, dtype: 'float16' })]).toEqual(['accepted', 'accepted']);
    expect(refusal({ data, dtype: 'bfloat16' })).toMatch('expected Uint16Array, got Float16Array');
  });

  it('takes whatever carries the buffer protocol, and checks what it says', () => {
    const view = allocHost(6, 'float64');
    expect(asBuffer({ [bufferSymbol]: () => view })).toBe(view);
    const bytes = { ...view, host: new Uint8Array(48) };
    expect(asBuffer({ [bufferSymbol]: () => bytes })).toBe(bytes);
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
      { ...view, host: new BigInt64Array(6) },
      { ...view, handle },
      { ...view, handle: undefined },
      { ...view, device },
      { ...remote, device: view.device },
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
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: host is a BigInt64Array, which does not hold float64.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: handle is an object (Object) beside host memory; expected null.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: handle is undefined beside host memory; expected null.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: its device is cuda, but it has host memory.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: its device is cpu, but it has no host memory.",
        "allReduce: the object's "ringwise.buffer" member returned no valid BufferView: got undefined.",
      ]
    `);
  });

  it('takes a DataView of a carrier as bytes, which native backends take', () => {
    const memory = new ArrayBuffer(40);
    const view = { ...allocHost(3, 'float64'), host: new DataView(memory, 8, 24) };
    const bytes = new Uint8Array(memory, 8, 24);
    expect(asBuffer({ [bufferSymbol]: () => view })).toEqual({ ...view, host: bytes });
    const watched = { ...view, written: () => {} };
    expect(asBuffer({ [bufferSymbol]: () => watched }).host).toEqual(bytes);
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
        "allReduce: cannot use a number as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member. Put it into an array: Float64Array.of(7).",
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

describe('memory of a variable length', () => {
  const resizable = () => Reflect.construct(ArrayBuffer, [8, { maxByteLength: 16 }]) as ArrayBuffer;

  it('refuses a resizable ArrayBuffer, which resize() could shrink during a call', () => {
    expect(refusal(new Float32Array(resizable()))).toBe(
      'allReduce: the buffer is in a resizable ArrayBuffer; expected memory of a fixed length. Pass a copy, such as array.slice(), or make the ArrayBuffer without maxByteLength.',
    );
    const host = new Float32Array(resizable());
    const view = { dtype: 'float32', count: 2, device: { kind: 'cpu', index: 0 }, host, handle: null };
    expect(refusal({ [bufferSymbol]: () => view })).toMatch('host is in a resizable ArrayBuffer');
  });

  it('takes a SharedArrayBuffer that can grow', () => {
    const shared = Reflect.construct(SharedArrayBuffer, [8, { maxByteLength: 16 }]) as SharedArrayBuffer;
    expect(asBuffer(new Float32Array(shared)).count).toBe(2);
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
  it('gives memory of the right size for every dtype', () => {
    for (const dtype of dtypes) {
      const view = allocHost(10, dtype);
      expect([view.count, view.host?.byteLength, dtype]).toEqual([10, 10 * byteSize(dtype), dtype]);
    }
  });
});
