import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ImageFolder } from '../../../src/formats/images/index.ts';
import { DataLoader } from '../../../src/index.ts';

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'images-'));
  for (const name of ['b', 'a', 'a/deeper', 'empty']) mkdirSync(join(folder, name));
  await paint('b/red.png', [255, 0, 0], 4, 4);
  await paint('a/blue.PNG', [0, 0, 255], 8, 2); // wide
  await paint('a/deeper/grey.webp', [100, 100, 100], 4, 4);
  await paint('a/clear.png', [10, 20, 30], 4, 4, 4);
  writeFileSync(join(folder, 'a', 'notes.txt'), 'no image');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function paint(
  name: string,
  rgb: readonly number[],
  width: number,
  height: number,
  channels: 3 | 4 = 3,
) {
  const [r, g, b] = rgb;
  const background = { r: r!, g: g!, b: b!, alpha: 1 };
  const image = sharp({ create: { width, height, channels, background } });
  const path = join(folder, name);
  await (name.endsWith('webp') ? image.webp({ lossless: true }).toFile(path) : image.png().toFile(path));
}

const planes = (rgb: readonly number[], pixels: number) => rgb.flatMap((v) => Array<number>(pixels).fill(v));

describe('ImageFolder', () => {
  it('has a class per subfolder and its images in the order of their names', async () => {
    const images = await ImageFolder.open(folder, { height: 2, width: 2 });
    expect(images.classes).toEqual(['a', 'b', 'empty']);
    expect(images.paths.map((path) => path.slice(folder.length + 1))).toEqual([
      'a/blue.PNG',
      'a/clear.png',
      'a/deeper/grey.webp',
      'b/red.png',
    ]);
    expect([...images.labels]).toEqual([0, 0, 0, 1]);
  });

  it("refuses images that torchvision's reads and this one cannot, instead of leaving them out", async () => {
    const mixed = mkdtempSync(join(tmpdir(), 'mixed-'));
    try {
      mkdirSync(join(mixed, 'a'));
      for (const name of ['1.png', '2.BMP']) writeFileSync(join(mixed, 'a', name), '');
      await expect(ImageFolder.open(mixed, { height: 2, width: 2 })).rejects.toMatchObject({
        code: 'ERR_DATA_FILE',
        message: expect.stringMatching(
          /a format is not read; expected \.jpg, .*, got \.bmp \(.*2\.BMP\)\. Convert such images/,
        ) as unknown,
      });
    } finally {
      rmSync(mixed, { recursive: true });
    }
  });

  it('follows links to folders of images', async () => {
    const links = mkdtempSync(join(tmpdir(), 'links-'));
    try {
      mkdirSync(join(links, 'own'));
      symlinkSync(join(folder, 'b'), join(links, 'linked'));
      symlinkSync(join(folder, 'gone'), join(links, 'dangling'));
      const images = await ImageFolder.open(links, { height: 2, width: 2 });
      expect(images.classes).toEqual(['linked', 'own']);
      expect(images.paths).toEqual([join(links, 'linked/red.png')]);
    } finally {
      rmSync(links, { recursive: true });
    }
  });

  it('decodes into planes of bytes, with an alpha channel or not', async () => {
    const images = await ImageFolder.open(folder, { height: 2, width: 2 });
    const samples = await Promise.all([0, 1, 2, 3].map((i) => images.get(i)));
    expect(samples.map(({ image, label }) => [image.shape, [...image.data], label])).toEqual([
      [[3, 2, 2], planes([0, 0, 255], 4), 0],
      [[3, 2, 2], planes([10, 20, 30], 4), 0],
      [[3, 2, 2], planes([100, 100, 100], 4), 0],
      [[3, 2, 2], planes([255, 0, 0], 4), 1],
    ]);
  });

  it('scales to cover and cuts off what juts out', async () => {
    const pixels = Uint8Array.from({ length: 8 * 4 }, (_, i) => (i % 8) * 30); // columns 0, 30, …, 210
    const wide = mkdtempSync(join(tmpdir(), 'wide-'));
    try {
      mkdirSync(join(wide, 'x'));
      await sharp(pixels, { raw: { width: 8, height: 4, channels: 1 } })
        .png()
        .toFile(join(wide, 'x/y.png'));
      const images = await ImageFolder.open(wide, { height: 4, width: 4, channels: 1 });
      const { image } = await images.get(0);
      expect(image.shape).toEqual([1, 4, 4]);
      expect([...image.data.subarray(0, 4)]).toEqual([60, 90, 120, 150]);
      const coloured = await (await ImageFolder.open(wide, { height: 4, width: 4 })).get(0);
      expect([...coloured.image.data]).toEqual([image, image, image].flatMap(({ data }) => [...data]));
    } finally {
      rmSync(wide, { recursive: true });
    }
  });

  it('gives a loader batches', async () => {
    const images = await ImageFolder.open(folder, { height: 3, width: 2, channels: 3 });
    for await (const { image, label } of new DataLoader(images, { batchSize: 2, sampler: [3, 0] })) {
      expect(image.shape).toEqual([2, 3, 3, 2]);
      expect([...image.data]).toEqual([...planes([255, 0, 0], 6), ...planes([0, 0, 255], 6)]);
      expect(label).toEqual({ data: Int32Array.of(1, 0), shape: [2] });
    }
  });

  it('names a file that is cut off or is no image, alone and in a batch', async () => {
    const broken = mkdtempSync(join(tmpdir(), 'broken-'));
    try {
      mkdirSync(join(broken, 'x'));
      const noise = Uint8Array.from({ length: 64 * 64 * 3 }, (_, i) => (i * i * 31) % 251);
      const jpeg = sharp(noise, { raw: { width: 64, height: 64, channels: 3 } }).jpeg();
      const whole = join(broken, 'x/a-whole.jpg');
      await jpeg.toFile(whole);
      const bytes = readFileSync(whole);
      const cut = join(broken, 'x/b-cut.jpg');
      writeFileSync(cut, bytes.subarray(0, bytes.length >> 1));
      writeFileSync(join(broken, 'x/c-none.jpg'), 'no image');
      const images = await ImageFolder.open(broken, { height: 8, width: 8 });
      expect((await images.get(0)).label).toBe(0);
      for (const index of [1, 2]) {
        const failed = { code: 'ERR_DATA_FILE', message: expect.stringContaining(images.paths[index]!) };
        await expect(images.get(index)).rejects.toMatchObject(failed);
        await expect(images.getBatch([0, index])).rejects.toMatchObject(failed);
      }
    } finally {
      rmSync(broken, { recursive: true });
    }
  });

  it('refuses a folder without classes, a size below 1, an index outside', async () => {
    await expect(ImageFolder.open(join(folder, 'b'), { height: 2, width: 2 })).rejects.toThrow(
      'ImageFolder: no images; expected a subfolder of images per class, got 0 subfolders without any',
    );
    await expect(ImageFolder.open(folder, { height: 0, width: 2 })).rejects.toThrow('ImageFolder: height');
    const images = await ImageFolder.open(folder, { height: 2, width: 2 });
    await expect(images.get(4)).rejects.toThrow('ImageFolder: index 4 is outside the data set');
  });
});
