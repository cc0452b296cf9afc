import { TensorError, type TensorErrorCode } from '../../src/index.ts';

/** Returns the code of the TensorError that `fn` throws, undefined if it throws nothing. */
export function codeOf(fn: () => unknown): TensorErrorCode | undefined {
  try {
    fn();
  } catch (error) {
    if (error instanceof TensorError) return error.code;
    throw error;
  }
  return undefined;
}
