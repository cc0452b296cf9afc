// One rank's part of a reproducible sum: its addends, divided into blocks, one for each part of the result. A
// block has the words of its elements, plus one word for the number of addends.
import { type ArrayOf, type BufferView, elementsOf } from '../group/buffer.ts';
import { type Exponents, exponentDtype, type SummableDType, wordsOf } from './grid.ts';
import { gridKernels } from './kernels.ts';
import type { Scratch } from './scratch.ts';

export class GridSum {
  readonly #dtype: SummableDType;
  readonly #inputs: readonly ArrayOf<SummableDType>[];
  readonly #blocks: readonly number[];
  /** Maximum exponent of each element; over all ranks after the allReduce with max. */
  readonly exponents: BufferView;
  /** Sums as int64 words, to be reduced with sum. */
  readonly words: BufferView;

  /** Each input has as many elements as all blocks together. Does not copy the inputs. */
  constructor(
    dtype: SummableDType,
    inputs: readonly BufferView[],
    blocks: readonly number[],
    scratch: Scratch,
  ) {
    this.#dtype = dtype;
    this.#inputs = inputs.map(valuesOf);
    this.#blocks = blocks;
    const count = blocks.reduce((all, block) => all + block, 0);
    this.exponents = scratch.take(count, exponentDtype(dtype));
    this.words = scratch.take(wordsOf(dtype, count) + blocks.length, 'int64');
  }

  /** Computes the exponents of this rank's inputs. */
  raise(): void {
    const exponents = elementsOf(this.exponents) as Exponents;
    const kernels = gridKernels();
    for (const input of this.#inputs) kernels.raise(this.#dtype, input, exponents);
  }

  /** Adds the inputs to the words. Requires that the exponents have been reduced over all ranks. */
  add(): void {
    const words = elementsOf(this.words) as BigInt64Array;
    const kernels = gridKernels();
    let end = 0;
    for (const [start, count, exponents] of this.#eachBlock()) {
      const begin = end;
      end += wordsOf(this.#dtype, count) + 1;
      const own = words.subarray(begin, end);
      for (const input of this.#inputs)
        kernels.add(this.#dtype, input.subarray(start, start + count), exponents, own);
      own[own.length - 1] = BigInt(this.#inputs.length);
    }
  }

  /**
   * Rounds the sums of one block and writes them to `output`. If there are more than `maxAddends` addends,
   * writes nothing. Returns the number of addends.
   */
  finish(block: number, output: BufferView, sums: BufferView, op: 'sum' | 'avg', maxAddends: number): number {
    const words = elementsOf(sums) as BigInt64Array;
    const addends = Number(words.at(-1));
    const [, , exponents] = [...this.#eachBlock()][block]!;
    const divisor = op === 'avg' ? addends : 1;
    if (addends <= maxAddends)
      gridKernels().finish(this.#dtype, words, exponents, addends, divisor, valuesOf(output));
    return addends;
  }

  /** Yields each block's first element, number of elements, and exponents. */
  *#eachBlock(): Generator<readonly [number, number, Exponents]> {
    const exponents = elementsOf(this.exponents) as Exponents;
    let start = 0;
    for (const count of this.#blocks) {
      yield [start, count, exponents.subarray(start, start + count)];
      start += count;
    }
  }
}

function valuesOf(view: BufferView): ArrayOf<SummableDType> {
  return elementsOf(view as BufferView & { readonly dtype: SummableDType });
}
