import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import { type DecodeJpeg, openJpegDecoder } from '../../src/formats/images/jpeg.ts';

let decode: DecodeJpeg;
beforeAll(async () => {
  const opened = await openJpegDecoder();
  if (opened === null) throw new Error('@jsquash/jpeg did not open');
  decode = opened;
});

const [width, height] = [33, 17];
const pixels = Uint8Array.from({ length: width * height * 3 }, (_, i) => (i * 7919 + ((i * i) >> 3)) & 255);
const image = () => sharp(pixels, { raw: { width, height, channels: 3 } });

describe('the decoder for JPEG', () => {
  it.each([
    {},
    { quality: 100 },
    { quality: 20, progressive: true },
    { chromaSubsampling: '4:4:4' },
    { mozjpeg: true },
  ])('gives the bits of sharp: %o', async (options) => {
    const file = await image().jpeg(options).toBuffer();
    const expected = await sharp(file).ensureAlpha().raw().toBuffer();
    expect(Buffer.from(decode(file, width, height)!)).toEqual(expected);
  });

  it('leaves files to sharp that need more than decoding', async () => {
    const file = await image().jpeg().toBuffer();
    const grey = await image().toColourspace('b-w').jpeg().toBuffer();
    const cmyk = await image().toColourspace('cmyk').jpeg().toBuffer();
    const profile = await image().withIccProfile('p3').jpeg().toBuffer();
    const png = await image().png().toBuffer();
    for (const other of [grey, cmyk, profile, png, Buffer.alloc(0), Buffer.from('no image')])
      expect(decode(other, width, height)).toBe(null);
    expect(decode(file, width, height + 1)).toBe(null);
    expect(decode(file, height, width)).toBe(null);
  });

  it('leaves every file that was cut off to sharp', async () => {
    const file = await image().jpeg().toBuffer();
    for (let length = 0; length < file.length - 2; length += 7)
      expect((await openJpegDecoder())!(file.subarray(0, length), width, height)).toBe(null);
  });

  it('leaves all files to sharp after one that libjpeg gives up', async () => {
    const file = await image().jpeg().toBuffer();
    const damaged = Buffer.from(file);
    damaged.fill(0xff, damaged.indexOf(Buffer.from([0xff, 0xc4])) + 4, file.length - 2); // the Huffman tables
    const own = (await openJpegDecoder())!;
    expect(own(file, width, height)).not.toBe(null);
    expect(own(damaged, width, height)).toBe(null);
    expect(own(file, width, height)).toBe(null);
  });

  it('gives an image or null for a file with a wrong byte', async () => {
    const file = await image().jpeg().toBuffer();
    for (let at = 2; at < file.length; at += 5) {
      const damaged = Buffer.from(file);
      damaged[at]! ^= 0x55;
      const got = (await openJpegDecoder())!(damaged, width, height);
      expect([undefined, width * height * 4]).toContain(got?.length);
    }
  });
});
