// Reads and writes whole safetensors files.

import { encodeSafetensorsHeader, planSafetensors } from '@ringwise/formats';
import { checkOptions } from '../../checks/options.ts';
import { checkValue } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badSafetensors } from '../../errors.ts';
import { bytesIn, replaceFile } from '../files.ts';
import { aPath, tensorsByName } from './checks.ts';
import { type LoadOptions, loadOptions, openSafetensors, type SafetensorsFile } from './file.ts';

const anObject = {
  expected: 'an object of strings',
  fits: (value: unknown) => typeof value === 'object' && value !== null,
};
const aText = { expected: 'a string', fits: (value: unknown) => typeof value === 'string' };
const next = 'The format knows strings only: write String(value), or JSON.stringify(value).';

/**
 * Writes tensors to `path`, as a whole or not at all. Tensors must neither change nor be disposed until the promise
 * settles.
 */
export async function saveSafetensors(
  path: string,
  tensors: Readonly<Record<string, Tensor>>,
  metadata?: Readonly<Record<string, string>>,
): Promise<void> {
  checkValue('saveSafetensors: path', path, aPath);
  checkValue('saveSafetensors: tensors', tensors, tensorsByName);
  if (Object.hasOwn(tensors, '__metadata__')) {
    throw badSafetensors(
      path,
      'a tensor cannot be named "__metadata__"; pass metadata as the third argument',
    );
  }
  if (metadata !== undefined) {
    checkValue('saveSafetensors: metadata', metadata, anObject);
    for (const [name, text] of Object.entries(metadata))
      checkValue(`saveSafetensors: metadata: ${name}`, text, { ...aText, next });
  }
  const entries = planSafetensors(tensors);
  // Read before the first await, so that a tensor that is already disposed is refused now, and the arrays stay
  // reachable.
  const contents = entries.map(({ name }) => bytesIn(tensors[name]!.dataSync()));
  try {
    await replaceFile(path, [encodeSafetensorsHeader(entries, metadata), ...contents]);
  } catch (error) {
    throw badSafetensors(path, `could not be written (${(error as Error).message})`, error);
  }
}

/** Runs `read`, which fills a map with tensors. Returns them by name; disposes of them if `read` fails. */
export async function collected(
  read: (tensors: Map<string, Tensor>) => Promise<void>,
): Promise<Record<string, Tensor>> {
  const tensors = new Map<string, Tensor>();
  try {
    await read(tensors);
  } catch (error) {
    for (const tensor of tensors.values()) tensor.dispose();
    throw error;
  }
  return Object.fromEntries(tensors);
}

/** Opens a file, runs `use` and closes the file. */
export async function withFile<T>(path: string, use: (file: SafetensorsFile) => Promise<T>): Promise<T> {
  const file = await openSafetensors(path);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

/** Reads all tensors of a file into memory of their own. They belong to the scope that is open, or to the caller. */
export async function loadSafetensors(
  path: string,
  options: LoadOptions = {},
): Promise<Record<string, Tensor>> {
  checkValue('loadSafetensors: path', path, aPath);
  checkOptions('loadSafetensors', options, loadOptions);
  return withFile(path, (file) =>
    collected(async (tensors) => {
      for (const name of file.tensors.keys()) tensors.set(name, await file.read(name, options));
    }),
  );
}

/** Returns the metadata that was saved with the tensors of a file; {} if there was none. */
export async function safetensorsMetadata(path: string): Promise<Record<string, string>> {
  checkValue('safetensorsMetadata: path', path, aPath);
  return withFile(path, async ({ metadata }) => ({ ...metadata }));
}
