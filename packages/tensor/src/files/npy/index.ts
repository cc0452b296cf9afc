// Reads and writes NumPy's files: .npy holds one array, .npz a zip archive of them by name.
import '../../ops/methods/index.ts';

import type { FileHandle } from 'node:fs/promises';
import {
  check,
  checkZipBytes,
  encodeNpyHeader,
  encodeZip,
  FormatError,
  type NpyHeader,
  npyHeaderEnd,
  npyStartBytes,
  parseNpyHeader,
  quoted,
  readFully,
  readZipDirectory,
  readZipMember,
  swapTo,
  type ZipMember,
} from '@ringwise/formats';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aTensor, atLeastOne, checkValue, flag } from '../../checks/value-checks.ts';
import { bytesOf } from '../../core/dtype.ts';
import { countOf, mostDims } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badNpy } from '../../errors.ts';
import { contiguous } from '../../ops/elementwise/convert.ts';
import { permute } from '../../ops/shape/views.ts';
import { bytesIn, replaceFile } from '../files.ts';
import { aPath, openRegular, tensorsByName } from '../safetensors/checks.ts';
import { StoredProblem, storableTypes, storedTypes } from '../stored-types.ts';

const accepted = { types: storableTypes, maxDims: mostDims };
const suffix = '.npy';

/** Runs `body`. Its errors about the file's content become a TensorError that names the file. */
async function about<T>(path: string, doing: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof FormatError || error instanceof StoredProblem) throw badNpy(path, error.message);
    throw badNpy(path, `could not be ${doing} (${(error as Error).message})`, error);
  }
}

/** Returns the header and the elements of a .npy file; the latter in the tensor's own memory if it is dense there. */
function pieces(tensor: Tensor): Uint8Array[] {
  const { dtype, shape } = tensor;
  check(dtype !== 'bfloat16', "NumPy has no bfloat16; use .to('float32'), or safetensors, which keeps it");
  return [encodeNpyHeader(dtype, shape), bytesIn(tensor.dataSync())];
}

/** Writes one tensor, as a whole or not at all. It must neither change nor be disposed until the promise settles. */
export async function saveNpy(path: string, tensor: Tensor): Promise<void> {
  checkValue('saveNpy: path', path, aPath);
  checkValue('saveNpy: tensor', tensor, aTensor);
  await about(path, 'written', async () => replaceFile(path, pieces(tensor)));
}

/** Options of saveNpz(). */
export interface NpzOptions {
  /** Whether to deflate the arrays, as numpy.savez_compressed does. Default false. */
  readonly compress?: boolean;
}

const npzOptions = optionChecks<NpzOptions>({ compress: flag });

/**
 * Writes tensors by name to one file, as a whole or not at all. They must neither change nor be disposed until the
 * promise settles.
 */
export async function saveNpz(
  path: string,
  tensors: Readonly<Record<string, Tensor>>,
  options: NpzOptions = {},
): Promise<void> {
  checkValue('saveNpz: path', path, aPath);
  checkValue('saveNpz: tensors', tensors, tensorsByName);
  checkOptions('saveNpz', options, npzOptions);
  await about(path, 'written', async () => {
    const contents = Object.entries(tensors).map(([name, tensor]) => ({
      name: name + suffix,
      pieces: pieces(tensor),
    }));
    await replaceFile(path, await encodeZip(contents, options.compress ?? false));
  });
}

/**
 * Makes a tensor of the shape and dtype of a header, in row-major order. `fill` reads the file's elements, in the
 * file's type, order and byte order, which are then converted.
 */
async function filled(header: NpyHeader, fill: (bytes: Uint8Array) => Promise<void>): Promise<Tensor> {
  const { shape, isFortran, isBigEndian } = header;
  const type = storedTypes[header.type];
  const stored = empty(type.dtype, isFortran ? shape.toReversed() : shape);
  const { host } = stored.memory;
  const bytes = type.widen === null ? bytesIn(host) : new Uint8Array(stored.count * type.bytes);
  try {
    await fill(bytes);
    swapTo(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), type.bytes, isBigEndian ? 'BE' : 'LE');
    type.widen?.(bytes, host, 0);
  } catch (error) {
    stored.dispose();
    throw error;
  }
  if (!isFortran || shape.length < 2) return stored;
  const turned = permute(stored, shape.map((_, d) => shape.length - 1 - d)); // biome-ignore format: one thing
  const out = contiguous(turned);
  stored.dispose();
  if (out !== turned) turned.dispose();
  return out;
}

