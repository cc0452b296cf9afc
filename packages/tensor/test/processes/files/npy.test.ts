// Tests npy and npz files, also against NumPy where a Python has it (RINGWISE_PYTHON, default python3).
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadNpy, loadNpz, saveNpy, saveNpz } from '../../../src/files/npy/index.ts';
import { arange, type DType, memory, randn, scope, type Tensor, tensor, zeros } from '../../../src/index.ts';
import { collected } from '../../support/collected.ts';

const dtypes: DType[] = ['float32', 'float64', 'float16', 'int32', 'int64', 'uint8', 'bool'];
const python = process.env.RINGWISE_PYTHON || 'python3';
const hasNumpy = spawnSync(python, ['-c', 'import numpy']).status === 0;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-npy-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);

/** Runs a Python program in the folder and returns its output. */
function run(program: string): string {
  const { status, stdout, stderr } = spawnSync(python, ['-c', `import numpy as np\n${program}`], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 240_000,
  });
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

const someOf = (dtype: DType, shape: number[] = [2, 3]): Tensor =>
  randn(shape)
    .mul(dtype === 'uint8' ? 0 : 3)
    .add(dtype === 'uint8' ? 200 : 0)
    .to(dtype);

function expectSame(got: Tensor, want: Tensor): void {
  expect([got.dtype, got.shape]).toEqual([want.dtype, want.shape]);
  expect(got.toArray()).toEqual(want.toArray());
}

