// A tar archive on disk as a data set with random access.
import { checkIndex } from '../../check.ts';
import type { Dataset } from '../../datasets/dataset.ts';
import { OpenFile } from '../open-file.ts';
import { type TarEntry, tarEntries } from './tar-index.ts';
import { addExtension, splitName, type TarSample } from './tar-sample.ts';

export type { TarSample } from './tar-sample.ts';

interface Group {
  readonly key: string;
  readonly entries: readonly (TarEntry & { readonly extension: string })[];
}

/**
 * The samples of an uncompressed tar archive; adjacent files with the same key form one sample. The constructor reads
 * the headers, `get` reads the files of its sample. Synchronous. Owns an open file until close().
 */
export class TarFile implements Dataset<TarSample> {
  /** Number of samples. */
  readonly length: number;
  readonly #file: OpenFile;
  readonly #groups: readonly Group[];

  /** Opens an archive. Throws ERR_DATA_FILE if it is damaged or truncated. */
  constructor(path: string) {
    this.#file = new OpenFile(path);
    try {
      this.#groups = groupsOf(path, tarEntries(this.#file));
    } catch (error) {
      this.close();
      throw error;
    }
    this.length = this.#groups.length;
  }

  get(index: number): TarSample {
    checkIndex('TarFile', index, this.length);
    const { key, entries } = this.#groups[index]!;
    const files = entries.map(({ extension, offset, size }) => {
      const bytes = new Uint8Array(size);
      this.#file.read(bytes, offset);
      return [extension, bytes] as const;
    });
    return { key, files: Object.fromEntries(files) };
  }

  /** Closes the file. Idempotent. */
  close(): void {
    this.#file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function groupsOf(path: string, all: Iterable<TarEntry>): Group[] {
  const groups: { key: string; entries: (TarEntry & { extension: string })[] }[] = [];
  const extensions = new Set<string>();
  for (const entry of all) {
    const { key, extension } = splitName(entry.name);
    let group = groups.at(-1);
    if (group?.key !== key) {
      group = { key, entries: [] };
      groups.push(group);
      extensions.clear();
    }
    addExtension('TarFile', `${path}, byte ${entry.offset}`, entry.name, extension, extensions);
    group.entries.push({ ...entry, extension });
  }
  return groups;
}
