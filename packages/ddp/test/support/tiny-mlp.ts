// A three-layer network on the tiny autograd, and data for it.
import { type GradParam, gradParamsSymbol } from '../../src/index.ts';
import { type Matrix, TinyAutograd, type TinyOptions, type Weight } from './tiny-autograd.ts';

const sizes = [4, 6, 5, 3] as const;

export class TinyMlp {
  readonly autograd: TinyAutograd;
  readonly layers: readonly (readonly [Weight, Weight])[];

  constructor(seed: number, options: TinyOptions = {}) {
    const autograd = new TinyAutograd(options);
    this.autograd = autograd;
    this.layers = sizes.slice(1).map((cols, i) => {
      const at = (index: number) => Math.sin(seed + 1.7 * i + 0.9 * index) / 2;
      return [autograd.weight(`w${i}`, sizes[i]!, cols, at), autograd.weight(`b${i}`, 1, cols, at)];
    });
  }

  forward(x: Matrix, layers = this.layers): Matrix {
    return layers.reduce((h, [w, b]) => this.autograd.layer(h, w, b), x);
  }

  /** Returns the loss of samples `from` to `from + count`. The next backward uses its graph. */
  loss(from: number, count: number, forward: (x: Matrix) => Matrix = (x) => this.forward(x)): number {
    const { inputs, targets } = samples(from, count);
    const out = forward(this.autograd.input(count, sizes[0], inputs));
    return this.autograd.meanSquare(out, targets);
  }

  /** Returns the loss of one sample through the first layer only. The next backward leaves out w1, b1, w2 and b2. */
  firstLayerLoss(): number {
    const x = this.autograd.input(1, sizes[0], new Float32Array(sizes[0]).fill(1));
    return this.autograd.meanSquare(this.forward(x, [this.layers[0]!]), new Float32Array(sizes[1]));
  }

  parameters(): number[] {
    return this.autograd.weights.flatMap(({ data }) => [...data]);
  }

  gradients(): number[][] {
    return this.autograd.weights.map(({ grad }) => [...grad]);
  }

  [gradParamsSymbol](): GradParam[] {
    return this.autograd[gradParamsSymbol]();
  }
}

function samples(from: number, count: number) {
  const at = (width: number, scale: number) =>
    Float32Array.from({ length: count * width }, (_, i) => Math.cos(scale * (from * width + i)));
  return { inputs: at(sizes[0], 0.37), targets: at(sizes.at(-1)!, 0.53) };
}
