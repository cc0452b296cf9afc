// A digit data set that needs no download: strokes in ten classes, shifted, rotated, scaled, slanted and
// bent, drawn with varying width and brightness, with dots and noise. It has MNIST's layout but other images.

import { checkInteger } from '../check.ts';
import type { MnistSplit } from '../formats/idx/mnist.ts';
import { checkedOptions, optionNames } from '../options.ts';
import { Mt19937, randperm } from '../samplers/random.ts';
import { digitGlyphs, type Glyph, type Point } from './digit-strokes.ts';

/** Options of syntheticDigits(). */
export interface SyntheticDigitsOptions {
  /** Number of images to make. */
  readonly count: number;
  /** Seed of the images; use different ones for training and testing. Default 0. */
  readonly seed?: number;
  /** Number of rows and of columns. Default 28. */
  readonly size?: number;
}

const names = optionNames<SyntheticDigitsOptions>({ count: true, seed: true, size: true });

/**
 * Returns `count` images [count, size, size] with equal numbers of each digit (± 1), in random order. Blocks.
 * Scaled to 0 … 1, the pixels have a mean of about 0.11 and a standard deviation of about 0.25.
 */
export function syntheticDigits(options: SyntheticDigitsOptions): MnistSplit {
  const { count, seed = 0, size = 28 } = checkedOptions('syntheticDigits', options, names);
  checkInteger('syntheticDigits: count', count, 1, 2 ** 24);
  checkInteger('syntheticDigits: seed', seed, 0);
  checkInteger('syntheticDigits: size', size, 8, 256);
  const labels = Uint8Array.from(randperm(count, seed), (position) => position % 10);
  const images = new Uint8Array(count * size * size);
  const random = new Mt19937(seed + 1);
  const canvas: Canvas = { ink: new Float32Array(size * size), size };
  for (let i = 0; i < count; i++) {
    canvas.ink.fill(0);
    const variants = digitGlyphs[labels[i]!]!;
    drawGlyph(canvas, variants[random.uint32() % variants.length]!, random);
    drawDots(canvas, random);
    develop(canvas, images.subarray(i * size * size, (i + 1) * size * size), random);
  }
  return { images: { data: images, shape: [count, size, size] }, labels: { data: labels, shape: [count] } };
}

interface Canvas {
  /** Ink of each pixel, 0 … 1. */
  readonly ink: Float32Array;
  readonly size: number;
}

function between(random: Mt19937, low: number, high: number): number {
  return low + (high - low) * random.float64();
}

function drawGlyph(canvas: Canvas, glyph: Glyph, random: Mt19937): void {
  const place = randomPlacement(canvas.size, random);
  const radius = between(random, 0.028, 0.062) * canvas.size; // of the pen, in pixels
  for (const stroke of glyph) {
    let from = place(stroke[0]!);
    for (const point of stroke) {
      const to = place(point);
      drawSegment(canvas, from, to, radius);
      from = to;
    }
  }
}

/**
 * Returns a function that maps glyph coordinates to pixels. It bends with a sine wave in each direction, then applies a
 * random affine map.
 */
function randomPlacement(size: number, random: Mt19937): (point: Point) => Point {
  const turn = between(random, -0.25, 0.25); // radians
  const slant = between(random, -0.3, 0.3);
  const width = between(random, 0.26, 0.37) * size;
  const height = between(random, 0.3, 0.4) * size;
  const centerX = size / 2 - 0.5 + between(random, -0.09, 0.09) * size;
  const centerY = size / 2 - 0.5 + between(random, -0.09, 0.09) * size;
  const bendX = between(random, -0.12, 0.12);
  const bendY = between(random, -0.12, 0.12);
  const phase = between(random, 0, 2 * Math.PI);
  const cos = Math.cos(turn);
  const sin = Math.sin(turn);
  return ([x, y]) => {
    const bentY = y + bendY * Math.sin(3 * x + phase);
    const bentX = x + bendX * Math.sin(3 * y + phase) - slant * bentY;
    const wide = bentX * width;
    const high = bentY * height;
    return [centerX + cos * wide - sin * high, centerY + sin * wide + cos * high];
  };
}

/** Draws the pixels within `radius` of the segment, with an edge that is one pixel soft. */
function drawSegment({ ink, size }: Canvas, [x0, y0]: Point, [x1, y1]: Point, radius: number): void {
  const reach = radius + 0.5;
  const top = Math.max(0, Math.ceil(Math.min(y0, y1) - reach));
  const bottom = Math.min(size - 1, Math.floor(Math.max(y0, y1) + reach));
  const left = Math.max(0, Math.ceil(Math.min(x0, x1) - reach));
  const right = Math.min(size - 1, Math.floor(Math.max(x0, x1) + reach));
  const dx = x1 - x0;
  const dy = y1 - y0;
  const perLength = 1 / (dx * dx + dy * dy || 1);
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const along = Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) * perLength));
      const offX = x - x0 - along * dx;
      const offY = y - y0 - along * dy;
      const strength = Math.min(1, reach - Math.sqrt(offX * offX + offY * offY));
      const pixel = y * size + x;
      if (strength > ink[pixel]!) ink[pixel] = strength;
    }
  }
}

/** Draws up to two dots, each of ink or of background. */
function drawDots({ ink, size }: Canvas, random: Mt19937): void {
  for (let dots = random.uint32() % 3; dots > 0; dots--) {
    const x0 = between(random, 0.15, 0.85) * size;
    const y0 = between(random, 0.15, 0.85) * size;
    const radius = between(random, 0.035, 0.08) * size;
    const value = random.uint32() % 2;
    for (let y = Math.max(0, Math.ceil(y0 - radius)); y <= Math.min(size - 1, y0 + radius); y++) {
      for (let x = Math.max(0, Math.ceil(x0 - radius)); x <= Math.min(size - 1, x0 + radius); x++) {
        if ((x - x0) ** 2 + (y - y0) ** 2 <= radius * radius) ink[y * size + x] = value;
      }
    }
  }
}

/** Converts ink to the bytes of `image`, with one brightness for the whole image and noise for each pixel. */
function develop({ ink }: Canvas, image: Uint8Array, random: Mt19937): void {
  const brightness = between(random, 150, 255);
  const noise = between(random, 0, 40) / 255;
  let bits = 0;
  for (let i = 0; i < image.length; i++) {
    bits = i % 4 === 0 ? random.uint32() : bits >>> 8; // eight bits of noise per pixel
    const value = ink[i]! * brightness + ((bits & 255) - 127.5) * noise;
    image[i] = Math.max(0, Math.min(255, value));
  }
}
