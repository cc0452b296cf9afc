// A folder with a subfolder of images per class, as torchvision's ImageFolder has it. Decoding runs on libuv's threads, all
// images of a batch at once.

import { readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { checkIndex, checkInteger, checkPath } from '../../check.ts';
import type { Dataset, Indices } from '../../datasets/dataset.ts';
import { badFile, DataError, fileSystem, outOfRange } from '../../errors.ts';
import { checkedOptions, optionNames } from '../../options.ts';
import type { NdArray } from '../../typed-array.ts';
import { openRegular } from '../open-file.ts';
import { importPeer } from '../optional-package.ts';

/** The most that a picture may have, whatever its file claims; decoded, these are 1 GB. */
const mostPixels = 2 ** 28;
/** No picture of so many pixels needs a larger file. */
const mostFileBytes = 2 ** 30;

const extensions = new Set(['.jpg', '.jpeg', '.png', '.webp', '.gif', '.tif', '.tiff', '.avif']);

export interface ImageFolderOptions {
  /** Pixels: each image is scaled to cover this, and what juts out is cut off on both sides. */
  readonly height: number;
  readonly width: number;
  /** 3: red, green, blue; 1: grey. Default 3. */
  readonly channels?: 1 | 3;
}

const names = optionNames<ImageFolderOptions>({ height: true, width: true, channels: true });

export interface ImageSample {
  /** Of shape [channels, height, width]. */
  readonly image: NdArray<Uint8Array>;
  /** Index in `classes`. */
  readonly label: number;
}

export interface ImageBatch {
  /** Of shape [samples, channels, height, width]. */
  readonly image: NdArray<Uint8Array>;
  readonly label: NdArray<Int32Array>;
}

type Sharp = typeof import('sharp')['default'];

/**
 * The images of a folder with a subfolder per class; the order, and so the labels, is that of the names. Throws ERR_DATA_FILE,
 * which names the file, for an image that is damaged or cut off.
 */
export class ImageFolder implements Dataset<ImageSample, ImageBatch> {
  readonly length: number;
  readonly classes: readonly string[];
  /** Of each sample. */
  readonly paths: readonly string[];
  /** Of each sample. */
  readonly labels: Int32Array;
  readonly #sharp: Sharp;
  readonly #options: Required<ImageFolderOptions>;

  /** Reads names only. Needs sharp (ERR_DATA_PEER). */
  static async open(folder: string, options: ImageFolderOptions): Promise<ImageFolder> {
    checkPath('ImageFolder: folder', folder);
    const { height, width, channels = 3 } = checkedOptions('ImageFolder', options, names);
    checkInteger('ImageFolder: height', height, 1);
    checkInteger('ImageFolder: width', width, 1);
    if (channels !== 1 && channels !== 3) throw outOfRange('ImageFolder: channels', '1 or 3', channels);
    const { default: sharp } = await importPeer('ImageFolder', 'sharp', () => import('sharp'));
    return new ImageFolder(folder, sharp, { height, width, channels });
  }

  private constructor(folder: string, sharp: Sharp, options: Required<ImageFolderOptions>) {
    this.#sharp = sharp;
    this.#options = options;
    this.classes = listed(folder, () => readdirSync(folder, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
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

  /** Into `target`, channel by channel. */
  async #decode(index: number, target: Uint8Array): Promise<void> {
    checkIndex('ImageFolder', index, this.length);
    const { channels, height, width } = this.#options;
    const path = this.paths[index]!;
    let pixels: Buffer;
    try {
      // libvips opens a path several times to find out what it is, which costs as much as decoding a small picture.
      pixels = await this.#sharp(await bytesOf(path), { limitInputPixels: mostPixels })
        .resize(width, height, { fit: 'cover' })
        .removeAlpha()
        .toColourspace(channels === 1 ? 'b-w' : 'srgb')
        .raw()
        .toBuffer();
    } catch (cause) {
      if (DataError.isInstance(cause)) throw cause;
      const got = (cause as Error).message;
      throw badFile('ImageFolder', path, ['cannot decode', 'an image', got], 'Get the file again.', cause);
    }
    if (channels === 1) {
      target.set(pixels);
      return;
    }
    const plane = height * width;
    for (let i = 0, at = 0; i < plane; i++, at += 3) {
      target[i] = pixels[at]!;
      target[plane + i] = pixels[at + 1]!;
      target[2 * plane + i] = pixels[at + 2]!;
    }
  }
}

/** The whole file. */
async function bytesOf(path: string): Promise<Buffer> {
  const file = await openRegular(path);
  try {
    const { size } = await file.stat();
    if (size <= mostFileBytes) return await file.readFile();
    const what = ['a picture is too large', `at most ${mostFileBytes} bytes`, `${size}`] as const;
    throw badFile('ImageFolder', path, what, 'Is it another kind of file?');
  } finally {
    await file.close();
  }
}

function listed<T>(folder: string, list: () => T): T {
  try {
    return list();
  } catch (cause) {
    throw fileSystem('ImageFolder', folder, cause);
  }
}

function imagesIn(folder: string): string[] {
  return listed(folder, () => readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    .filter((name) => extensions.has(extname(name).toLowerCase()))
    .sort()
    .map((name) => join(folder, name));
}
