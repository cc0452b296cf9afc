// A folder with one subfolder of images per class, like torchvision's ImageFolder. The images of a batch are decoded in
// parallel on libuv's threads; a worker decodes JPEG files that need no scaling itself, see jpeg.ts.

import { readdirSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { checkIndex, checkInteger, checkPath } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badFile, fileSystem, notOpened, outOfRange } from '../../errors.ts';
import { workerInfo } from '../../loader/worker-info.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import type { NdArray } from '../../typed-array.ts';
import { OpenFile, openRegular } from '../open-file.ts';
import { importPeer } from '../optional-package.ts';
import { type DecodeJpeg, openJpegDecoder } from './jpeg.ts';

/** Maximum number of pixels of an image; decoded with four channels, this is 1 GiB. */
const mostPixels = 2 ** 28;
/** Maximum size of an image file; an image with the maximum number of pixels needs no larger one. */
const mostFileBytes = 2 ** 30;

const extensions = new Set(['.jpg', '.jpeg', '.png', '.webp', '.gif', '.tif', '.tiff', '.avif']);

/** Images that torchvision's ImageFolder reads and sharp does not: leaving them out would make a smaller data set. */
const foreignExtensions = new Set(['.bmp', '.ppm', '.pgm']);

/** Options of ImageFolder. */
export interface ImageFolderOptions {
  /** Size in pixels. Each image is scaled to cover it, and the excess is cut off equally on both sides. */
  readonly height: number;
  /** Width in pixels to which images are scaled. */
  readonly width: number;
  /** 3 for red, green and blue; 1 for grey. Default 3. */
  readonly channels?: 1 | 3;
}

const names = optionNames<ImageFolderOptions>({ height: true, width: true, channels: true });

/** A sample of an ImageFolder. */
export interface ImageSample {
  /** Shape [channels, height, width]. */
  readonly image: NdArray<Uint8Array>;
  /** Index in `classes`. */
  readonly label: number;
}

/** A batch of an ImageFolder. */
export interface ImageBatch {
  /** Shape [samples, channels, height, width]. */
  readonly image: NdArray<Uint8Array>;
  /** Label of each image, its index in `classes`: shape [samples]. */
  readonly label: NdArray<Int32Array>;
}

type Sharp = typeof import('sharp')['default'];

/**
 * The images of a folder with one subfolder per class, also those in folders within it. Classes, and therefore labels,
 * are in the order of their names. A link to a folder is a class; a link within a class is not followed. `get` and
 * `getBatch` reject with ERR_DATA_FILE, naming the file, for an image that is damaged or truncated. Files are images if
 * their names end with .jpg, .jpeg, .png, .webp, .gif, .tif, .tiff or .avif; a file of BMP, PPM or PGM is refused.
 */
export class ImageFolder implements Dataset<ImageSample, ImageBatch> {
  /** Number of images. */
  readonly length: number;
  /** Names of the folders, in the order of the labels. */
  readonly classes: readonly string[];
  /** Path of each sample. */
  readonly paths: readonly string[];
  /** Label of each sample. */
  readonly labels: Int32Array;
  readonly #sharp: Sharp;
  /** Null outside of workers, and where its package is not installed. */
  readonly #decodeJpeg: DecodeJpeg | null;
  readonly #options: Required<ImageFolderOptions>;

  /** Opens a folder; reads only names. Rejects with ERR_DATA_PEER if the package sharp is not installed. */
  static async open(folder: string, options: ImageFolderOptions): Promise<ImageFolder> {
    checkPath('ImageFolder: folder', folder);
    const { height, width, channels = 3 } = checkedOptions('ImageFolder', options, names);
    checkInteger('ImageFolder: height', height, 1);
    checkInteger('ImageFolder: width', width, 1);
    if (channels !== 1 && channels !== 3) throw outOfRange('ImageFolder: channels', '1 or 3', channels);
    const { default: sharp } = await importPeer('ImageFolder', 'sharp', () => import('sharp'));
    const decodeJpeg = channels === 3 && workerInfo() !== null ? await openJpegDecoder() : null;
    return new ImageFolder(folder, sharp, decodeJpeg, { height, width, channels });
  }

