// Readers refuse files that were made to exhaust memory, to make the reader wait or run code, or to be mistaken for
// others.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeZip } from '@ringwise/formats';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadNpy, loadNpz, saveNpy, saveNpz } from '../../../src/files/npy/index.ts';
import {
  loadSafetensors,
  loadShardedSafetensors,
  openSafetensors,
  safetensorsMetadata,
  saveSafetensors,
  saveShardedSafetensors,
} from '../../../src/files/safetensors/index.ts';
import { memory, type Tensor, tensor } from '../../../src/index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-hostile-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);

function write(name: string, bytes: Uint8Array | string): string {
  writeFileSync(at(name), bytes);
  return at(name);
}

/**
 * Checks that `load` rejects with this code, without an allocation for tensors, and with less than 16 MiB of array
 * buffers. Returns the message.
 */
async function refusal(load: () => Promise<unknown>, code: string): Promise<string> {
  const { allocations, tensors } = memory();
  const { arrayBuffers } = process.memoryUsage();
  const error = await load().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'TensorError', code });
  expect(memory().allocations).toBe(allocations);
  expect(memory().tensors).toBeLessThanOrEqual(tensors); // the collector may have freed tensors of earlier tests
  expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 24);
  return (error as Error).message;
}

function npy(shape: string, elements: Uint8Array, descr = "'|u1'"): Buffer {
  return npyOf(`{'descr': ${descr}, 'fortran_order': False, 'shape': ${shape}, }\n`, elements);
}

function npyOf(text: string, elements: Uint8Array): Buffer {
  const start = Buffer.from('\x93NUMPY\x02\0\0\0\0\0', 'latin1');
  start.writeUInt32LE(text.length, 8);
  return Buffer.concat([start, Buffer.from(text), elements]);
}

const small = npy('(2,)', Uint8Array.of(1, 2));
// packages/formats tests archives with wrong fields.
describe('npz', () => {
  async function refused(
    members: Readonly<Record<string, Buffer>>,
    options?: { maxBytes?: number },
  ): Promise<string> {
    const contents = Object.entries(members).map(([name, bytes]) => ({ name, pieces: [bytes] }));
    write('a.npz', Buffer.concat(await encodeZip(contents, false)));
    return refusal(() => loadNpz(at('a.npz'), options), 'ERR_TENSOR_NPY');
  }

  test('names cannot write to a terminal', async () => {
    const message = await refused({ '\u001b[2Jx': small });
    expect(message).toContain('"\\u001b[2Jx" is no array');
  });

  test('types that become wider in memory count as what they become', async () => {
    const members = { 'a.npy': npy('(1000,)', new Uint8Array(1000), "'|i1'") };
    expect(await refused(members, { maxBytes: 3999 })).toContain(
      'its arrays take 4000 bytes, more than maxBytes',
    );
    expect(Object.keys(await loadNpz(at('a.npz'), { maxBytes: 4000 }))).toEqual(['a']);
  });

  test('a header of an array that claims other bytes than the member has is refused before memory is taken', async () => {
    for (const shape of ['(3,)', '(1000000000,)', '(9007199254740991, 9007199254740991)', '()'])
      expect(await refused({ 'a.npy': npy(shape, Uint8Array.of(1, 2)) })).toMatch(
        /"a\.npy": shape .* needs .* bytes, but 2 follow/,
      );
    const long = Buffer.from(small);
    long.writeUInt32LE(90_000, 8);
    expect(await refused({ 'a.npy': long })).toContain('the header of "a.npy" is truncated');
    expect(await refused({ 'a.npy': small.subarray(0, 5) })).toContain('"a.npy": it does not begin');
  });
});

