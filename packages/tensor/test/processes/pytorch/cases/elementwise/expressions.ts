// Cases of random expressions: chains of ops with gradients in which several values are used more than once.
import type { Ref } from '../../case.ts';
import { countOf, type Draft } from '../../draft.ts';

interface Known {
  readonly ref: Ref;
  readonly shape: readonly number[];
}

/** Smooth functions of one element whose values stay in a range, so that those of a chain do not explode. */
const calm = [
  'tanh',
  'sigmoid',
  'sin',
  'cos',
  'erf',
  'silu',
  'gelu',
  'softplus',
  'neg',
  'abs',
  'relu',
  'elu',
  'leakyRelu',
];

class Chain {
  readonly #d: Draft;
  readonly #known: Known[] = [];
  /** The number of the next result; the inputs are values 0 to 2. */
  #results: number;
  readonly #dtype: 'float32' | 'float64';

  constructor(d: Draft) {
    this.#d = d;
    this.#dtype = d.draws.chance(0.6) ? 'float64' : 'float32';
    this.#results = 3;
    // The inputs have lower numbers than all results, so draw them first.
    const shape = d.shape(1, 3).map((size) => Math.max(1, size));
    const wanted = [
      shape,
      d.narrower(shape).map((size) => (size === 5 ? 1 : size)),
      [shape.at(-1)!, d.draws.int(1, 3)],
    ];
    for (const own of wanted) {
      const ref = d.tensor(own, { dtype: this.#dtype, domain: d.draws.chance(0.75) ? 'real' : 'coarse' });
      this.#known.push({ ref, shape: own });
    }
  }

  #call(
    op: string,
    shape: readonly number[],
    ...args: Parameters<Draft['call']> extends [string, ...infer R] ? R : never
  ): Known {
    this.#d.call(op, ...args);
    const known = { ref: { $: this.#results++ }, shape };
    this.#known.push(known);
    return known;
  }

  /** Returns a value of the same shape, or of a shape that broadcasts to it. */
  #beside({ shape }: Known): Known {
    const fits = this.#known.filter((other) => {
      const own = other.shape;
      return (
        own.length <= shape.length &&
        own.every((size, i) => size === 1 || size === shape[shape.length - own.length + i])
      );
    });
    return this.#d.draws.pick(fits);
  }

  /** Applies a random op, or two or three that belong together, to `x`. */
  grow(x: Known): Known {
    const { draws } = this.#d;
    const { ref, shape } = x;
    const rank = shape.length;
    const dim = rank === 0 ? 0 : draws.int(0, rank - 1);
    const dropped = shape.toSpliced(dim, 1);
    const ways: (() => Known)[] = [
      () => this.#call(draws.pick(calm), shape, ref),
      () => this.#call(draws.pick(calm), shape, ref),
      () =>
        this.#call(draws.pick(['add', 'sub', 'mul', 'maximum', 'minimum']), shape, ref, this.#beside(x).ref),
      () => this.#call(draws.pick(['add', 'mul', 'sub']), shape, ref, draws.pick([0.5, -1.5, 2])),
      () => this.#call('clamp', shape, ref, -0.75, 1.25),
      () =>
        this.#call('div', shape, ref, this.#call('add', shape, this.#call('square', shape, ref).ref, 1).ref),
      () => this.#call('log', shape, this.#call('add', shape, this.#call('square', shape, ref).ref, 0.5).ref),
      () => this.#call('sqrt', shape, this.#call('add', shape, this.#call('abs', shape, ref).ref, 0.25).ref),
      () => this.#call('exp', shape, this.#call('tanh', shape, ref).ref),
    ];
    if (rank > 0) {
      ways.push(
        () => this.#call(draws.pick(['softmax', 'logSoftmax', 'cumsum']), shape, ref, dim),
        () => this.#call('flip', shape, ref, [dim]),
        () => this.#call('roll', shape, ref, 1, dim - rank),
        () => this.#call('unsqueeze', shape.toSpliced(dim, 0, 1), ref, dim),
        () => this.#call('flatten', [countOf(shape)], ref),
      );
    }
    if (rank > 1) {
      const other = draws.int(0, rank - 1);
      ways.push(
        () => this.#call(draws.pick(['sum', 'mean', 'max', 'min', 'logSumExp', 'norm']), dropped, ref, dim),
        () =>
          this.#call('transpose', shape.with(dim, shape[other]!).with(other, shape[dim]!), ref, dim, other),
        () => this.#call('sub', shape, ref, this.#call('mean', shape.with(dim, 1), ref, [dim], true).ref),
        () => this.#call('layerNorm', shape, ref, [shape.at(-1)!], { eps: 0.1 }),
        () => this.#call(draws.pick(['tril', 'triu']), shape, ref),
      );
    }
    if (rank > 0 && countOf(shape) < 60)
      ways.push(() => this.#call('cat', shape.with(dim, 2 * shape[dim]!), [ref, ref], dim));
    if (rank > 0) ways.push(() => this.#call('narrow', shape.with(dim, 1), ref, dim, shape[dim]! - 1, 1));
    const weight = this.#known[2]!;
    if (rank > 0 && shape.at(-1) === weight.shape[0])
      ways.push(() => this.#call('matmul', [...shape.slice(0, -1), weight.shape[1]!], ref, weight.ref));
    return draws.pick(ways)();
  }

  run(): void {
    let x = this.#known[0]!;
    const length = this.#d.draws.int(3, 9);
    for (let i = 0; i < length; i++) x = this.grow(x);
  }
}

export const expressions = (d: Draft): void => new Chain(d).run();
