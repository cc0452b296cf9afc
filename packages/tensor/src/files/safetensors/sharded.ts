// A checkpoint in several files, as Hugging Face's libraries write them. An index file maps each tensor to its file,
// which is in the same folder.
import { basename, dirname, join } from 'node:path';
import { maxSafetensorsHeaderBytes as maxIndexBytes, parseJson, quoted } from '@ringwise/formats';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, type Check, checkValue, positive } from '../../checks/value-checks.ts';
import { bytesOf } from '../../core/dtype.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badSafetensors } from '../../errors.ts';
import { makeFolder, replaceFile } from '../files.ts';
import { aPath, openRegular, tensorsByName } from './checks.ts';
import { type LoadOptions, loadOptions } from './file.ts';
import { collected, saveSafetensors, withFile } from './whole.ts';

const indexName = 'model.safetensors.index.json';
/** Maximum number of nested levels of an index. Ours has two; other libraries may add members. */
const mostDepth = 8;

const someNames: Check = {
  expected: 'a list of names',
  fits: (value) => typeof value === 'object' && value !== null && Symbol.iterator in value,
};

/** Options of functions that save safetensors in several files. */
export interface ShardOptions {
  /** Maximum bytes of tensors in one file; a single larger tensor gets its own file. Default 5 · 10⁹. */
  readonly maxShardBytes?: number;
  /** Texts to write into each file. */
  readonly metadata?: Readonly<Record<string, string>>;
}

const shardOptions = optionChecks<ShardOptions>({
  maxShardBytes: { ...positive, fits: (value) => typeof value === 'number' && value > 0 },
  metadata: anything,
});

const sizeOf = (tensor: Tensor): number => tensor.count * bytesOf(tensor.dtype);

/** Groups tensors in the given order, so that each group fits into one file. */
function shardsOf(tensors: Readonly<Record<string, Tensor>>, maxBytes: number): Record<string, Tensor>[] {
  const shards: [string, Tensor][][] = [[]];
  let bytes = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    if (bytes > 0 && bytes + sizeOf(tensor) > maxBytes) {
      shards.push([]);
      bytes = 0;
    }
    shards.at(-1)!.push([name, tensor]);
    bytes += sizeOf(tensor);
  }
  return shards.map((shard) => Object.fromEntries(shard));
}

/**
 * Writes tensors to files model-00001-of-0000N.safetensors in `folder`, and last their index, whose path it returns.
 * Each file is replaced as a whole, but not all files at once: after a crash, a folder that had a checkpoint of as many
 * files may have old and new ones. Tensors must neither change nor be disposed until the promise settles.
 */
export async function saveShardedSafetensors(
  folder: string,
  tensors: Readonly<Record<string, Tensor>>,
  options: ShardOptions = {},
): Promise<string> {
  checkValue('saveShardedSafetensors: folder', folder, aPath);
  checkValue('saveShardedSafetensors: tensors', tensors, tensorsByName);
  checkOptions('saveShardedSafetensors', options, shardOptions);
  const { maxShardBytes = 5e9, metadata } = options;
  const shards = shardsOf(tensors, maxShardBytes);
  const five = (value: number): string => String(value).padStart(5, '0');
  const path = join(folder, indexName);
  const files: [string, string][] = [];
  try {
    await makeFolder(folder);
  } catch (error) {
    throw badSafetensors(folder, `could not be made (${(error as Error).message})`, error);
  }
  for (const [i, shard] of shards.entries()) {
    const file = `model-${five(i + 1)}-of-${five(shards.length)}.safetensors`;
    await saveSafetensors(join(folder, file), shard, metadata);
    for (const name of Object.keys(shard)) files.push([name, file]);
  }
  const total = Object.values(tensors).reduce((sum, tensor) => sum + sizeOf(tensor), 0);
  const index = { metadata: { total_size: total }, weight_map: Object.fromEntries(files) };
  try {
    await replaceFile(path, [Buffer.from(`${JSON.stringify(index, null, 2)}\n`)]);
  } catch (error) {
    throw badSafetensors(path, `could not be written (${(error as Error).message})`, error);
  }
  return path;
}

async function readText(path: string): Promise<string> {
  const file = await openRegular(path);
  try {
    const { size } = await file.stat();
    if (size > maxIndexBytes) throw new Error(`it has ${size} bytes; expected at most ${maxIndexBytes}`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

/** Reads an index. Returns the names of tensors by file; files must be in the same folder as the index. */
async function readIndex(path: string): Promise<Map<string, string[]>> {
  let index: unknown;
  try {
    index = parseJson(await readText(path), mostDepth);
  } catch (error) {
    throw badSafetensors(path, `could not be read (${(error as Error).message})`, error);
  }
  const map = (index as { weight_map?: unknown } | null)?.weight_map;
  if (typeof map !== 'object' || map === null)
    throw badSafetensors(path, 'is no index: it has no object weight_map');
  const names = new Map<string, string[]>();
  for (const [name, file] of Object.entries(map)) {
    if (typeof file !== 'string' || file === '' || basename(file) !== file || file === '..')
      throw badSafetensors(
        path,
        `tensor ${quoted(name)} lies in ${JSON.stringify(file).slice(0, 80)}; expected a file beside the index`,
      );
    const inside = names.get(file);
    if (inside) inside.push(name);
    else names.set(file, [name]);
  }
  return names;
}

/**
 * Reads the tensors that an index names, all or those in `names`, into new memory. The tensors belong to the open
 * scope, or to the caller. Opens only files that contain some of them.
 */
export async function loadShardedSafetensors(
  indexPath: string,
  names?: Iterable<string>,
  options: LoadOptions = {},
): Promise<Record<string, Tensor>> {
  checkValue('loadShardedSafetensors: indexPath', indexPath, aPath);
  if (names !== undefined) checkValue('loadShardedSafetensors: names', names, someNames);
  checkOptions('loadShardedSafetensors', options, loadOptions);
  const byFile = await readIndex(indexPath);
  const wanted = names === undefined ? null : new Set(names);
  const known = new Set([...byFile.values()].flat());
  const missing = wanted ? [...wanted].filter((name) => !known.has(name)) : [];
  if (missing.length > 0) throw badSafetensors(indexPath, `names no tensor "${missing.join('", "')}"`);
  return collected(async (tensors) => {
    for (const [file, inside] of byFile) {
      const here = wanted ? inside.filter((name) => wanted.has(name)) : inside;
      if (here.length === 0) continue;
      await withFile(join(dirname(indexPath), file), async (shard) => {
        for (const name of here) tensors.set(name, await shard.read(name, options));
      });
    }
  });
}