describe('npy', () => {
  const refused = (bytes: Uint8Array): Promise<string> =>
    refusal(() => loadNpy(write('a.npy', bytes)), 'ERR_TENSOR_NPY');

  test('a header that is slow to parse is refused at once', async () => {
    for (const text of [
      `{${' '.repeat(99_000)}x`,
      `{${"'a': 'b' ".repeat(9000)}}`,
      `{'shape': (${'('.repeat(90_000)}}`,
    ])
      expect(await refused(npyOf(text, Buffer.alloc(0)))).toMatch(/the header (is not|cannot be)/);
  }, 2000);

  test('a key of the header that is there twice is refused', async () => {
    const text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape': (2,), }";
    expect(await refused(npyOf(text, Buffer.alloc(2)))).toContain('the header has shape twice');
  });

  test('Python objects are refused, by themselves and in records', async () => {
    expect(await refused(npy('(1,)', Buffer.alloc(8), "'|O'"))).toContain(
      'Python objects are pickled programs',
    );
    expect(await refused(npy('(1,)', Buffer.alloc(8), "[('a', '|O')]"))).toContain('cannot be read from');
  });

  test('messages are short, and cannot write to a terminal', async () => {
    const texts = [
      `{'descr': '${'x'.repeat(50_000)}', 'fortran_order': False, 'shape': (2,)}`,
      `{'descr': '|u1', 'fortran_order': '${'x'.repeat(50_000)}', 'shape': (2,)}`,
      `{'descr': '|u1', 'fortran_order': False, 'shape': (${' '.repeat(50_000)}3,)}`,
      `{\u001b[2J${'x'.repeat(50_000)}`,
      `{'\u001b[2J${'x'.repeat(50_000)}}`,
    ];
    for (const text of texts) {
      const message = await refused(npyOf(text, Buffer.alloc(2)));
      expect(message.length).toBeLessThan(500);
      expect(message).not.toContain('\u001b');
    }
  });

  test('shapes of no elements, and of more than memory has', async () => {
    const none = await loadNpy(write('a.npy', npy('(9007199254740991, 0)', Buffer.alloc(0))));
    expect([none.shape, none.count]).toEqual([[9007199254740991, 0], 0]);
    none.dispose();
    const start = npy('(1099511627776,)', Buffer.alloc(0));
    truncateSync(write('a.npy', start), start.length + 2 ** 40);
    expect(await refusal(() => loadNpy(at('a.npy')), 'ERR_TENSOR_NPY')).toContain(
      'no memory for 1099511627776',
    );
  });
});

describe('safetensors', () => {
  function safetensors(text: string, data = 0): string {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
    return write('a.safetensors', Buffer.concat([length, Buffer.from(text), Buffer.alloc(data)]));
  }
  const refused = (text: string, data = 0): Promise<string> =>
    refusal(() => loadSafetensors(safetensors(text, data)), 'ERR_TENSOR_SAFETENSORS');
  const u8 = (begin: number, end: number): string =>
    `{"dtype":"U8","shape":[${end - begin}],"data_offsets":[${begin},${end}]}`;

  test('a name that is there twice is refused, however it is written', async () => {
    expect(await refused(`{"a":${u8(0, 1)},"a":${u8(0, 2)}}`, 2)).toContain('it has "a" twice');
    expect(await refused(`{"a":${u8(0, 1)},"\\u0061":${u8(0, 2)}}`, 2)).toContain('it has "a" twice');
    expect(await refused(`{"x\\"":${u8(0, 1)}, "x\\"" : ${u8(0, 2)}}`, 2)).toContain('twice');
    expect(await refused(`{"__proto__":${u8(0, 1)},"__proto__":${u8(0, 2)}}`, 2)).toContain('twice');
    const twoTypes = '{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}';
    expect(await refused(twoTypes, 1)).toContain('it has "dtype" twice');
    expect(await refused('{"__metadata__":{"k":"1","k":"2"}}')).toContain('it has "k" twice');
    expect(await refused('{"__metadata__":{},"__metadata__":{}}')).toContain('it has "__metadata__" twice');
  });

  test('names that only look alike are no reason to refuse', async () => {
    const text = `{"a\\\\":${u8(0, 1)},"a":${u8(1, 2)},"b\\"a":${u8(2, 3)},"__metadata__":{"a":"\\"a\\":","b":"{"}}`;
    const loaded = await loadSafetensors(safetensors(text, 3));
    expect(Object.keys(loaded)).toEqual(['a\\', 'a', 'b"a']);
    for (const each of Object.values(loaded)) each.dispose();
    expect(await safetensorsMetadata(at('a.safetensors'))).toEqual({ a: '"a":', b: '{' });
  });

  test('metadata that is no text is refused', async () => {
    for (const value of ['1', 'null', '["a"]', '{"a":1}', '{"a":null}', '{"a":{"b":"c"}}', '"a"'])
      expect(await refused(`{"__metadata__":${value}}`)).toContain(
        '__metadata__ is not an object of strings',
      );
  });

  test('brackets without an end are refused before each takes memory', async () => {
    for (const bracket of ['[', '{"a":'])
      expect(await refused(`{"a":${bracket.repeat(500_000)}`)).toContain('it is nested more than 8 deep');
    expect(await refused(`{"a":{"dtype":"U8","shape":[[[[[1]]]]],"data_offsets":[0,1]}}`, 1)).toContain(
      'has shape [[[[[1',
    );
  });

  test('messages are short, and cannot write to a terminal', async () => {
    const long = 'x'.repeat(100_000);
    const texts = [
      `{"${long}":5}`,
      `{"\\u001b[2J":5}`,
      `{"a":{"dtype":"${long}","shape":[],"data_offsets":[0,1]}}`,
      `{"a":{"dtype":"U8","shape":"${long}","data_offsets":[0,1]}}`,
      `{"a":{"dtype":"U8","shape":[1],"data_offsets":"${long}"}}`,
      `{"${long}":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}`,
      `{"${long}":1,"${long}":1}`,
    ];
    for (const text of texts) {
      const message = await refused(text, 1);
      expect(message.length).toBeLessThan(500);
      expect(message).not.toContain('\u001b');
    }
  });

  test('an empty header, malformed JSON, and JSON that is no object are refused', async () => {
    for (const text of ['', '{', '"', '{"a', '{"a":"', 'null', '5', '"a":{}', '{"\\q":1}', '}]}', '\ufeff{}'])
      expect(await refused(text)).toMatch(/the header is not (JSON|a JSON object)/);
  });

  test('an index that lies is refused', async () => {
    const index = (text: string): Promise<string> =>
      refusal(() => loadShardedSafetensors(write('index.json', text)), 'ERR_TENSOR_SAFETENSORS');
    expect(await index('{"weight_map":{"a":"x","a":"y"}}')).toContain('it has "a" twice');
    expect(await index(`{"a":${'['.repeat(1_000_000)}`)).toContain('nested more than 8 deep');
    for (const file of ['"../x"', '"/etc/passwd"', '".."', '""', '5', '"a/b"'])
      expect(await index(`{"weight_map":{"a":${file}}}`)).toContain('expected a file beside the index');
    expect(await index('{"weight_map":{"a":"."}}')).toContain('expected a regular file, got a folder');
    truncateSync(write('index.json', '{'), 2 ** 33);
    const load = (): Promise<unknown> => loadShardedSafetensors(at('index.json'));
    expect(await refusal(load, 'ERR_TENSOR_SAFETENSORS')).toContain('expected at most 100000000');
  });
});

