// An open safetensors file, from which a program reads single tensors.
import type { FileHandle } from 'node:fs/promises';
import {
  HeaderError,
  parseSafetensorsHeader,
  quoted,
  readFully,
  type SafetensorsEntry,
  safetensorsHeaderBytes,
  safetensorsInOrder,
  safetensorsStartBytes,
} from '@ringwise/formats';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, checkValue } from '../../checks/value-checks.ts';
import type { DType } from '../../core/dtype.ts';
import { countOf, mostDims, type Shape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { type DeviceName, deviceOf } from '../../device/device.ts';
import { badSafetensors, TensorError } from '../../errors.ts';
import { readElements, StoredProblem, storableTypes, storedTypes } from '../stored-types.ts';
import { aPath, openRegular } from './checks.ts';
import { Upload } from './upload.ts';

/** The description of a tensor in a file. */
export interface TensorInfo {
  /**
   * The dtype of the tensor when it is read: integers of 8 and 16 bits become int32, U32 and U64 int64,
   * floats of 8 bits float32.
   */
  readonly dtype: DType;
  /** The type in the file, such as 'F32' or 'I8'. */
  readonly stored: string;
  /** Size of each dimension. */
  readonly shape: Shape;
}

/** Options of functions that load safetensors. */
export interface LoadOptions {
  /**
   * The device of the tensors. Those for a CUDA device pass through a few megabytes of pinned memory, and the
   * last copies may be running when the promise resolves, as with any operation. Default 'cpu'.
   */
  readonly device?: DeviceName;
}

export const loadOptions = optionChecks<LoadOptions>({ device: anything });

interface Entry extends SafetensorsEntry, TensorInfo {}

interface Header {
  /** The tensors, in the order of the file. */
  readonly entries: readonly Entry[];
  readonly metadata: Readonly<Record<string, string>>;
  /** Position in the file at which the data begin, in bytes. */
  readonly dataStart: number;
}

/** Reads tensors from a file that openSafetensors has opened. They belong to the open scope, or to the caller. */
export class SafetensorsFile {
  /** Path of the file. */
  readonly path: string;
  /** Texts that the writer of the file has added. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Every tensor by name, in the order of the file. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #file: FileHandle;
  readonly #dataStart: number;
  readonly #upload = new Upload();

  /** Internal. */
  constructor(path: string, file: FileHandle, { entries, metadata, dataStart }: Header) {
    this.path = path;
    this.metadata = metadata;
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.tensors = this.#entries;
    this.#file = file;
    this.#dataStart = dataStart;
  }

  #entry(name: string): Entry {
    const entry = this.#entries.get(name);
    if (entry) return entry;
    throw badSafetensors(
      this.path,
      `has no tensor ${quoted(String(name))}; the file has ${this.#entries.size} others`,
    );
  }

  /** Reads elements from byte `begin` of the data on into a new tensor of this shape. */
  async #load(
    { name, dtype, type: elementType }: Entry,
    shape: Shape,
    begin: number,
    { device = 'cpu' }: LoadOptions,
  ): Promise<Tensor> {
    const tensor = empty(dtype, shape, deviceOf(device));
    try {
      const position = this.#dataStart + begin;
      const type = storedTypes[elementType];
      const isThere =
        tensor.device === 'cpu'
          ? await readElements(this.#file, type, position, tensor.memory.host)
          : await this.#upload.run(this.#file, type, tensor, position);
      if (!isThere) throw truncated(this.path, `tensor ${quoted(name)}`);
      return tensor;
    } catch (error) {
      tensor.dispose();
      if (error instanceof StoredProblem)
        throw badSafetensors(this.path, `tensor ${quoted(name)}: ${error.message}`);
      if (error instanceof TensorError) throw error;
      const problem = `tensor ${quoted(name)} could not be read (${(error as Error).message})`;
      throw badSafetensors(this.path, `${problem}; was the file closed?`, error);
    }
  }

  /** Reads one tensor. */
  async read(name: string, options: LoadOptions = {}): Promise<Tensor> {
    checkOptions('read', options, loadOptions);
    const entry = this.#entry(name);
    return this.#load(entry, entry.shape, entry.begin, options);
  }

  /** Reads the indices `start` to `end` − 1 of the first dimension of one tensor, and no other data. */
  async readSlice(name: string, start: number, end: number, options: LoadOptions = {}): Promise<Tensor> {
    checkOptions('readSlice', options, loadOptions);
    const entry = this.#entry(name);
    const [rows, ...rest] = entry.shape;
    const isInside = Number.isSafeInteger(start) && Number.isSafeInteger(end) && 0 <= start && start <= end;
    if (rows === undefined || !isInside || end > rows) {
      const shape = `[${entry.shape.join(', ')}]`;
      throw badSafetensors(
        this.path,
        `rows ${String(start)} to ${String(end)} (end excluded) are not a range of tensor ${quoted(name)} of shape ${shape}`,
      );
    }
    const rowBytes = countOf(rest) * storedTypes[entry.type].bytes;
    return this.#load(entry, [end - start, ...rest], entry.begin + start * rowBytes, options);
  }

  /** Closes the file; later reads fail. Idempotent. */
  async close(): Promise<void> {
    await this.#upload.close();
    await this.#file.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Opens a file and reads its header. The caller closes it when its tensors have been read. */
export async function openSafetensors(path: string): Promise<SafetensorsFile> {
  checkValue('openSafetensors: path', path, aPath);
  let file: FileHandle;
  try {
    file = await openRegular(path);
  } catch (error) {
    throw badSafetensors(path, `could not be opened (${(error as Error).message})`, error);
  }
  try {
    return new SafetensorsFile(path, file, await readHeader(path, file));
  } catch (error) {
    await file.close();
    if (error instanceof TensorError) throw error;
    throw badSafetensors(path, `could not be read (${(error as Error).message})`, error);
  }
}

const truncated = (path: string, what: string): Error =>
  badSafetensors(path, `ends inside ${what}; the file is truncated`);

async function readHeader(path: string, file: FileHandle): Promise<Header> {
  const { size } = await file.stat();
  try {
    const start = Buffer.alloc(Math.min(safetensorsStartBytes, size));
    if (!(await readFully(file, start, 0))) throw truncated(path, 'the header length');
    const text = Buffer.alloc(safetensorsHeaderBytes(start, size));
    if (!(await readFully(file, text, safetensorsStartBytes))) throw truncated(path, 'the header');
    const header = parseSafetensorsHeader(text, size, { types: storableTypes, maxDims: mostDims });
    const entries = safetensorsInOrder(header).map((entry): Entry => {
      return { ...entry, stored: entry.code, dtype: storedTypes[entry.type].dtype };
    });
    return { ...header, entries };
  } catch (error) {
    if (error instanceof HeaderError) throw badSafetensors(path, error.message, error.cause);
    throw error;
  }
}
