import { describe, expect, it } from 'vitest';
import {
  type Accepted,
  encodeNpyHeader,
  HeaderError,
  type NpyHeader,
  type NpyType,
  npyHeaderEnd,
  npyStartBytes,
  parseNpyHeader,
} from '../../src/index.ts';

/** Parses the header of a file. The last `elementBytes` bytes are the elements, which the parser does not read. */
function parse(file: Buffer, elementBytes: number, accepted?: Accepted): NpyHeader {
  const fileBytes = file.length + elementBytes;
  const end = npyHeaderEnd(file.subarray(0, npyStartBytes), fileBytes);
  return parseNpyHeader(file.subarray(0, end), fileBytes, accepted);
}

function withText(text: string, version = 1): Buffer {
  const start = Buffer.from([...Buffer.from('\x93NUMPY', 'latin1'), version, 0, 0, 0, 0, 0]);
  if (version === 1) start.writeUInt16LE(text.length, 8);
  else start.writeUInt32LE(text.length, 8);
  return Buffer.concat([start.subarray(0, version === 1 ? 10 : 12), Buffer.from(text)]);
}

const dict = (descr: string, shape: string, order = 'False'): string =>
  `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}, }\n`;

function fault(read: () => unknown): HeaderError {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(HeaderError);
    return error as HeaderError;
  }
  throw new Error('expected a refusal');
}

describe('the header of a .npy file', () => {
  it.each<[NpyType, readonly number[]]>([
    ['float32', [2, 3]],
    ['int64', [5]],
    ['bool', []],
    ['uint16', [0, 4]],
  ])('comes back as it was written: %s %o', (type, shape) => {
    const header = encodeNpyHeader(type, shape);
    expect(header.length % 64).toBe(0);
    const count = shape.reduce((product, size) => product * size, 1);
    const bytes = count * { float32: 4, int64: 8, bool: 1, uint16: 2 }[type as 'bool'];
    const order = { isFortran: false, isBigEndian: false };
    expect(parse(header, bytes)).toEqual({ type, shape, ...order, dataStart: header.length });
  });

  it('is what numpy.save writes', () => {
    expect(encodeNpyHeader('float32', [3]).toString('latin1')).toBe(
      `\x93NUMPY\x01\x00\x76\x00${"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }".padEnd(117)}\n`,
    );
  });

  it.each([1, 2, 3])('is read in version %i, in any order of members and bytes', (version) => {
    const text = `{'shape': (2, 3), 'fortran_order': True, 'descr': '>i2'}`;
    expect(parse(withText(text, version), 12)).toMatchObject({
      ...{ type: 'int16', shape: [2, 3], isFortran: true, isBigEndian: true },
    });
  });

  const types = 'a shape and one of the types f4, u1';
  const whole = dict("'<f4'", '(3,)');
  const noShape = "{'descr': '<f4', 'fortran_order': False}";
  const noOrder = "{'descr': '<f4', 'shape': (3,)}";
  /** Files, the bytes of their elements, and the error: its sentence, what was expected, and what was found. */
  const faults: Readonly<Record<string, readonly [Buffer, number, string, string, string]>> = {
    nothing: [Buffer.of(), 0, 'it does not begin as a .npy file does', 'a header', 'a file of 0 bytes'],
    'another beginning': [
      Buffer.from('PK and more than twelve'),
      0,
      'it does not begin as a .npy file does',
      'the beginning \\x93NUMPY',
      '504b20616e64',
    ],
    'an archive': [
      Buffer.from('PK\x03\x04 and more than twelve'),
      0,
      'it is a ZIP archive, as torch.save() and numpy.savez() write it, and no .npy file',
      'the beginning \\x93NUMPY',
      '504b03042061',
    ],
    'a version to come': [
      withText(whole, 4),
      12,
      'format version 4 is not known',
      'format version 1, 2 or 3',
      '4',
    ],
    'a header beyond the file': [
      withText(whole).subarray(0, 20),
      0,
      `the header should end at byte ${whole.length + 10}, but the file at 20`,
      'a header of at most 10 bytes',
      `${whole.length}`,
    ],
    'a header beyond all': [
      withText(' '.repeat(100_001), 2),
      0,
      'the header claims to end at byte 100013',
      'a header of at most 100000 bytes',
      '100001',
    ],
    'no dictionary': [withText('none'), 0, 'the header is not a dictionary: none', types, 'none'],
    'other syntax': [
      withText("{'a': 5}"),
      0,
      `the header cannot be read from "'a': 5" on`,
      types,
      "{'a': 5}",
    ],
    'a member twice': [
      withText("{'a': True, 'a': True}"),
      0,
      'the header has a twice',
      'each member of the header once',
      'a twice',
    ],
    'no shape': [withText(noShape), 0, 'the header has no shape', types, noShape],
    'no order': [
      withText(noOrder),
      12,
      'the header has no fortran_order',
      'fortran_order True or False',
      noOrder,
    ],
    'a type that the reader does not take': [
      withText(dict("'<f8'", '(3,)')),
      24,
      "dtype '<f8' is not supported; supported are f4, u1",
      types,
      dict("'<f8'", '(3,)').trim(),
    ],
    objects: [
      withText(dict("'|O'", '(3,)')),
      24,
      "dtype '|O' is not supported, as Python objects are pickled programs; supported are f4, u1",
      types,
      dict("'|O'", '(3,)').trim(),
    ],
    'a negative size': [
      withText(dict("'<f4'", '(-3,)')),
      12,
      'the shape is (-3,); expected sizes that are integers ≥ 0',
      'a shape',
      '(-3,)',
    ],
    'dimensions too many': [
      withText(dict("'<f4'", '(1, 1, 1)')),
      4,
      'the shape has 3 dimensions; expected at most 2',
      'at most 2 dimensions',
      '3',
    ],
    'no rows': [
      withText(dict("'<f4'", '()')),
      4,
      'the shape has no dimensions; expected at least one',
      'at least one dimension',
      'none',
    ],
    'elements that are not there': [
      withText(whole),
      8,
      "shape (3,) of '<f4' needs 12 bytes, but 8 follow the header",
      `${whole.length + 22} bytes for <f4 [3]`,
      `${whole.length + 18}`,
    ],
  };

  it.each(Object.entries(faults))('is refused with %s', (_, [file, elementBytes, ...sentences]) => {
    const accepted: Accepted = { types: ['float32', 'uint8'], maxDims: 2, needsRows: true };
    const error = fault(() => parse(file, elementBytes, accepted));
    expect([error.message, error.expected, error.got]).toEqual(sentences);
  });
});

it.each([
  [
    'bfloat16',
    [2],
    'an array of npy cannot have the type "bfloat16"; expected one of float32, float64, float16,',
  ],
  ['float32', [-2], 'an array of npy cannot have the shape [-2]; expected a list of whole numbers'],
  ['float32', [1.5], 'cannot have the shape [1.5]'],
  ['float32', undefined, 'cannot have the shape [undefined]'],
])('no header is written for %s %o, which nothing could read', (type, shape, message) => {
  expect(() => encodeNpyHeader(type as NpyType, shape as number[])).toThrow(message);
});