describe('a path of no regular file', () => {
  const readers: Readonly<Record<string, [code: string, load: (path: string) => Promise<unknown>]>> = {
    loadNpy: ['ERR_TENSOR_NPY', loadNpy],
    loadNpz: ['ERR_TENSOR_NPY', loadNpz],
    loadSafetensors: ['ERR_TENSOR_SAFETENSORS', loadSafetensors],
    openSafetensors: ['ERR_TENSOR_SAFETENSORS', openSafetensors],
    safetensorsMetadata: ['ERR_TENSOR_SAFETENSORS', safetensorsMetadata],
    loadShardedSafetensors: ['ERR_TENSOR_SAFETENSORS', loadShardedSafetensors],
  };

  test.each(Object.entries(readers))('is refused by %s, which does not wait', async (_, [code, load]) => {
    execFileSync('mkfifo', [at('pipe')]);
    mkdirSync(at('folder'));
    for (const [path, kind] of [
      [at('pipe'), 'a pipe'],
      [at('folder'), 'a folder'],
      ['/dev/zero', 'a device'],
    ] as const) {
      const message = await refusal(() => load(path), code);
      expect(message).toContain(path);
      expect(message).toContain(`expected a regular file, got ${kind}`);
    }
    expect(await refusal(() => load(at('none')), code)).toContain('ENOENT');
  });
});