describe('npy', () => {
  test.each(dtypes)('%s comes back, whatever the shape', async (dtype) => {
    for (const shape of [[], [5], [2, 3], [0, 4], [2, 1, 3]]) {
      const want = someOf(dtype, shape);
      await saveNpy(at('a.npy'), want);
      expectSame(await loadNpy(at('a.npy')), want);
    }
    expect(readdirSync(folder)).toEqual(['a.npy']);
  });

  test('a strided tensor is written as it looks; elements begin at a multiple of 64 bytes', async () => {
    const want = arange(12).reshape([3, 4]).t();
    await saveNpy(at('a.npy'), want);
    expectSame(await loadNpy(at('a.npy')), want.contiguous());
    expect(readFileSync(at('a.npy')).length % 64).toBe(48);
  });

  test('bfloat16 is refused with what to do', async () => {
    await expect(saveNpy(at('a.npy'), zeros([2], { dtype: 'bfloat16' }))).rejects.toMatchObject({
      code: 'ERR_TENSOR_NPY',
      message: `npy: ${at('a.npy')}: NumPy has no bfloat16; use .to('float32'), or safetensors, which keeps it.`,
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  const header = (text: string, version = 1): Buffer => {
    const length = Buffer.alloc(version === 1 ? 2 : 4);
    if (version === 1) length.writeUInt16LE(text.length);
    else length.writeUInt32LE(text.length);
    return Buffer.concat([
      Buffer.from('\x93NUMPY', 'latin1'),
      Buffer.from([version, 0]),
      length,
      Buffer.from(text),
    ]);
  };
  const dict = (descr: string, shape: string, order = 'False'): string =>
    `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}, }\n`;

  test('reads column-major and big-endian files, any order of keys, and later versions', async () => {
    const columns = Buffer.alloc(24);
    for (const [i, value] of [1, 4, 2, 5, 3, 6].entries()) columns.writeInt32BE(value, 4 * i);
    writeFileSync(at('a.npy'), Buffer.concat([header(dict("'>i4'", '(2, 3)', 'True'), 2), columns]));
    expect((await loadNpy(at('a.npy'))).toArray()).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]); // rows
    const text = "{'shape': (2,), 'descr': '|b1', 'fortran_order': True}";
    writeFileSync(at('a.npy'), Buffer.concat([header(text), Buffer.from([7, 0])]));
    expectSame(await loadNpy(at('a.npy')), tensor([true, false]));
  });

  test.each<[code: string, bytes: number[], dtype: DType, values: number[]]>([
    ['|i1', [0x80, 0xff, 0x7f], 'int32', [-128, -1, 127]],
    ['<i2', [0, 0x80, 0xff, 0x7f, 1, 2], 'int32', [-32768, 32767, 513]],
    ['>i2', [0x80, 0, 0x7f, 0xff, 2, 1], 'int32', [-32768, 32767, 513]],
    ['<u2', [0, 0, 0xff, 0xff, 1, 2], 'int32', [0, 65535, 513]],
    ['>u2', [0, 0, 0xff, 0xff, 2, 1], 'int32', [0, 65535, 513]],
    ['<u4', [0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0x80], 'int64', [2 ** 32 - 1, 2 ** 31 + 1]],
    ['>u4', [0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 1], 'int64', [2 ** 32 - 1, 2 ** 31 + 1]],
    ['<u8', [1, 0, 0, 0, 1, 0, 0, 0], 'int64', [2 ** 32 + 1]],
    ['>u8', [0, 0, 0, 1, 0, 0, 0, 1], 'int64', [2 ** 32 + 1]],
    ['>f2', [0x3e, 0, 0xc0, 0], 'float16', [1.5, -2]],
    ['>f8', [0x3f, 0xf8, 0, 0, 0, 0, 0, 0], 'float64', [1.5]],
    ['>i8', [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe], 'int64', [-2]],
  ])('reads %s without loss', async (code, bytes, dtype, values) => {
    writeFileSync(
      at('a.npy'),
      Buffer.concat([header(dict(`'${code}'`, `(${values.length},)`)), Buffer.from(bytes)]),
    );
    const got = await loadNpy(at('a.npy'));
    expect([got.dtype, got.toArray()]).toEqual([dtype, values]);
  });

  test('u8 that int64 does not hold is refused', async () => {
    const large = BigUint64Array.of(0n, 2n ** 64n - 1n);
    writeFileSync(at('a.npy'), Buffer.concat([header(dict("'<u8'", '(2,)')), Buffer.from(large.buffer)]));
    const { tensors: count } = await collected();
    await expect(loadNpy(at('a.npy'))).rejects.toMatchObject({
      code: 'ERR_TENSOR_NPY',
      message: `npy: ${at('a.npy')}: element 1 is 18446744073709551615, and int64 holds at most 9223372036854775807.`,
    });
    expect(memory().tensors).toBe(count);
  });

  test.each([
    ['nothing', Buffer.alloc(0), 'it does not begin as a .npy file does'],
    ['another file', Buffer.from('PK and more than twelve'), 'it does not begin as a .npy file does'],
    ['a short header', header(dict("'<f4'", '(1,)')).subarray(0, 20), 'the header should end at byte'],
    ['too few elements', header(dict("'<f4'", '(2, 3)')), 'needs 24 bytes, but 0 follow the header'],
    [
      'too many',
      Buffer.concat([header(dict("'<f4'", '()')), Buffer.alloc(8)]),
      'needs 4 bytes, but 8 follow',
    ],
    [
      'more elements than can be',
      header(dict("'<f8'", '(9007199254740991, 9007199254740991)')),
      'needs 6.49',
    ],
    [
      'sizes beyond integers',
      header(dict("'<f4'", '(99999999999999999999,)')),
      'expected sizes that are integers',
    ],
    ['negative sizes', header(dict("'<f4'", '(-1,)')), 'expected sizes that are integers ≥ 0'],
    ['objects', header(dict("'|O'", '(1,)')), "dtype '|O' is not supported, as Python objects are"],
    ['records', header(dict("[('a', '<f4')]", '(1,)')), 'the header cannot be read from'],
    ['no dictionary', header('none\n'), 'the header is not a dictionary: none'],
    ['a missing key', header("{'descr': '<f4', 'shape': (1,)}\n"), 'the header has no fortran_order'],
    ['a huge header', header('', 2).fill(0xff, 8, 12), 'the header claims to end at byte'],
    ['an unknown version', header('', 9), 'format version 9 is not known'],
    [
      'more dimensions than there may be',
      Buffer.concat([header(dict("'<f4'", `(${'1, '.repeat(17)})`)), Buffer.alloc(4)]),
      'the shape has 17 dimensions; expected at most 16',
    ],
    [
      'sizes beyond memory of no elements',
      header(dict("'<f4'", `(${'9007199254740991, '.repeat(16)}0)`)),
      'the shape has 17 dimensions',
    ],
  ])('refuses %s', async (_, bytes, problem) => {
    writeFileSync(at('a.npy'), bytes);
    const before = memory();
    const error = await loadNpy(at('a.npy')).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ERR_TENSOR_NPY' });
    expect(String(error)).toContain(problem);
    expect(memory().allocations).toBe(before.allocations);
    expect(memory().tensors).toBeLessThanOrEqual(before.tensors); // the collector may take those of tests before
  });

  test('a missing file and a missing folder are refused', async () => {
    await expect(loadNpy(at('b.npy'))).rejects.toThrow('could not be read (ENOENT');
    await expect(saveNpy(at('no/b.npy'), zeros([1]))).rejects.toThrow(
      `could not be written (there is no folder '${at('no')}'; make it first)`,
    );
  });
});

describe('npz', () => {
  const all = (): Record<string, Tensor> =>
    Object.fromEntries([...dtypes.map((dtype) => [dtype, someOf(dtype)] as const), ['ü/empty', zeros([0])]]);

  test.each([false, true])('comes back by name, deflated: %s', async (compress) => {
    const tensors = all();
    await saveNpz(at('a.npz'), tensors, { compress });
    const got = await loadNpz(at('a.npz'));
    expect(Object.keys(got)).toEqual(Object.keys(tensors));
    for (const [name, want] of Object.entries(tensors)) expectSame(got[name]!, want);
    await saveNpz(at('b.npz'), {});
    expect(await loadNpz(at('b.npz'))).toEqual({});
  });

  test('equal tensors give equal files; zeros are deflated to little', async () => {
    const tensors = { a: zeros([1000]) };
    await saveNpz(at('a.npz'), tensors, { compress: true });
    await saveNpz(at('b.npz'), tensors, { compress: true });
    expect(readFileSync(at('a.npz')).equals(readFileSync(at('b.npz')))).toBe(true);
    expect(readFileSync(at('a.npz')).length).toBeLessThan(400);
  });

  test('a flipped bit gives an error of the package or none; a cut file always gives one', async () => {
    await saveNpz(at('a.npz'), { x: arange(5), y: arange(3).to('uint8') }, { compress: true });
    const good = readFileSync(at('a.npz'));
    const before = await collected();
    const outcome = async (bytes: Buffer): Promise<void> => {
      writeFileSync(at('b.npz'), bytes);
      try {
        for (const tensor of Object.values(await loadNpz(at('b.npz')))) tensor.dispose();
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_TENSOR_NPY' });
      }
      expect(memory().tensors).toBe(before.tensors);
    };
    for (let i = 0; i < good.length; i += 3) {
      const bad = Buffer.from(good);
      bad[i] = bad[i]! ^ (1 << (i % 8));
      await outcome(bad);
    }
    for (let length = 0; length < good.length; length += 7) {
      writeFileSync(at('b.npz'), good.subarray(0, length));
      await expect(loadNpz(at('b.npz'))).rejects.toMatchObject({ code: 'ERR_TENSOR_NPY' });
    }
  });

  test('a member that claims to unpack to more than it can is refused before it is unpacked', async () => {
    await saveNpz(at('a.npz'), { x: arange(5) }, { compress: true });
    const bytes = readFileSync(at('a.npz'));
    const central = bytes.lastIndexOf('PK\x01\x02', undefined, 'latin1');
    bytes.writeUInt32LE(3e9, central + 24);
    writeFileSync(at('a.npz'), bytes);
    await expect(loadNpz(at('a.npz'))).rejects.toThrow('"x.npy" cannot have 3000000000 bytes');
  });
});

describe('a handmade archive', () => {
  const npyOf = (shape: string, elements: Buffer): Buffer => {
    const text = `{'descr': '|u1', 'fortran_order': False, 'shape': ${shape}, }\n`;
    const start = Buffer.from('\x93NUMPY\x01\0\0\0', 'latin1');
    start.writeUInt16LE(text.length, 8);
    return Buffer.concat([start, Buffer.from(text), elements]);
  };
  interface Entry {
    readonly name: string;
    readonly content: Buffer;
    readonly packed: Buffer;
    /** Offset of the local header. Default: after the previous entry. */
    readonly offset?: number;
    /** Size that the directory states. */
    readonly bytes?: number;
  }
  const entry = (name: string, content: Buffer, rest: Partial<Entry> = {}): Entry => ({
    ...{ name, content, packed: deflateRawSync(content) },
    ...rest,
  });
  /** Writes local headers in order, except for entries with an offset, and a directory of all entries. */
  function archive(entries: readonly Entry[]): Buffer {
    const locals: Buffer[] = [];
    const directory: Buffer[] = [];
    let end = 0;
    for (const { name, content, packed, offset, bytes = content.length } of entries) {
      const fields = Buffer.alloc(26);
      fields.writeUInt16LE(8, 4);
      fields.writeUInt32LE(crc32(content), 10);
      fields.writeUInt32LE(packed.length, 14);
      fields.writeUInt32LE(bytes, 18);
      fields.writeUInt16LE(name.length, 22);
      const position = Buffer.alloc(14);
      position.writeUInt32LE(offset ?? end, 10);
      directory.push(Buffer.from('PK\x01\x02\x14\0', 'latin1'), fields, position, Buffer.from(name));
      if (offset !== undefined) continue;
      locals.push(Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name), packed);
      end += 30 + name.length + packed.length;
    }
    const tail = Buffer.alloc(22);
    tail.write('PK\x05\x06', 'latin1');
    tail.writeUInt16LE(entries.length, 10);
    tail.writeUInt32LE(
      directory.reduce((sum, { length }) => sum + length, 0),
      12,
    );
    tail.writeUInt32LE(end, 16);
    return Buffer.concat([...locals, ...directory, tail]);
  }
  const million = npyOf('(1000000,)', Buffer.alloc(1_000_000));
  const small = npyOf('(2,)', Buffer.from([1, 2]));

  async function refusal(bytes: Buffer, options?: { readonly maxBytes: number }): Promise<string> {
    writeFileSync(at('a.npz'), bytes);
    const { allocations } = memory();
    const { arrayBuffers } = process.memoryUsage();
    const error = await loadNpz(at('a.npz'), options).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ERR_TENSOR_NPY' });
    expect(memory().allocations).toBe(allocations);
    expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 24);
    return (error as Error).message;
  }

  test('whose entries are right is read', async () => {
    writeFileSync(at('a.npz'), archive([entry('a.npy', small), entry('b.npy', small)]));
    expect((await loadNpz(at('a.npz'))).b!.toArray()).toEqual([1, 2]);
  });

  test('whose members share their bytes is refused: 60 KB for 1 GB', async () => {
    const first = entry('0.npy', million);
    const others = Array.from({ length: 999 }, (_, i) => ({ ...first, name: `${i + 1}.npy`, offset: 0 }));
    const bytes = archive([first, ...others]);
    expect(bytes.length).toBeLessThan(70_000);
    expect(await refusal(bytes)).toContain('"1.npy" has another name where it begins');
  });

  test('with a member that begins within another is refused', async () => {
    const inner = archive([entry('b.npy', small)]).subarray(0, 30 + 5 + deflateRawSync(small).length);
    const outer = { name: 'a.npy', content: small, packed: inner };
    const bytes = archive([outer, entry('b.npy', small, { offset: 30 + 5 })]);
    expect(await refusal(bytes)).toContain('"b.npy" overlaps "a.npy"');
  });

  test('with a member that reaches into the directory is refused', async () => {
    const whole = archive([entry('a.npy', small)]);
    const directory = whole.indexOf('PK\x01\x02', 0, 'latin1');
    whole.writeUInt32LE(whole.readUInt32LE(directory + 20) + 10, directory + 20);
    expect(await refusal(whole)).toContain('"a.npy" reaches into the directory');
  });

  test('with one name for two members is refused', async () => {
    expect(await refusal(archive([entry('a.npy', small), entry('a.npy', small)]))).toContain(
      '"a.npy" is there twice',
    );
  });

  test('with a shape that needs more bytes than there are is refused before memory is taken', async () => {
    const huge = npyOf('(1000000000,)', Buffer.alloc(2 ** 20));
    expect(await refusal(archive([entry('a.npy', huge)]))).toContain('needs 1000000000 bytes, but 1048576');
  });

  test('that states a size less than what comes out is refused', async () => {
    const lie = entry('a.npy', npyOf('(2,)', Buffer.alloc(2 ** 26)), { bytes: small.length });
    writeFileSync(at('a.npz'), archive([lie]));
    await expect(loadNpz(at('a.npz'))).rejects.toThrow('"a.npy" is damaged');
  });

  test('larger than maxBytes is refused', async () => {
    const bytes = archive([entry('a.npy', million), entry('b.npy', million)]);
    const problem = 'more than maxBytes, 2000000; raise it if you trust the file';
    expect(await refusal(bytes, { maxBytes: 2_000_000 })).toContain(problem);
    expect((await loadNpz(at('a.npz'), { maxBytes: 3_000_000 })).b!.count).toBe(1_000_000);
    expect(await refusal(archive([entry('a.npy', small, { bytes: 3e9 })]))).toContain(
      'cannot have 3000000000',
    );
  });
});

