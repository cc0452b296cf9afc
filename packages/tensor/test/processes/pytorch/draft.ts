// Draws the inputs of a case: dtypes, shapes, values and the views through which an op sees them.
import * as t from '../../../src/index.ts';
import { type DType, type Shape, Tensor } from '../../../src/index.ts';
import type { Arg, Case, Input, Ref, Step, View } from './case.ts';
import type { Draws } from './draws.ts';
import { type Domain, drawValues } from './values.ts';

export const floats = ['float32', 'float64', 'float16', 'bfloat16'] as const;
export const whole = ['int32', 'int64', 'uint8', 'bool'] as const;
export const allTypes: readonly DType[] = [...floats, ...whole];
export const isFloat = (dtype: DType): boolean => (floats as readonly DType[]).includes(dtype);
export const isHalf = (dtype: DType): boolean => dtype === 'float16' || dtype === 'bfloat16';

/** An argument that is left out. */
export const nothing: Ref = { $: 'undefined' };
export const countOf = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

export interface TensorSpec {
  readonly dtype?: DType;
  readonly domain?: Domain;
  /** Whether it may require a gradient. Default true, for floats. */
  readonly grad?: boolean;
  /** Whether it may be seen through views. Default true. */
  readonly views?: boolean;
  /** Whether a view may show an element twice. Default true. */
  readonly repeats?: boolean;
}

/** Builds one case: draws its inputs, then records its calls. */
export class Draft {
  readonly inputs: Input[] = [];
  readonly steps: Step[] = [];
  readonly tags = new Set<string>();
  readonly draws: Draws;
  /** The number of the case among those of its op. */
  readonly index: number;
  compares: Case['compares'] = 'all';
  #hasNothingEmpty = false;

  constructor(draws: Draws, index: number) {
    this.draws = draws;
    this.index = index;
  }

  /** Draws a dtype: each one in the first cases, then floats more often than others. */
  anyType(): DType {
    if (this.index < allTypes.length) return allTypes[this.index]!;
    return this.draws.chance(0.6) ? this.draws.pick(floats) : this.draws.pick(allTypes);
  }

  /**
   * Draws a float dtype, or sometimes an integer dtype or bool, which the op must refuse. PyTorch does not check dtypes
   * if it has nothing to compute, so no size that is drawn after such a dtype is 0: draw dtypes before shapes.
   */
  floatType(): DType {
    if (this.index < floats.length) return floats[this.index]!;
    if (this.draws.chance(0.06)) {
      this.#hasNothingEmpty = true;
      return this.draws.pick(whole);
    }
    return this.draws.chance(0.65) ? 'float32' : this.draws.pick(floats);
  }

  /** Returns `dtype`, or sometimes one of `others`, which the op may have to refuse. Draw it before shapes, too. */
  beside(dtype: DType, others: readonly DType[], share = 0.06): DType {
    if (!this.draws.chance(share)) return dtype;
    this.#hasNothingEmpty = true;
    return this.draws.pick(others);
  }

  size(): number {
    const at = this.draws.uniform();
    if (at < 0.06) return this.#hasNothingEmpty ? 1 : 0;
    return at < 0.28 ? 1 : this.draws.int(2, 4);
  }

  /** Draws a shape of `least` to `most` dimensions and at most 60 elements. */
  shape(least = 0, most = 4): number[] {
    const rank = this.draws.int(least, most);
    const shape = Array.from({ length: rank }, () => this.size());
    while (countOf(shape) > 60) shape[shape.indexOf(Math.max(...shape))] = 1;
    return shape;
  }

  /** Returns `shape` without some leading dimensions and with some sizes 1; a few results do not fit `shape`. */
  narrower(shape: Shape): number[] {
    const { draws } = this;
    const dropped = draws.chance(0.3) ? draws.int(0, shape.length) : 0;
    const own = shape.slice(dropped).map((size) => (draws.chance(0.2) ? 1 : size));
    if (own.length > 0 && draws.chance(0.03)) own[draws.int(0, own.length - 1)] = 5;
    return own;
  }

  /** Draws a dimension, often counted from the end; a few are out of range. */
  dim(rank: number, wrong = 0.04): number {
    const { draws } = this;
    if (draws.chance(wrong)) return draws.pick([rank + 1, -rank - 2]);
    const size = Math.max(1, rank);
    const dim = draws.int(0, size - 1);
    return draws.chance(0.5) ? dim - size : dim;
  }

  /** Draws the dimensions of a reduction: all, one or several; a few times one twice, or an empty list. */
  dims(rank: number): Arg {
    const { draws } = this;
    if (draws.chance(0.25)) return nothing;
    if (draws.chance(0.5)) return this.dim(rank);
    const own = draws.shuffled(Array.from({ length: rank }, (_, d) => d));
    const some = own.slice(0, draws.int(0, rank)).map((d) => (draws.chance(0.4) ? d - rank : d));
    if (some.length > 0 && draws.chance(0.1)) some.push(draws.pick(some));
    return some;
  }