async function withFile<T>(path: string, read: (file: FileHandle) => Promise<T>): Promise<T> {
  return about(path, 'read', async () => {
    const file = await openRegular(path);
    try {
      return await read(file);
    } finally {
      await file.close();
    }
  });
}

/** Reads an array into new memory, in row-major order. The tensor belongs to the open scope, or to the caller. */
export async function loadNpy(path: string): Promise<Tensor> {
  checkValue('loadNpy: path', path, aPath);
  return withFile(path, async (file) => {
    const { size } = await file.stat();
    const read = async (into: Uint8Array, position: number): Promise<void> =>
      check(await readFully(file, into, position), 'it is truncated');
    const start = Buffer.alloc(Math.min(npyStartBytes, size));
    await read(start, 0);
    const text = Buffer.alloc(npyHeaderEnd(start, size));
    await read(text, 0);
    const header = parseNpyHeader(text, size, accepted);
    return filled(header, (bytes) => read(bytes, header.dataStart));
  });
}

/** Options of loadNpz(). */
export interface LoadNpzOptions {
  /**
   * Maximum bytes of all arrays together. Checked twice: unpacked in the file's types, and in the dtypes of the
   * tensors. Default: 8 times the file, and at least 4 GiB, which suffices for every archive without compression.
   */
  readonly maxBytes?: number;
}

const loadNpzOptions = optionChecks<LoadNpzOptions>({ maxBytes: atLeastOne });
const defaultBytes = 2 ** 32;
/** No type becomes more than 4 times as wide in memory; the other factor of 2 is for compression. */
const defaultRatio = 8;

/**
 * Reads an array from the unpacked pieces of a member of the archive. Memory is allocated after the header has been
 * checked against `bytes`, the member's unpacked length, and by `approve`.
 */
async function fromPieces(
  { name, bytes }: ZipMember,
  pieces: AsyncGenerator<Buffer>,
  approve: (header: NpyHeader) => void,
): Promise<Tensor> {
  let start: Buffer = Buffer.alloc(0);
  const truncated = `the header of ${quoted(name)} is truncated`;
  const readTo = async (end: number): Promise<void> => {
    while (start.length < end) {
      const { value, done } = await pieces.next();
      check(!done, truncated);
      start = Buffer.concat([start, value]);
    }
  };
  try {
    await readTo(Math.min(npyStartBytes, bytes));
    const end = npyHeaderEnd(start, Infinity);
    check(end <= bytes, truncated);
    await readTo(end);
    const header = parseNpyHeader(start.subarray(0, end), bytes, accepted);
    approve(header);
    return await filled(header, async (into) => {
      into.set(start.subarray(end));
      let at = start.length - end;
      for await (const piece of pieces) {
        into.set(piece, at);
        at += piece.length;
      }
    });
  } catch (error) {
    await pieces.return(undefined);
    if (error instanceof FormatError && !error.message.includes(quoted(name)))
      throw new FormatError(`${quoted(name)}: ${error.message}`);
    throw error;
  }
}

/** Reads all arrays of an archive by name. They belong to the scope that is open, or to the caller. */
export async function loadNpz(path: string, options: LoadNpzOptions = {}): Promise<Record<string, Tensor>> {
  checkValue('loadNpz: path', path, aPath);
  checkOptions('loadNpz', options, loadNpzOptions);
  return withFile(path, async (file) => {
    const { size } = await file.stat();
    const { maxBytes = Math.max(defaultBytes, defaultRatio * size) } = options;
    let total = 0;
    const approve = ({ type, shape }: NpyHeader): void => {
      total += countOf(shape) * bytesOf(storedTypes[type].dtype);
      checkZipBytes(total, maxBytes);
    };
    const tensors: [string, Tensor][] = [];
    try {
      for (const member of await readZipDirectory(file, size, maxBytes)) {
        const { name } = member;
        check(name.endsWith(suffix), `${quoted(name)} is no array; expected names that end in ${suffix}`);
        const tensor = await fromPieces(member, readZipMember(file, member), approve);
        tensors.push([name.slice(0, -suffix.length), tensor]);
      }
    } catch (error) {
      for (const [, tensor] of tensors) tensor.dispose();
      throw error;
    }
    return Object.fromEntries(tensors);
  });
}
