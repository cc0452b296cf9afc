// Tests reading parts of safetensors files, and sharded checkpoints.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  loadSafetensors,
  loadShardedSafetensors,
  openSafetensors,
  saveSafetensors,
  saveShardedSafetensors,
} from '../../../src/files/safetensors/index.ts';
import { arange, memory, ones, type Tensor } from '../../../src/index.ts';
import { collected } from '../../support/collected.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-parts-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);

const tensors = (): Record<string, Tensor> => ({
  a: arange(12).reshape([4, 3]),
  b: arange(5).to('int64'),
  // In brackets, the name is an ordinary property and sets no prototype.
  ['__proto__']: ones([2]).to('bfloat16'),
  scalar: ones([]),
});

describe('openSafetensors', () => {
  test('lists metadata and tensors, and reads one tensor or a range of its rows', async () => {
    await saveSafetensors(at('m.safetensors'), tensors(), { step: '7' });
    const file = await openSafetensors(at('m.safetensors'));
    expect(file.metadata).toEqual({ step: '7' });
    expect(new Set(file.tensors.keys())).toEqual(new Set(['a', 'b', '__proto__', 'scalar']));
    expect(file.tensors.get('a')).toMatchObject({ dtype: 'float32', shape: [4, 3] });
    const before = (await collected()).bytes;
    const rows = await file.readSlice('a', 1, 3);
    expect(rows.toArray()).toEqual([
      [3, 4, 5],
      [6, 7, 8],
    ]); // rows 1 and 2
    expect(memory().bytes - before).toBe(24);
    expect((await file.readSlice('a', 4, 4)).shape).toEqual([0, 3]);
    expect((await file.readSlice('b', 4, 5)).toArray()).toEqual([4]);
    expect((await file.read('scalar')).item()).toBe(1);
    expect((await file.read('__proto__')).dtype).toBe('bfloat16');
    await file.close();
  });

  test('reads a tensor that lies before the end of a truncated file', async () => {
    await saveSafetensors(at('m.safetensors'), { a: arange(1000), b: arange(1000) });
    const file = await openSafetensors(at('m.safetensors'));
    truncateSync(at('m.safetensors'), readFileSync(at('m.safetensors')).length - 4000); // all of b
    expect((await file.readSlice('a', 998, 1000)).toArray()).toEqual([998, 999]);
    const { tensors: count } = await collected();
    await expect(file.read('b')).rejects.toMatchObject({ code: 'ERR_TENSOR_SAFETENSORS' });
    expect(memory().tensors).toBe(count);
    await file.close();
  });

  test('refuses ranges of rows that are none, and unknown names', async () => {
    await saveSafetensors(at('m.safetensors'), tensors());
    const file = await openSafetensors(at('m.safetensors'));
    for (const [start, end] of [
      [-1, 2], // before the first row
      [3, 5], // past the last row
      [2, 1], // the end before the start
      [0.5, 1], // not an integer
    ] as const)
      await expect(file.readSlice('a', start, end)).rejects.toThrow(
        `rows ${start} to ${end} (end excluded) are not a range of tensor "a" of shape [4, 3]`,
      );
    await expect(file.readSlice('scalar', 0, 0)).rejects.toMatchObject({ code: 'ERR_TENSOR_SAFETENSORS' });
    await expect(file.read('c')).rejects.toThrow('has no tensor "c"; the file has 4 others');
    await file.close();
    await expect(openSafetensors(folder)).rejects.toMatchObject({ code: 'ERR_TENSOR_SAFETENSORS' });
  });
});

describe('sharded checkpoints', () => {
  test('load fully and partly; a file exceeds maxShardBytes only if it holds a single larger tensor', async () => {
    // Bytes of the tensors: 48 (more than fit, so alone), 40 + 4, 4.
    const want = tensors();
    const index = await saveShardedSafetensors(at('model'), want, { maxShardBytes: 45 });
    expect(readdirSync(at('model')).sort()).toEqual([
      'model-00001-of-00003.safetensors',
      'model-00002-of-00003.safetensors',
      'model-00003-of-00003.safetensors',
      'model.safetensors.index.json',
    ]);
    expect(JSON.parse(readFileSync(index, 'utf8'))).toMatchObject({
      metadata: { total_size: 96 },
      weight_map: { a: 'model-00001-of-00003.safetensors', b: 'model-00002-of-00003.safetensors' },
    });
    const got = await loadShardedSafetensors(index);
    expect(Object.keys(got).length).toBe(4);
    for (const [name, tensor] of Object.entries(want)) {
      // `got[name]` would return the prototype for '__proto__'.
      const back = Object.getOwnPropertyDescriptor(got, name)!.value as Tensor;
      expect([back.dtype, back.toArray()]).toEqual([tensor.dtype, tensor.toArray()]);
    }
    rmSync(at('model/model-00001-of-00003.safetensors'));
    expect((await loadShardedSafetensors(index, ['b'])).b!.toArray()).toEqual([0, 1, 2, 3, 4]);
    const { tensors: count } = await collected();
    await expect(loadShardedSafetensors(index)).rejects.toThrow('could not be opened');
    await expect(loadShardedSafetensors(index, ['a', 'x'])).rejects.toThrow('names no tensor "x"');
    expect(memory().tensors).toBe(count);
  });

  // mkdir() of Node.js with `recursive` never ends for this path.
  test.skipIf(process.platform !== 'linux')('are refused where no folder can be made', async () => {
    await expect(saveShardedSafetensors('/proc/ringwise', {})).rejects.toThrow('could not be made');
  });

  test('saving no tensors writes one file without tensors', async () => {
    const index = await saveShardedSafetensors(at('empty'), {});
    expect(await loadShardedSafetensors(index)).toEqual({});
    expect(await loadSafetensors(at('empty/model-00001-of-00001.safetensors'))).toEqual({});
  });

  test.each([
    ['malformed JSON', '{', 'could not be read'],
    ['a weight_map that is no object', '{"weight_map": 3}', 'has no object weight_map'],
    ['null in place of an object', 'null', 'has no object weight_map'],
    [
      'a path outside the folder',
      '{"weight_map": {"a": "../x.safetensors"}}',
      'expected a file beside the index',
    ],
    ['the parent folder as a file name', '{"weight_map": {"a": ".."}}', 'expected a file beside the index'],
    ['a number as a file name', '{"weight_map": {"a": 1}}', 'expected a file beside the index'],
  ])('a wrong index is refused: %s', async (_, text, problem) => {
    writeFileSync(at('i.json'), text);
    await expect(loadShardedSafetensors(at('i.json'))).rejects.toMatchObject({
      code: 'ERR_TENSOR_SAFETENSORS',
    });
    await expect(loadShardedSafetensors(at('i.json'))).rejects.toThrow(problem);
  });
});

const python = process.env.RINGWISE_PYTHON || 'python3';
const hasLibrary = spawnSync(python, ['-c', 'import safetensors.numpy']).status === 0;
test.skipIf(!hasLibrary)('the Python library reads our files and we read its files', async () => {
  await saveSafetensors(at('m.safetensors'), { a: arange(6).reshape([2, 3]) });
  const program = `
from safetensors.numpy import load_file, save_file
a = load_file('m.safetensors')
save_file({'b': a['a'] + 1}, 'n.safetensors')`;
  expect(spawnSync(python, ['-c', program], { cwd: folder, timeout: 240_000 }).status).toBe(0);
  expect((await loadSafetensors(at('n.safetensors'))).b!.toArray()).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]); // Python added 1
});
