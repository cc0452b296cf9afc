// A minimal reverse-mode autograd on row-major Float32Arrays, with little more than DDP requires of an engine. Options
// switch off optional members of the contract and change when gradients are reported.
import type { BufferView } from '@ringwise/collectives';
import { type GradParam, gradParamsSymbol } from '../../src/index.ts';

export interface Matrix {
  readonly rows: number;
  readonly cols: number;
  readonly data: Float32Array;
  grad: Float32Array;
}

export interface Weight extends Matrix {
  readonly name: string;
  readonly hooks: Set<() => void>;
  /** Whether it has a gradient from the last backward passes. */
  hasGrad: boolean;
  /** Whether it owns memory for a gradient even while it has none. */
  hasMemory: boolean;
}

export interface TinyOptions {
  /** Whether parameters offer bindGrad. Default true. */
  readonly binds?: boolean;
  /** Whether the engine offers onBackwardEnd. Default true. */
  readonly tellsEnd?: boolean;
  /** Reports gradients at the end of backward in this order instead of when they are final. */
  readonly reportOrder?: (weights: Weight[]) => Weight[];
}

const matrix = (rows: number, cols: number, data = new Float32Array(rows * cols)): Matrix => {
  return { rows, cols, data, grad: new Float32Array(rows * cols) };
};

const viewOf = (host: Float32Array): BufferView => {
  return { dtype: 'float32', count: host.length, device: { kind: 'cpu', index: 0 }, host, handle: null };
};

export class TinyAutograd {
  readonly weights: Weight[] = [];
  readonly #options: TinyOptions;
  readonly #endHooks = new Set<() => void>();
  #weight = 1;
  #tape: { readonly inputs: readonly Matrix[]; readonly back: () => void }[] = [];

  constructor(options: TinyOptions = {}) {
    this.#options = options;
  }

  weight(name: string, rows: number, cols: number, valueAt: (index: number) => number): Weight {
    const { binds = true } = this.#options;
    const data = Float32Array.from({ length: rows * cols }, (_, index) => valueAt(index));
    const weight: Weight = {
      ...matrix(rows, cols, data),
      name,
      hooks: new Set<() => void>(),
      hasGrad: false,
      hasMemory: binds,
    };
    this.weights.push(weight);
    return weight;
  }

  /** Returns tanh(x · w + bias), where bias is one row. */
  layer(x: Matrix, w: Weight, bias: Weight): Matrix {
    const out = matrix(x.rows, w.cols);
    const each = (visit: (row: number, col: number, at: number) => void) => {
      for (let at = 0; at < out.data.length; at++) visit(Math.floor(at / w.cols), at % w.cols, at);
    };
    each((row, col, at) => {
      let sum = bias.data[col]!;
      for (let k = 0; k < x.cols; k++) sum += x.data[row * x.cols + k]! * w.data[k * w.cols + col]!;
      out.data[at] = Math.tanh(sum);
    });
    const back = () =>
      each((row, col, at) => {
        const slope = out.grad[at]! * (1 - out.data[at]! ** 2);
        bias.grad[col]! += slope;
        for (let k = 0; k < x.cols; k++) {
          w.grad[k * w.cols + col]! += slope * x.data[row * x.cols + k]!;
          x.grad[row * x.cols + k]! += slope * w.data[k * w.cols + col]!;
        }
      });
    this.#tape.push({ inputs: [x, w, bias], back });
    return out;
  }

  input(rows: number, cols: number, data: Float32Array<ArrayBuffer>): Matrix {
    return matrix(rows, cols, data);
  }

  /** Returns the mean of squared differences over all elements. The next backward starts from it. */
  meanSquare(out: Matrix, target: Float32Array): number {
    const scale = 1 / target.length;
    const back = () => {
      for (const [i, value] of out.data.entries())
        out.grad[i]! += this.#weight * 2 * scale * (value - target[i]!);
    };
    this.#tape.push({ inputs: [out], back });
    return out.data.reduce((sum, value, i) => sum + scale * (value - target[i]!) ** 2, 0);
  }

  /** Computes the gradients of the loss times `weight`. */
  backward(weight = 1): void {
    this.#weight = weight;
    const tape = this.#tape.splice(0);
    const firstUse = new Map<Matrix, number>();
    tape.forEach(({ inputs }, at) => {
      for (const input of inputs) if (!firstUse.has(input)) firstUse.set(input, at);
    });
    const reported: Weight[] = [];
    for (let at = tape.length - 1; at >= 0; at--) {
      tape[at]!.back();
      // Weights come after x in the list of inputs: the bias is reported before the matrix.
      for (const weight of this.weights.filter((weight) => firstUse.get(weight) === at).reverse()) {
        weight.hasGrad = true;
        if (this.#options.reportOrder) reported.push(weight);
        else for (const hook of weight.hooks) hook();
      }
    }
    for (const weight of this.#options.reportOrder?.(reported) ?? []) for (const hook of weight.hooks) hook();
    for (const hook of this.#endHooks) hook();
  }

  zeroGrad(): void {
    for (const weight of this.weights) {
      weight.grad.fill(0);
      weight.hasGrad = false;
    }
  }

  step(lr: number): void {
    for (const { data, grad } of this.weights) for (const i of data.keys()) data[i]! -= lr * grad[i]!;
  }

  [gradParamsSymbol](): GradParam[] {
    const { binds = true, tellsEnd = true } = this.#options;
    const subscribe = (hooks: Set<() => void>) => (hook: () => void) => {
      hooks.add(hook);
      return () => void hooks.delete(hook);
    };
    return this.weights.map((weight) => ({
      name: weight.name,
      value: viewOf(weight.data),
      shape: [weight.rows, weight.cols],
      get grad() {
        return weight.hasGrad || weight.hasMemory ? viewOf(weight.grad) : null;
      },
      onGradReady: subscribe(weight.hooks),
      ...(binds && {
        bindGrad: ({ host }: BufferView) => {
          const bucket = host as Float32Array;
          bucket.set(weight.grad);
          weight.grad = bucket;
          weight.hasMemory = true;
        },
        dropGrad: () => {
          weight.grad = new Float32Array(weight.grad.length);
          weight.hasMemory = false;
        },
      }),
      ...(tellsEnd && { onBackwardEnd: subscribe(this.#endHooks) }),
    }));
  }
}
