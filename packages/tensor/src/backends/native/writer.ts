// Writes the operands of a call into the array of numbers that the addon reads.
import type { Input } from '../operands.ts';
import { numbersAt, shapeAt } from './layout.ts';

/** Writes operands to the scratch array, which C++ reads; tensor_state.h describes its layout. */
export class Writer {
  readonly #scratch: Float64Array;
  /** Index for the strides of the next operand. */
  #at = 0;

  constructor(scratch: Float64Array) {
    this.#scratch = scratch;
  }

  /** Writes operand i: a handle and an offset, or no handle and a number. */
  setOperand(i: number, operand: Input): void {
    const scratch = this.#scratch;
    if (typeof operand === 'number') {
      scratch[2 * i] = 0;
      scratch[2 * i + 1] = operand;
    } else {
      scratch[2 * i] = operand.memory.handle;
      scratch[2 * i + 1] = operand.offset;
    }
  }

  /** Writes number `i` of a call: an attribute, not an operand. */
  number(i: number, value: number): void {
    this.#scratch[numbersAt + i] = value;
  }

  /** Starts a walk over operands of any strides. If all operands are dense, the walk has a single dimension. */
  shape(shape: readonly number[], areDense: boolean): void {
    const scratch = this.#scratch;
    if (areDense) {
      let count = 1;
      for (let d = 0; d < shape.length; d++) count *= shape[d]!;
      scratch[shapeAt] = 1;
      scratch[shapeAt + 1] = count;
      this.#at = shapeAt + 2;
    } else {
      scratch[shapeAt] = shape.length;
      for (let d = 0; d < shape.length; d++) scratch[shapeAt + 1 + d] = shape[d]!;
      this.#at = shapeAt + 1 + shape.length;
    }
  }

  /**
   * Writes operand i of the walk that shape() has started. The addon reads no strides of an operand that is a number.
   */
  strided(i: number, operand: Input, shape: readonly number[], areDense: boolean): void {
    this.setOperand(i, operand);
    const scratch = this.#scratch;
    const at = this.#at;
    if (areDense) {
      scratch[at] = 1;
      this.#at = at + 1;
      return;
    }
    this.#at = at + shape.length;
    if (typeof operand === 'number') return;
    const { strides } = operand;
    let stride = 1;
    for (let d = shape.length - 1; d >= 0; d--) {
      scratch[at + d] = strides === null ? stride : strides[d]!;
      stride *= shape[d]!;
    }
  }
}