describe.skipIf(!hasNumpy)('with NumPy', () => {
  test('opens what we write', async () => {
    const tensors = Object.fromEntries(dtypes.map((dtype) => [dtype, someOf(dtype, [3, 2])]));
    await saveNpz(at('a.npz'), tensors);
    await saveNpz(at('b.npz'), tensors, { compress: true });
    for (const [name, value] of Object.entries(tensors)) await saveNpy(at(`${name}.npy`), value);
    const text = run(`
import json
for file in ['a.npz', 'b.npz']:
    arrays = np.load(file)
    for name in arrays.files:
        assert (arrays[name] == np.load(name + '.npy')).all()
print(json.dumps({n: [str(a.dtype), a.astype('f8').tolist()] for n, a in ((n, np.load(n + '.npy')) for n in arrays.files)}))`);
    const got = JSON.parse(text) as Record<string, [string, number[][]]>;
    for (const [name, value] of Object.entries(tensors)) expect(got[name]).toEqual([name, value.toArray()]);
  });

  test('writes what we open, in both orders', async () => {
    run(`
arrays = {c: np.arange(24).reshape(2, 3, 4).astype(c) for c in ['f4', 'f8', 'f2', 'i4', 'i8', 'u1', 'b1', '>f4', '>f2', 'i1', 'i2', '>i2', 'u2', '>u4', 'u8']}
np.savez('a.npz', **{k.replace('>', 'big'): v for k, v in arrays.items()}, f=np.asfortranarray(arrays['f4']), s=np.float32(3))
np.savez_compressed('b.npz', **{k.replace('>', 'big'): v for k, v in arrays.items()})
np.save('f.npy', np.asfortranarray(arrays['i8']))`);
    const want = arange(24).reshape([2, 3, 4]);
    for (const file of ['a.npz', 'b.npz']) {
      const { b1, s, ...rest } = await loadNpz(at(file));
      expect(b1!.toArray()).toEqual(want.to('bool').toArray());
      if (s) expect([s.shape, s.item()]).toEqual([[], 3]);
      for (const got of Object.values(rest)) expect(got.toArray()).toEqual(want.toArray());
    }
    expect((await loadNpy(at('f.npy'))).toArray()).toEqual(want.toArray());
  });
});

test('tensors that are loaded in a scope are disposed at its end', async () => {
  await saveNpz(at('a.npz'), { a: arange(3), b: arange(4) });
  const { tensors } = await collected();
  await scope(async () => {
    await loadNpz(at('a.npz'));
  });
  expect(memory().tensors).toBe(tensors);
});
