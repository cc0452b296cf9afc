import { describe, expect, it } from 'vitest';
import { syntheticDigits } from '../../../src/datasets/synthetic.ts';
import { normalize, RandomSampler } from '../../../src/index.ts';

describe('syntheticDigits', () => {
  it('has the layout of MNIST with balanced labels', () => {
    const { images, labels } = syntheticDigits({ count: 105 });
    expect(images.shape).toEqual([105, 28, 28]);
    expect(images.data).toHaveLength(105 * 28 * 28);
    expect(labels.shape).toEqual([105]);
    const perDigit = new Array<number>(10).fill(0);
    for (const label of labels.data) perDigit[label]! += 1;
    expect(perDigit).toEqual([11, 11, 11, 11, 11, 10, 10, 10, 10, 10]);
  });

  it('is the same for the same seed and other for another', () => {
    const first = syntheticDigits({ count: 20, seed: 4 });
    expect(syntheticDigits({ count: 20, seed: 4 })).toEqual(first);
    expect(syntheticDigits({ count: 20, seed: 5 }).images.data).not.toEqual(first.images.data);
  });

  it('keeps the digits inside the image and the background dark, at other sizes too', () => {
    for (const size of [16, 28, 48]) {
      const { images } = syntheticDigits({ count: 200, size });
      let onEdge = 0;
      let sum = 0;
      images.data.forEach((value, i) => {
        const x = i % size;
        const y = Math.floor(i / size) % size;
        if (value > 100 && (x === 0 || y === 0 || x === size - 1 || y === size - 1)) onEdge += 1;
        sum += value;
      });
      expect(onEdge / 200).toBeLessThan(0.5);
      expect(sum / images.data.length / 255).toBeGreaterThan(0.07);
      expect(sum / images.data.length / 255).toBeLessThan(0.17);
    }
  });

  it('can be learned from one seed and tested on another, but not perfectly by a linear classifier', () => {
    const accuracy = linearAccuracy(
      syntheticDigits({ count: 3000 }),
      syntheticDigits({ count: 500, seed: 100 }),
    );
    expect(accuracy).toBeGreaterThan(0.6);
    expect(accuracy).toBeLessThan(0.9);
  });

  it('refuses bad arguments', () => {
    expect(() => syntheticDigits({ count: 0 })).toThrow('syntheticDigits: count: expected an integer from 1');
    expect(() => syntheticDigits({ count: 1, size: 4 })).toThrow(
      'size: expected an integer from 8 to 256, got 4',
    );
  });
});

type Digits = ReturnType<typeof syntheticDigits>;

/** Trains softmax regression by stochastic gradient descent. Returns the accuracy on `test`. */
function linearAccuracy(train: Digits, test: Digits): number {
  const pixels = 28 * 28;
  const weights = Array.from({ length: 10 }, () => new Float32Array(pixels + 1));
  const score = (image: Float32Array) =>
    weights.map((row) => {
      let sum = row[pixels]!;
      for (let i = 0; i < pixels; i++) sum += row[i]! * image[i]!;
      return sum;
    });
  const images = normalize(train.images.data);
  const sampler = new RandomSampler(train.labels.data.length);
  for (let epoch = 0; epoch < 3; epoch++) {
    for (const index of sampler) {
      const image = images.subarray(index * pixels, (index + 1) * pixels);
      const powers = score(image).map(Math.exp);
      const total = powers.reduce((sum, power) => sum + power, 0);
      for (const [digit, row] of weights.entries()) {
        const step = 0.01 * ((digit === train.labels.data[index] ? 1 : 0) - powers[digit]! / total);
        for (let i = 0; i < pixels; i++) row[i]! += step * image[i]!;
        row[pixels]! += step;
      }
    }
  }
  const testImages = normalize(test.images.data);
  const right = test.labels.data.filter((label, index) => {
    const scores = score(testImages.subarray(index * pixels, (index + 1) * pixels));
    return scores.indexOf(Math.max(...scores)) === label;
  });
  return right.length / test.labels.data.length;
}
