import { describe, expect, it } from 'vitest';
import {
  type Accepted,
  encodeSafetensorsHeader,
  HeaderError,
  parseSafetensorsHeader,
  planSafetensors,
  type SafetensorsEntry,
  safetensorsHeaderBytes,
  safetensorsInOrder,
} from '../../src/index.ts';

/** Parses a header text before `dataBytes` of data, and checks that its tensors cover them. */
function parse(text: string | Uint8Array, dataBytes: number, accepted?: Accepted): SafetensorsEntry[] {
  const bytes = Buffer.from(text as string);
  return safetensorsInOrder(parseSafetensorsHeader(bytes, 8 + bytes.length + dataBytes, accepted));
}

function fault(read: () => unknown): HeaderError {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(HeaderError);
    return error as HeaderError;
  }
  throw new Error('expected a refusal');
}

describe('the header of a safetensors file', () => {
  it('comes back as it was written: wider types first, then by name', () => {
    const entries = planSafetensors({
      c: { dtype: 'uint8', shape: [3] },
      b: { dtype: 'float32', shape: [2, 2] },
      a: { dtype: 'float32', shape: [] },
      d: { dtype: 'int64', shape: [0, 5] },
    });
    expect(entries.map(({ name, begin, end }) => [name, begin, end])).toEqual([
      ['d', 0, 0],
      ['a', 0, 4],
      ['b', 4, 20],
      ['c', 20, 23],
    ]);
    const header = encodeSafetensorsHeader(entries, { step: '7' });
    expect(header.length % 8).toBe(0);
    const fileBytes = header.length + 23;
    expect(safetensorsHeaderBytes(header.subarray(0, 8), fileBytes)).toBe(header.length - 8);
    const parsed = parseSafetensorsHeader(header.subarray(8), fileBytes);
    expect(parsed).toEqual({ entries, metadata: { step: '7' }, dataStart: header.length, dataBytes: 23 });
    expect(safetensorsInOrder(parsed)).toEqual(entries);
  });

  it('has entries in the order of the file, whatever that of the header', () => {
    const u8 = (begin: number): string => `{"dtype":"U8","shape":[1],"data_offsets":[${begin},${begin + 1}]}`;
    const names = parse(`{"a":${u8(1)},"b":${u8(0)}}`, 2).map(({ name }) => name);
    expect(names).toEqual(['b', 'a']);
  });

  it('says how long it is', () => {
    const length = (bytes: bigint): Buffer => {
      const start = Buffer.alloc(8);
      start.writeBigUInt64LE(bytes);
      return start;
    };
    const short = fault(() => safetensorsHeaderBytes(Buffer.alloc(7), 7));
    expect([short.message, short.expected, short.got]).toEqual([
      ...['ends inside the header length; the file is truncated', 'a header', 'a file of 7 bytes'],
    ]);
    expect(safetensorsHeaderBytes(length(92n), 100)).toBe(92);
    for (const [bytes, fileBytes, most] of [
      [93n, 100, 92],
      [2n ** 64n - 1n, 100, 92],
      [100_000_001n, 2 ** 40, 100_000_000],
    ] as const) {
      const error = fault(() => safetensorsHeaderBytes(length(bytes), fileBytes));
      expect([error.message, error.expected, error.got]).toEqual([
        `the header claims ${bytes} bytes, but at most ${most} are possible (is this a safetensors file?)`,
        `a header of at most ${most} bytes`,
        `${bytes}`,
      ]);
    }
  });

  it.each([
    ['a ZIP archive, as torch.save() and numpy.savez() write it', 'PK\x03\x04....'],
    ['a pickle, as older versions of torch.save() write it', '\x80\x02\x8a\nl...'],
    ['a .npy file', '\x93NUMPY\x01\x00'],
  ])('says that it is %s', (format, start) => {
    const error = fault(() => safetensorsHeaderBytes(Buffer.from(start, 'latin1'), 1000));
    expect(error).toMatchObject({ expected: 'a safetensors file', got: format });
    expect(error.message).toBe(
      `it is ${format}, and no safetensors file; save weights in Python by save_file() of safetensors.torch`,
    );
  });

  const types = 'a type of U8, F32 for "a"';
  const a = (dtype: unknown, shape: unknown, offsets: unknown): string =>
    JSON.stringify({ a: { dtype, shape, data_offsets: offsets } });
  /** Headers of 192 bytes, the bytes of data, and the error: its sentence, what was expected, and what was found. */
  const faults: Readonly<Record<string, readonly [string, number, string, string, string]>> = {
    'no object': ['[]', 0, 'the header is not a JSON object', 'a header that is an object', 'another value'],
    'metadata that is no text': [
      '{"__metadata__":{"a":1}}',
      0,
      '__metadata__ is not an object of strings',
      '__metadata__ to be an object of strings',
      '{"a":1}',
    ],
    'no description': ['{"a":5}', 0, 'tensor "a" is not described by an object', types, '5'],
    'a type that the reader does not take': [
      a('I8', [1], [0, 1]),
      1,
      'tensor "a" has dtype "I8"; supported are U8, F32',
      types,
      'I8',
    ],
    'a negative size': [
      a('U8', [-1], [0, 1]),
      1,
      'tensor "a" has shape [-1]; expected sizes that are integers ≥ 0',
      'a shape of at least one dimension for "a"',
      '[-1]',
    ],
    'no rows': [
      a('U8', [], [0, 1]),
      1,
      'tensor "a" has no dimensions; expected at least one',
      'a shape of at least one dimension for "a"',
      '[]',
    ],
    'dimensions too many': [
      a('U8', [1, 1, 1], [0, 1]),
      1,
      'tensor "a" has 3 dimensions; expected at most 2',
      'at most 2 dimensions for "a"',
      '3',
    ],
    'one offset': [
      a('U8', [1], [0]),
      1,
      'tensor "a" has data_offsets [0]; expected two integers ≥ 0',
      'a range of 1 bytes for "a"',
      '[0]',
    ],
    'a range beyond the file': [
      a('U8', [2], [0, 2]),
      1,
      'tensor "a" lies at 0 to 2, outside the 1 bytes of data (is the file truncated?)',
      '202 bytes with "a" in them',
      'a file of 201',
    ],
    'a range backwards': [
      a('U8', [2], [2, 0]),
      2,
      'tensor "a" lies at 2 to 0, outside the 2 bytes of data (is the file truncated?)',
      'a range of 2 bytes for "a"',
      '[2,0]',
    ],
    'a range of other bytes': [
      a('F32', [2], [0, 4]),
      4,
      'tensor "a" with F32 [2] needs 8 bytes, but data_offsets hold 4',
      'a range of 8 bytes for "a"',
      '[0,4]',
    ],
    'tensors that overlap': [
      `${a('U8', [2], [0, 2]).slice(0, -1)},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`,
      3,
      'tensor "b" at 1 overlaps the one before, which ends at 2',
      '"b" at byte 202, behind the tensor before',
      '201',
    ],
    'a gap': [
      a('U8', [1], [1, 2]),
      2,
      '1 bytes before tensor "a" belong to no tensor',
      '"a" at byte 200, behind the tensor before',
      '201',
    ],
    'bytes at the end': [
      a('U8', [1], [0, 1]),
      3,
      '2 bytes at the end belong to no tensor',
      '201 bytes, the end of the last tensor',
      'a file of 203',
    ],
  };

  it.each(Object.entries(faults))('is refused with %s', (_, [text, dataBytes, ...sentences]) => {
    const accepted: Accepted = { types: ['uint8', 'float32'], maxDims: 2, needsRows: true };
    const error = fault(() => parse(text.padEnd(192), dataBytes, accepted));
    expect([error.message, error.expected, error.got]).toEqual(sentences);
  });

  it.each<[string, string | Uint8Array, string | RegExp]>([
    ['no UTF-8', Uint8Array.of(0x7b, 0xff), 'the header is not UTF-8'],
    ['no JSON', '{', /^the header is not JSON \(.*\)$/],
    ['a name twice', '{"a":1,"\\u0061":2}', 'the header cannot be right: it has "a" twice'],
    ['brackets', '['.repeat(9), 'the header cannot be right: it is nested more than 8 deep'],
  ])('is refused with %s, and tells the cause', (_, text, problem) => {
    const error = fault(() => parse(text, 0));
    expect(error.message).toMatch(problem);
    expect(error.expected).toBe('a header of JSON');
    expect(error.got).toBe((error.cause as Error).message);
  });

  it('with names and values of any length is refused in few printable characters', () => {
    for (const long of ['x'.repeat(100_000), '\u001b[2J', '\u009b2J']) {
      const twice = `{${JSON.stringify(long)}:1,${JSON.stringify(long)}:1}`;
      for (const text of [
        `{"a":${long}}`,
        twice,
        JSON.stringify({ [long]: 5 }),
        a(long, [], [0, 1]),
        a('U8', long, [0, 1]),
      ]) {
        const { message } = fault(() => parse(text, 1));
        expect(message.length).toBeLessThan(400);
        expect(message).not.toContain('\u001b');
      }
    }
  });
});

it.each([
  ['float33', [2], 'tensor "a" cannot have the type "float33"; expected one of float32,'],
  ['float32', [-2], 'tensor "a" cannot have the shape [-2]; expected a list of whole numbers'],
])('no file is planned with %s %o', (dtype, shape, message) => {
  expect(() => planSafetensors({ a: { dtype: dtype as 'float32', shape } })).toThrow(message);
});
