// The smallest autograd that can take part in differentiable verbs: vectors of float64 with one operand each.
import {
  type Autograd,
  asBuffer,
  type BufferView,
  bufferSymbol,
  type Differentiable,
  differentiableSymbol,
} from '../../src/index.ts';

let isTracked = true;

export class Value implements Differentiable {
  readonly data: Float64Array;
  grad: Float64Array;
  #toInput: ((grad: Value) => void) | null = null;

  constructor(data: ArrayLike<number>) {
    this.data = Float64Array.from(data);
    this.grad = new Float64Array(data.length);
  }

  backward(grad: ArrayLike<number>): void {
    this.grad = this.grad.map((value, i) => value + grad[i]!);
    this.#toInput?.(new Value(grad));
  }

  [bufferSymbol](): BufferView {
    return asBuffer(this.data);
  }

  [differentiableSymbol](): Autograd<Value> {
    return autograd;
  }

  static record(output: Value, input: Value, backward: (grad: Value) => Value | null): Value {
    if (isTracked)
      output.#toInput = (grad) => void input.backward(backward(grad)?.data ?? new Float64Array(1));
    return output;
  }
}

const autograd: Autograd<Value> = {
  shapeOf: ({ data }) => [data.length],
  isRecorded: () => isTracked,
  empty: (_, [count = 1]) => new Value(new Float64Array(count)),
  zeros: (_, [count = 1]) => new Value(new Float64Array(count)),
  copy: ({ data }) => new Value(data),
  toFront: ({ data }) => new Value(data),
  fromFront: (x) => x,
  narrow: ({ data }, _, from, count) => new Value(data.subarray(from, from + count)),
  join: (parts) => new Value(parts.flatMap(({ data }) => [...data])),
  scale: ({ data }, factor) => new Value(data.map((value) => value * factor)),
  keep: () => {},
  dispose: () => {},
  untracked: (fn) => {
    const before = isTracked;
    isTracked = false;
    try {
      return fn();
    } finally {
      isTracked = before;
    }
  },
  record: (_, output, input, backward) => Value.record(output, input, backward),
};
