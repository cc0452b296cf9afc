// Decodes JPEG files with the optional package @jsquash/jpeg, which is libjpeg in WebAssembly. It blocks, and for a
// small file it takes a tenth of the time that sharp needs to set up its pipeline; the bits are the same. Files that
// need more than decoding are left to sharp: those of another size or with a colour profile, and damaged ones, for
// which sharp has the better error messages.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/**
 * Decodes a JPEG file of this size to red, green, blue and 255 per pixel, or returns null if sharp has to decode it.
 * The caller owns the memory. Blocks.
 */
export type DecodeJpeg = (file: Buffer, width: number, height: number) => Uint8ClampedArray | null;

/** The members of Emscripten's module that are used. */
interface Decoder {
  readonly decode: (
    file: Uint8Array,
    preserveOrientation: boolean,
  ) => { readonly data: Uint8ClampedArray; readonly width: number; readonly height: number } | null;
}

/** Larger images would need much memory, which WebAssembly never gives back; sharp is as fast for them. */
const mostPixels = 2 ** 22;

/**
 * Resolves with the decoder, or null if the package is not installed or does not run here. The package defines a global
 * ImageData, so this is for a loader's worker, whose globals are its own.
 */
export async function openJpegDecoder(): Promise<DecodeJpeg | null> {
  let decoder: Decoder | null;
  let warnings = 0;
  try {
    const { default: make } = await import('@jsquash/jpeg/codec/dec/mozjpeg_dec.js');
    const file = createRequire(import.meta.url).resolve('@jsquash/jpeg/codec/dec/mozjpeg_dec.wasm');
    const options = {
      noInitialRun: true,
      wasmBinary: readFileSync(file),
      // Called with a warning when a truncated file is decoded.
      printErr: () => {
        warnings++;
      },
    };
    decoder = await (make as unknown as (options: object) => Promise<Decoder>)(options);
  } catch {
    return null;
  }
  return (file, width, height) => {
    if (decoder === null || !isPlain(file, width, height)) return null;
    warnings = 0;
    try {
      const image = decoder.decode(file, false);
      return warnings === 0 && image?.width === width && image.height === height ? image.data : null;
    } catch {
      decoder = null; // libjpeg has ended its program
      return null;
    }
  };
}

/** Returns whether a file is a JPEG of this size in three colours of 8 bits without a profile. */
function isPlain(file: Buffer, width: number, height: number): boolean {
  if (width * height > mostPixels || file.length < 4 || file.readUInt16BE(0) !== 0xffd8) return false;
  for (let at = 2; at + 10 <= file.length && file[at] === 0xff; ) {
    const marker = file[at + 1]!;
    // Start of frame: baseline, extended or progressive. Its length, precision, height, width and components follow.
    if (marker >= 0xc0 && marker <= 0xc2) {
      const isSize = file.readUInt16BE(at + 5) === height && file.readUInt16BE(at + 7) === width;
      return (
        isSize && file[at + 4] === 8 && file[at + 9] === 3 && !file.includes('ICC_PROFILE\0', 0, 'latin1')
      );
    }
    at += 2 + file.readUInt16BE(at + 2);
  }
  return false;
}