describe('wrong arguments', () => {
  const a = tensor([1]);
  const wrong = null as never;
  const calls: Readonly<Record<string, [call: () => Promise<unknown>, message: string]>> = {
    'loadNpy()': [
      () => loadNpy(undefined as never),
      'loadNpy: path: expected a path, as a string, got undefined.',
    ],
    'loadNpy(URL)': [
      () => loadNpy(new URL('file:///a') as never),
      'loadNpy: path: expected a path, as a string',
    ],
    'loadNpy(symbol)': [() => loadNpy(Symbol('a') as never), 'loadNpy: path: expected a path'],
    'loadNpz(5)': [() => loadNpz(5 as never), 'loadNpz: path: expected a path'],
    'loadNpz maxBytes': [
      () => loadNpz('a', { maxBytes: -1 }),
      'loadNpz: maxBytes: expected an integer ≥ 1, got -1.',
    ],
    'saveNpy(tensor)': [() => saveNpy(a as never, wrong), 'saveNpy: path: expected a path'],
    'saveNpy(path)': [() => saveNpy('a', [1] as never), 'saveNpy: tensor: expected a tensor, got [1].'],
    'saveNpz(null)': [
      () => saveNpz('a', wrong),
      'saveNpz: tensors: expected an object of tensors by name, got null',
    ],
    'saveNpz(tensor)': [
      () => saveNpz('a', a as never),
      'saveNpz: tensors: expected an object of tensors by name',
    ],
    'saveNpz(array)': [
      () => saveNpz('a', [a] as never),
      'saveNpz: tensors: expected an object of tensors by name',
    ],
    'saveNpz(Map)': [
      () => saveNpz('a', new Map([['a', a]]) as never),
      'expected an object of tensors by name',
    ],
    'saveNpz({ a: 1 })': [
      () => saveNpz('a', { a: 1 } as never),
      'saveNpz: tensors: expected an object of tensors',
    ],
    'openSafetensors()': [() => openSafetensors(wrong), 'openSafetensors: path: expected a path'],
    'loadSafetensors()': [() => loadSafetensors(wrong), 'loadSafetensors: path: expected a path'],
    'safetensorsMetadata()': [() => safetensorsMetadata(wrong), 'safetensorsMetadata: path: expected a path'],
    'saveSafetensors()': [() => saveSafetensors(wrong, { a }), 'saveSafetensors: path: expected a path'],
    'saveSafetensors(path)': [
      () => saveSafetensors('a', wrong),
      'expected an object of tensors by name, got null',
    ],
    'saveSharded()': [
      () => saveShardedSafetensors(wrong, { a }),
      'saveShardedSafetensors: folder: expected a path',
    ],
    'saveSharded(folder)': [
      () => saveShardedSafetensors('a', wrong),
      'expected an object of tensors by name',
    ],
    'loadSharded()': [
      () => loadShardedSafetensors(wrong),
      'loadShardedSafetensors: indexPath: expected a path',
    ],
    'loadSharded(path, 5)': [
      () => loadShardedSafetensors('a', 5 as never),
      'names: expected a list of names, got 5',
    ],
    'loadSharded(path, text)': [() => loadShardedSafetensors('a', 'abc'), 'names: expected a list of names'],
  };

  test.each(Object.entries(calls))('%s is refused', async (_, [call, message]) => {
    const error = await call().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'TensorError', code: 'ERR_TENSOR_ARGUMENT' });
    expect((error as Error).message).toContain(message);
  });

  test('wrong reads of an open file are refused, and all reads of a closed one', async () => {
    await saveSafetensors(at('a.safetensors'), { a: tensor([1, 2]) });
    const file = await openSafetensors(at('a.safetensors'));
    const problem = (call: () => Promise<Tensor>): Promise<string> => refusal(call, 'ERR_TENSOR_SAFETENSORS');
    expect(await problem(() => file.read(undefined as never))).toContain('has no tensor "undefined"');
    expect(await problem(() => file.read(Symbol('a') as never))).toContain('has no tensor "Symbol(a)"');
    expect(await problem(() => file.readSlice('a', Symbol('a') as never, 1))).toContain(
      'are not a range of tensor "a"',
    );
    expect(await problem(() => file.readSlice('a', 0.5, 1))).toContain('are not a range of tensor "a"');
    await expect(file.read('a', { device: 5 as never })).rejects.toMatchObject({ name: 'TensorError' });
    await file.close();
    const closed = await file.read('a').catch((reason: unknown) => reason);
    expect(closed).toMatchObject({ code: 'ERR_TENSOR_SAFETENSORS' });
    expect((closed as Error).message).toContain('tensor "a" could not be read');
  });

  test('a folder that cannot be made gives an error of the package', async () => {
    write('file', 'x');
    await expect(saveShardedSafetensors(at('file/b'), { a })).rejects.toMatchObject({
      code: 'ERR_TENSOR_SAFETENSORS',
    });
  });
});

const python = process.env.RINGWISE_PYTHON || 'python3';
const hasNumpy = spawnSync(python, ['-c', 'import numpy']).status === 0;

test.skipIf(!hasNumpy)('archives of NumPy, with Zip64 in every member, are read', async () => {
  const program = `import numpy as np; np.savez('a.npz', a=np.arange(3, dtype='u1')); np.savez_compressed('b.npz', a=np.zeros(1 << 22, 'u1'))`;
  expect(spawnSync(python, ['-c', program], { cwd: folder }).status).toBe(0);
  expect((await loadNpz(at('a.npz'))).a!.toArray()).toEqual([0, 1, 2]);
  expect((await loadNpz(at('b.npz'))).a!.count).toBe(2 ** 22);
});
