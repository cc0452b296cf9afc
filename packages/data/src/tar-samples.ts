// Tar archives as a stream: from the network, or compressed, where random access is impossible.
import { createReadStream } from 'node:fs';
import { PassThrough, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { badFile } from './errors.ts';
import { importPeer } from './peer.ts';
import { splitName, type TarSample } from './tar-sample.ts';

/** A path, or what opens a stream of an archive's bytes, with a name for error messages. */
export type TarSource =
  | string
  | { readonly name: string; readonly open: () => NodeJS.ReadableStream | Promise<NodeJS.ReadableStream> };

/**
 * The samples of these archives, one archive after the other; those whose name ends with gz are decompressed. `sources` is
 * asked anew in each pass: with `shard(paths, { replicas, rank })` each rank and worker opens its own archives only, and
 * their numbers of samples may differ. Needs tar-stream (ERR_DATA_PEER). Throws ERR_DATA_FILE, with the archive, where one
 * is damaged or cut off.
 */
export function tarSamples(sources: Iterable<TarSource>): AsyncIterable<TarSample> {
  return {
    async *[Symbol.asyncIterator]() {
      const tar = await importPeer('tarSamples', 'tar-stream', () => import('tar-stream'));
      for (const source of sources) yield* samplesOf(source, tar.extract());
    },
  };
}

async function* samplesOf(
  source: TarSource,
  archive: import('tar-stream').Extract,
): AsyncGenerator<TarSample, void, undefined> {
  const name = typeof source === 'string' ? source : source.name;
  const bytes = typeof source === 'string' ? createReadStream(source) : await source.open();
  const unpacked = name.endsWith('gz') ? createGunzip() : new PassThrough();
  // Its error is that of the archive, which the loop below gets.
  pipeline(bytes, unpacked, archive, () => {});
  let sample: { key: string; files: Record<string, Uint8Array> } | null = null;
  let last = 'its beginning';
  try {
    for await (const entry of archive) {
      last = entry.header.name;
      if (entry.header.type !== 'file') {
        entry.resume();
        continue;
      }
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      const { key, extension } = splitName(last);
      if (sample !== null && sample.key !== key) {
        yield sample;
        sample = null;
      }
      sample ??= { key, files: {} };
      sample.files[extension] = new Uint8Array(Buffer.concat(chunks));
    }
  } catch (cause) {
    const what = ['cannot read the archive', 'tar', (cause as Error).message] as const;
    throw badFile('tarSamples', `${name}, at ${last}`, what, 'Get the file again.', cause);
  }
  if (sample !== null) yield sample;
}
