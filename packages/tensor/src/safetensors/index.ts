// Reads and writes safetensors files, the format that PyTorch users exchange weights in.
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import type { HostArray } from '../dtype.ts';
import { badSafetensors } from '../errors.ts';

import { empty, type Tensor } from '../tensor.ts';
import {
  encodeHeader,
  type Header,
  HeaderProblem,
  maxHeaderBytes,
  parseHeader,
  planEntries,
} from './header.ts';

/** One read or write of the system takes less than 2 GiB. */
const maxTransferBytes = 2 ** 30;

const bytesIn = (host: HostArray): Uint8Array =>
  new Uint8Array(host.buffer, host.byteOffset, host.byteLength);

/**
 * Writes tensors to `path`: to a temporary file beside it, which is synchronised to disk and then renamed, so that
 * the path holds the old file or the complete new one. Tensors must not change until the promise settles.
 */
export async function saveSafetensors(
  path: string,
  tensors: Readonly<Record<string, Tensor>>,
  metadata?: Readonly<Record<string, string>>,
): Promise<void> {
  if (Object.hasOwn(tensors, '__metadata__')) {
    throw badSafetensors(
      path,
      'a tensor cannot be named "__metadata__"; pass metadata as the third argument',
    );
  }
  const entries = planEntries(tensors);
  // Taken before the first await: a disposed tensor is refused now, and the others stay alive.
  const contents = entries.map(({ name }) => tensors[name]!.dataSync());
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, 'wx');
    try {
      await writeFully(file, encodeHeader(entries, metadata));
      for (const content of contents) await writeFully(file, bytesIn(content));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw badSafetensors(path, `could not be written (${(error as Error).message})`, error);
  }
}

/** Reads all tensors of a file into memory of their own. They belong to the scope that is open, or to the caller. */
export async function loadSafetensors(path: string): Promise<Record<string, Tensor>> {
  return withFile(path, async (file) => {
    const { header, dataStart } = await readHeader(path, file);
    const tensors: [string, Tensor][] = [];
    try {
      for (const { name, dtype, shape, begin } of header.entries) {
        const tensor = empty(dtype, shape);
        tensors.push([name, tensor]);
        const what = `tensor "${name}"`;
        await readFully(path, file, bytesIn(tensor.memory.host), dataStart + begin, what);
      }
    } catch (error) {
      for (const [, tensor] of tensors) tensor.dispose();
      throw error;
    }
    return Object.fromEntries(tensors);
  });
}

/** The metadata that was saved with the tensors of a file; {} if there was none. */
export async function safetensorsMetadata(path: string): Promise<Record<string, string>> {
  return withFile(path, async (file) => ({ ...(await readHeader(path, file)).header.metadata }));
}

async function withFile<T>(path: string, read: (file: FileHandle) => Promise<T>): Promise<T> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    throw badSafetensors(path, `could not be opened (${(error as Error).message})`, error);
  }
  try {
    return await read(file);
  } finally {
    await file.close();
  }
}

async function readHeader(path: string, file: FileHandle): Promise<{ header: Header; dataStart: number }> {
  const { size } = await file.stat();
  const prefix = Buffer.alloc(8);
  await readFully(path, file, prefix, 0, 'the header length');
  const headerBytes = prefix.readBigUInt64LE();
  const mostBytes = Math.min(maxHeaderBytes, size - 8);
  if (headerBytes > mostBytes) {
    throw badSafetensors(
      path,
      `the header claims ${headerBytes} bytes, but at most ${mostBytes} are possible (is this a safetensors file?)`,
    );
  }
  const text = Buffer.alloc(Number(headerBytes));
  await readFully(path, file, text, 8, 'the header');
  const dataStart = 8 + text.length;
  try {
    const decoded = new TextDecoder('utf-8', { fatal: true }).decode(text);
    return { header: parseHeader(decoded, size - dataStart), dataStart };
  } catch (error) {
    if (error instanceof HeaderProblem) throw badSafetensors(path, error.message, error.cause);
    throw badSafetensors(path, 'the header is not UTF-8', error);
  }
}

async function readFully(
  path: string,
  file: FileHandle,
  into: Uint8Array,
  position: number,
  what: string,
): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const length = Math.min(into.length - done, maxTransferBytes);
    const { bytesRead } = await file.read(into, done, length, position + done);
    if (bytesRead === 0) throw badSafetensors(path, `ends inside ${what}; the file is truncated`);
    done += bytesRead;
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const length = Math.min(bytes.length - done, maxTransferBytes);
    done += (await file.write(bytes, done, length)).bytesWritten;
  }
}
