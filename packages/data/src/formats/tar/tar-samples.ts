// Tar archives as a stream, for those without random access: compressed ones, and ones from the network.

import { PassThrough, pipeline, Transform, type TransformCallback } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { checkInteger } from '../../check.ts';
import { badFile, DataError, outOfRange } from '../../errors.ts';
import { checkedOptions, checkIterable, optionNames } from '../../options.ts';
import { openRegular } from '../open-file.ts';
import { importPeer } from '../optional-package.ts';
import { addExtension, isSparse, notWhole, splitName, type TarSample } from './tar-sample.ts';

/**
 * A path, or a function that opens a stream of an archive's bytes. `name` is for error messages; if it ends with gz,
 * the bytes are decompressed.
 */
export type TarSource =
  | string
  | { readonly name: string; readonly open: () => NodeJS.ReadableStream | Promise<NodeJS.ReadableStream> };

/** Options of tarSamples(). */
export interface TarSamplesOptions {
  /** Maximum size of one sample in bytes: its files, each with its name and a header of 512 bytes. Default 1 GiB. */
  readonly maxSampleBytes?: number;
}

const names = optionNames<TarSamplesOptions>({ maxSampleBytes: true });

/** Bytes of a file's header. */
const headerBytes = 512;

/**
 * Returns the samples of these archives, one archive after the other. Archives whose name ends with gz are
 * decompressed. `sources` is iterated again in each pass: with `shard(paths, { replicas, rank })` each rank
 * and worker opens only its own archives, and their numbers of samples may differ. A pass throws ERR_DATA_PEER if the
 * package tar-stream is not installed, and ERR_DATA_FILE, naming the archive, if one is damaged or truncated.
 */
export function tarSamples(
  sources: Iterable<TarSource>,
  options?: TarSamplesOptions,
): AsyncIterable<TarSample> {
  const { maxSampleBytes = 2 ** 30 } = checkedOptions('tarSamples', options, names);
  checkInteger('tarSamples: maxSampleBytes', maxSampleBytes, 1);
  checkIterable('tarSamples: sources', sources);
  return {
    async *[Symbol.asyncIterator]() {
      const tar = await importPeer('tarSamples', 'tar-stream', () => import('tar-stream'));
      for (const source of sources) yield* samplesOf(source, tar.extract(), maxSampleBytes);
    },
  };
}

/** Passes an archive on, and counts the zeros at its end. */
class ZerosAtEnd extends Transform {
  #count = 0;

  /** Whether a block of zeros has ended the archive. tar-stream also accepts one that is cut off between two files. */
  get isEnd(): boolean {
    return this.#count >= headerBytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let begin = chunk.length;
    while (begin > 0 && chunk[begin - 1] === 0) begin--;
    this.#count = begin === 0 ? this.#count + chunk.length : chunk.length - begin;
    done(null, chunk);
  }
}

async function* samplesOf(
  source: TarSource,
  archive: import('tar-stream').Extract,
  maxSampleBytes: number,
): AsyncGenerator<TarSample, void, undefined> {
  const { name, bytes } = await opened(source);
  const unpacked = name.endsWith('gz') ? createGunzip() : new PassThrough();
  const zeros = new ZerosAtEnd();
  // Errors of `bytes` and `unpacked` also end `archive`, and the loop below reports them.
  pipeline(bytes, unpacked, zeros, archive, () => {});
  let sample: { key: string; files: [extension: string, bytes: Uint8Array][] } | null = null;
  const extensions = new Set<string>();
  let last = 'its beginning';
  let sampleBytes = 0;
  try {
    for await (const entry of archive) {
      last = entry.header.name;
      if (entry.header.type === 'link') throw notWhole('tarSamples', name, last, 'a hard link');
      if (isSparseEntry(entry.header)) throw notWhole('tarSamples', name, last, 'sparse');
      if (entry.header.type !== 'file') {
        entry.resume();
        continue;
      }
      const { key, extension } = splitName(last);
      if (sample !== null && sample.key !== key) {
        yield complete(sample);
        sample = null;
      }
      if (sample === null) {
        sampleBytes = 0;
        extensions.clear();
      }
      addExtension('tarSamples', name, last, extension, extensions);
      sampleBytes += headerBytes + last.length + (entry.header.size ?? 0);
      if (sampleBytes > maxSampleBytes) throw tooLarge(`${name}, at ${last}`, maxSampleBytes, sampleBytes);
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      sample ??= { key, files: [] };
      sample.files.push([extension, new Uint8Array(Buffer.concat(chunks))]);
    }
    if (!zeros.isEnd) throw new Error('no end: it is cut off');
  } catch (cause) {
    if (DataError.isInstance(cause)) throw cause;
    const what = ['cannot read the archive', 'tar', (cause as Error).message] as const;
    throw badFile('tarSamples', `${name}, at ${last}`, what, 'Get the file again.', cause);
  }
  if (sample !== null) yield complete(sample);
}

/** Tells whether a file is stored without its holes. In GNU's own format, tar-stream does not know its type. */
function isSparseEntry({ name, type, size = 0, pax }: import('tar-stream').Header): boolean {
  return isSparse(Object.keys(pax ?? {})) || (type === null && size > 0 && !name.endsWith('/'));
}

async function opened(source: TarSource): Promise<{ name: string; bytes: NodeJS.ReadableStream }> {
  if (typeof source === 'string') {
    const file = await openRegular(source);
    return { name: source, bytes: file.createReadStream() };
  }
  if (typeof source?.name !== 'string' || typeof source.open !== 'function')
    throw outOfRange('tarSamples: a source', 'a path, or { name, open }', source);
  const bytes: unknown = await source.open();
  if (typeof (bytes as { readonly pipe?: unknown } | null)?.pipe !== 'function')
    throw outOfRange(`tarSamples: what opens ${source.name}`, 'a readable stream', bytes);
  return { name: source.name, bytes: bytes as NodeJS.ReadableStream };
}

const complete = ({ key, files }: { key: string; files: [string, Uint8Array][] }): TarSample => ({
  key,
  files: Object.fromEntries(files),
});

function tooLarge(where: string, maxSampleBytes: number, got: number) {
  const what = [
    'a sample is too large',
    `at most ${maxSampleBytes} bytes (maxSampleBytes)`,
    `${got}`,
  ] as const;
  return badFile('tarSamples', where, what, 'Raise maxSampleBytes if you trust the archive.');
}