  /** Adds an input whose values and views are drawn. `shape` is that of the input after its views. */
  tensor(shape: Shape, spec: TensorSpec = {}): Ref {
    const { draws } = this;
    const dtype = spec.dtype ?? 'float32';
    const grad = isFloat(dtype) && spec.grad !== false && draws.chance(0.9);
    const hasViews = spec.views !== false && draws.chance(0.5);
    const base = hasViews
      ? this.#behind(shape, spec.domain !== 'distinct' && spec.repeats !== false)
      : { shape, views: [] };
    const values = drawValues(draws, countOf(base.shape), dtype, spec.domain ?? 'any');
    this.inputs.push({ dtype, ...base, values, grad });
    return { $: this.inputs.length - 1 };
  }

  /** Adds an input with exactly these values. */
  given(
    values: readonly (number | string)[],
    shape: Shape,
    dtype: DType = 'float32',
    grad = isFloat(dtype),
  ): Ref {
    this.inputs.push({ dtype, shape, values, views: [], grad });
    return { $: this.inputs.length - 1 };
  }

  /** Draws a shape and views that lead from it to `shape`. `mayRepeat`: whether a view may show an element twice. */
  #behind(shape: Shape, mayRepeat: boolean, depth = 0): { shape: Shape; views: View[] } {
    const { draws } = this;
    const rank = shape.length;
    const kinds = [
      'select',
      ...(mayRepeat ? ['expand'] : []),
      ...(rank > 0 ? ['slice', 'slice', 'flip'] : []),
      ...(rank > 1 ? ['transpose', 'permute'] : []),
    ];
    const kind = draws.pick(kinds);
    const [before, view] = this.#step(kind, shape);
    if (countOf(before) > 150) return { shape, views: [] };
    if (depth > 0 || !draws.chance(0.3)) return { shape: before, views: [view] };
    const deeper = this.#behind(before, mayRepeat, depth + 1);
    return { shape: deeper.shape, views: [...deeper.views, view] };
  }

  #step(kind: string, shape: Shape): [before: Shape, view: View] {
    const { draws } = this;
    const rank = shape.length;
    const dim = rank === 0 ? 0 : draws.int(0, rank - 1);
    if (kind === 'transpose') {
      const other = draws.int(0, rank - 1);
      const before = shape.with(dim, shape[other]!).with(other, shape[dim]!);
      return [before, ['transpose', dim - rank, other]];
    }
    if (kind === 'permute') {
      const order = draws.shuffled(shape.map((_, d) => d));
      const before = [...shape];
      for (const [d, from] of order.entries()) before[from] = shape[d]!;
      return [before, ['permute', order]];
    }
    if (kind === 'expand') {
      const dropped = draws.chance(0.4) ? draws.int(0, rank) : 0;
      return [shape.slice(dropped).map((size) => (draws.chance(0.4) ? 1 : size)), ['expand', shape]];
    }
    if (kind === 'flip') return [shape, ['flip', [dim]]];
    if (kind === 'slice') {
      const [start, step, rest] = [draws.int(0, 2), draws.int(1, 3), draws.int(0, 1)];
      const end = shape[dim] === 0 ? start : start + (shape[dim]! - 1) * step + 1;
      return [shape.with(dim, end + rest), ['slice', dim, start, end, step]];
    }
    const at = draws.int(0, rank);
    const size = draws.int(1, 3);
    return [shape.toSpliced(at, 0, size), ['select', at, draws.int(0, size - 1)]];
  }

  /** Draws one of several ways to call an op: each in the first cases, then any. */
  #way(ways: readonly Step['via'][]): Step['via'] {
    return ways[this.index] ?? this.draws.pick(ways);
  }

  /** Records a call of `op`: as a function of the package, or as a method of its first argument if Tensor has it. */
  call(op: string, ...args: readonly Arg[]): void {
    const [self] = args;
    const isTensor = typeof self === 'object' && self !== null && '$' in self && typeof self.$ === 'number';
    const ways: Step['via'][] = [];
    if (op in t) ways.push('function');
    if (isTensor && op in Tensor.prototype) ways.push('method');
    this.steps.push({ op, via: this.#way(ways), args: trimmed(args) });
  }

  /** Records a call of an operation that changes its first argument, which is input 0. */
  callInPlace(op: string, ...args: readonly Arg[]): void {
    this.steps.push({
      op,
      via: this.#way(op in t ? ['function', 'method'] : ['method']),
      args: trimmed(args),
      inPlace: true,
    });
  }

  /** Records that a module of nn is built, gets a state, and is called. */
  callModule(
    op: string,
    own: readonly Arg[],
    state: Readonly<Record<string, Ref>>,
    args: readonly Arg[],
    training = true,
  ): void {
    this.steps.push({ op: `nn.${op}`, via: 'module', new: trimmed(own), state, args, training });
  }
}

/** Returns the arguments without trailing ones that are left out. */
function trimmed(args: readonly Arg[]): readonly Arg[] {
  const last = args.findLastIndex((arg) => arg !== nothing);
  return args.slice(0, last + 1);
}
