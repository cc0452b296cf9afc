// A sample of a tar archive, and the rule that groups files into samples.
import { badFile } from '../../errors.ts';

/**
 * A sample: adjacent files of a tar archive whose paths are equal up to the first dot of the file name, as in
 * WebDataset.
 */
export interface TarSample {
  /**
   * The common part of the paths, with the folder: `train/0017` for `train/0017.jpg` and `train/0017.cls`.
   */
  readonly key: string;
  /**
   * Contents of the files by the text after the dot, such as `jpg` and `cls`. Decode them with mapDataset.
   */
  readonly files: Readonly<Record<string, Uint8Array>>;
}

/** Splits a file's path at the first dot of the file name. Without a dot, the extension is empty. */
export function splitName(name: string): { readonly key: string; readonly extension: string } {
  const dot = name.indexOf('.', name.lastIndexOf('/') + 1);
  return dot < 0 ? { key: name, extension: '' } : { key: name.slice(0, dot), extension: name.slice(dot + 1) };
}

/**
 * Adds `extension` to `known`, the extensions of its sample. Throws ERR_DATA_FILE if the sample already has it, because
 * one file would hide the other. `where` and `name`, the archive and the file, are for the error.
 */
export function addExtension(
  reader: string,
  where: string,
  name: string,
  extension: string,
  known: Set<string>,
): void {
  if (known.has(extension)) {
    const what = ['a name is there twice', 'every file of a sample once', JSON.stringify(name)] as const;
    throw badFile(reader, where, what, 'Pack the archive again, with other names.');
  }
  known.add(extension);
}

/**
 * Returns the error for a file whose bytes are not behind its header: it would be missing in its sample, or have other
 * bytes. A hard link is the second name of a file that the archive has once.
 */
export function notWhole(reader: string, where: string, name: string, kind: 'a hard link' | 'sparse'): Error {
  const what = [`a file is ${kind}`, 'every file with all its bytes', JSON.stringify(name)] as const;
  const how = kind === 'sparse' ? 'without --sparse' : 'with tar --hard-dereference';
  return badFile(reader, where, what, `Pack the archive again, ${how}.`);
}

/** Tells whether pax records of a file, by name, say that it is stored without its holes. */
export const isSparse = (names: Iterable<string>): boolean =>
  [...names].some((name) => name.startsWith('GNU.sparse.'));