  private constructor(
    folder: string,
    sharp: Sharp,
    decodeJpeg: DecodeJpeg | null,
    options: Required<ImageFolderOptions>,
  ) {
    if (typeof sharp !== 'function') throw notOpened('ImageFolder');
    this.#sharp = sharp;
    this.#decodeJpeg = decodeJpeg;
    this.#options = options;
    this.classes = listed(folder, () => readdirSync(folder))
      .filter((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.isDirectory())
      .sort();
    const files = this.classes.map((name) => imagesIn(join(folder, name)));
    this.paths = files.flat();
    this.labels = Int32Array.from(files.flatMap((paths, label) => paths.map(() => label)));
    this.length = this.paths.length;
    if (this.length > 0) return;
    const found = `${this.classes.length} subfolders without any`;
    throw badFile(
      'ImageFolder',
      folder,
      ['no images', 'a subfolder of images per class', found],
      'Name the folder above the classes.',
    );
  }

  async get(index: number): Promise<ImageSample> {
    const { channels, height, width } = this.#options;
    const data = new Uint8Array(channels * height * width);
    await this.#decode(index, data);
    return { image: { data, shape: [channels, height, width] }, label: this.labels[index]! };
  }

  async getBatch(indices: Indices): Promise<ImageBatch> {
    const { channels, height, width } = this.#options;
    const size = channels * height * width;
    const data = new Uint8Array(indices.length * size);
    const decoding = Array.from(indices, (index, i) =>
      this.#decode(index, data.subarray(i * size, (i + 1) * size)),
    );
    for (const result of await Promise.allSettled(decoding)) {
      if (result.status === 'rejected') throw result.reason;
    }
    const label = Int32Array.from(indices, (index) => this.labels[index]!);
    return {
      image: { data, shape: [indices.length, channels, height, width] },
      label: { data: label, shape: [indices.length] },
    };
  }

  /** Decodes an image into `target`: all pixels of the first channel, then those of the next. */
  async #decode(index: number, target: Uint8Array): Promise<void> {
    checkIndex('ImageFolder', index, this.length);
    const { channels, height, width } = this.#options;
    const path = this.paths[index]!;
    const bytes = await bytesOf(path);
    const pixels = this.#decodeJpeg?.(bytes, width, height) ?? (await this.#bySharp(path, bytes));
    const plane = height * width;
    const step = pixels.length / plane; // sharp gives three bytes for a pixel, the decoder for JPEG four
    for (let channel = 0; channel < channels; channel++) {
      const begin = channel * plane;
      for (let i = 0, at = channel; i < plane; i++, at += step) target[begin + i] = pixels[at]!;
    }
  }

  /** Decodes and scales an image; its pixels have `channels` bytes. */
  async #bySharp(path: string, bytes: Buffer): Promise<Buffer> {
    const { channels, height, width } = this.#options;
    try {
      return await this.#sharp(bytes, { limitInputPixels: mostPixels })
        .resize(width, height, { fit: 'cover' })
        .removeAlpha()
        .toColourspace(channels === 1 ? 'b-w' : 'srgb')
        .raw()
        .toBuffer();
    } catch (cause) {
      const got = (cause as Error).message;
      throw badFile('ImageFolder', path, ['cannot decode', 'an image', got], 'Get the file again.', cause);
    }
  }
}

/**
 * Reads a whole file; libvips would open it several times, which takes as long as decoding a small image. Blocks in a
 * loader's worker, whose thread has nothing else to do: an asynchronous read goes to another thread and back four
 * times, and takes 20 times as long.
 */
async function bytesOf(path: string): Promise<Buffer> {
  if (workerInfo() !== null) return bytesNow(path);
  const file = await openRegular(path);
  try {
    checkSize(path, (await file.stat()).size);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

function bytesNow(path: string): Buffer {
  const file = new OpenFile(path);
  try {
    checkSize(path, file.size);
    const bytes = Buffer.allocUnsafe(file.size);
    file.read(bytes, 0);
    return bytes;
  } finally {
    file.close();
  }
}

function checkSize(path: string, bytes: number): void {
  if (bytes <= mostFileBytes) return;
  const what = ['an image file is too large', `at most ${mostFileBytes} bytes`, `${bytes}`] as const;
  throw badFile('ImageFolder', path, what, 'Is it another kind of file?');
}

function listed<T>(folder: string, list: () => T): T {
  try {
    return list();
  } catch (cause) {
    throw fileSystem('ImageFolder', folder, cause);
  }
}

function imagesIn(folder: string): string[] {
  const names = listed(folder, () => readdirSync(folder, { recursive: true, encoding: 'utf8' }));
  const foreign = names.find((name) => foreignExtensions.has(extensionOf(name)));
  if (foreign !== undefined) {
    const what = ['a format is not read', [...extensions].join(', '), extensionOf(foreign)] as const;
    throw badFile('ImageFolder', join(folder, foreign), what, 'Convert such images, or move them elsewhere.');
  }
  return names
    .filter((name) => extensions.has(extensionOf(name)))
    .sort()
    .map((name) => join(folder, name));
}

const extensionOf = (name: string): string => extname(name).toLowerCase();
