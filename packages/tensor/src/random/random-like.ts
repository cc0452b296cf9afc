// Makes tensors of random numbers with the shape, dtype and device of another tensor, or with given means and standard
// deviations.

import { doesNotFit } from '../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aGenerator, anything, aTensor, checkValue, flag, nonNegative } from '../checks/value-checks.ts';
import { scope } from '../core/context.ts';
import { type DType, holds, isDType, isFloat, isHalf } from '../core/dtype.ts';
import { broadcastShapes, checkedShape, type Shape } from '../core/shape.ts';
import { type Operand, Tensor } from '../core/tensor.ts';
import type { DeviceName } from '../device/device.ts';
import { badOption, needsFloat, notATensor, shown, unknownDtype } from '../errors.ts';
import { add, any, to as converted, div, floor, lt, mul } from '../ops/index.ts';
import { type DrawOptions, type GeneratorOption, rand, randint, randn } from './random-tensors.ts';

/** Options of randLike(), randnLike() and randintLike(). */
export interface RandomLikeOptions extends GeneratorOption {
  /** Default: the dtype of the other tensor. */
  readonly dtype?: DType;
  /** Default: the device of the other tensor. */
  readonly device?: DeviceName;
  /** Whether to record operations on the tensor. Default false. Floats only. */
  readonly requiresGrad?: boolean;
}

const likeOptions = optionChecks<RandomLikeOptions>({
  generator: aGenerator,
  dtype: anything,
  device: anything,
  requiresGrad: flag,
});

/** Draws by `draw`, and converts the numbers by `convert` to the dtype that is wanted. */
function drawnLike(
  op: string,
  like: Tensor,
  options: RandomLikeOptions,
  draw: (shape: Shape, options: DrawOptions, dtype: DType) => Tensor,
): Tensor {
  checkValue(op, like, aTensor);
  checkOptions(op, options, likeOptions);
  const { dtype = like.dtype, device = like.device, generator, requiresGrad = false } = options;
  if (!isDType(dtype)) throw unknownDtype(op, dtype);
  const drawOptions = { device, ...(generator && { generator }) };
  const out = scope(() => draw(like.shape, drawOptions, dtype));
  if (requiresGrad) out.requiresGrad = true;
  return out;
}

/** Bits of the numbers that a 16-bit float holds exactly in [½, 1). */
const digits: Partial<Record<DType, number>> = { float16: 11, bfloat16: 8 };

function needFloat(op: string, dtype: DType): void {
  if (!isFloat(dtype)) throw needsFloat(op, dtype);
}

/** Returns uniform numbers in [0, 1) with the shape, dtype (a float) and device of another tensor. */
export const randLike = (like: Tensor, options: RandomLikeOptions = {}): Tensor =>
  drawnLike('randLike', like, options, (shape, own, dtype) => {
    needFloat('randLike', dtype);
    const uniform = rand(shape, own);
    if (!isHalf(dtype)) return converted(uniform, dtype);
    // Digits are dropped, because rounding could give 1.
    const steps = 2 ** digits[dtype]!;
    return converted(div(floor(mul(uniform, steps)), steps), dtype);
  });

/** Returns normal numbers with mean 0 and variance 1, with the shape, dtype (a float) and device of another tensor. */
export const randnLike = (like: Tensor, options: RandomLikeOptions = {}): Tensor =>
  drawnLike('randnLike', like, options, (shape, own, dtype) => {
    needFloat('randnLike', dtype);
    return converted(randn(shape, own), dtype);
  });

/**
 * Returns integers from low … high − 1, all equally likely, with the shape, dtype and device of another tensor. Both
 * ends must fit the dtype; high − low is at most 2^32.
 */
export const randintLike = (
  like: Tensor,
  low: number,
  high: number,
  options: RandomLikeOptions = {},
): Tensor =>
  drawnLike('randintLike', like, options, (shape, own, dtype) => {
    if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || low >= high)
      throw badOption(
        'randintLike: low and high',
        'integers, low below high',
        `${shown(low)}, ${shown(high)}`,
      );
    for (const end of [low, high - 1])
      if (!holds(dtype, end) || (dtype === 'bool' && end !== 0 && end !== 1))
        throw doesNotFit('randintLike', end, dtype);
    return converted(randint(low, high, shape, own), dtype);
  });

/** Options of normal(). */
export interface NormalOptions extends DrawOptions {
  /** For a mean and a standard deviation that are numbers, which have no shape. */
  readonly shape?: Shape;
}

const normalOptions = optionChecks<NormalOptions>({
  generator: aGenerator,
  device: anything,
  shape: anything,
});

/**
 * Returns normal numbers with the given mean and standard deviation, which are tensors of floats, broadcast to each
 * other, or numbers; two numbers need a shape. The result has the dtype of the mean, or of the only tensor, and float32
 * for two numbers. No gradient goes to them. Waits for the standard deviations, none of which may be below 0.
 */
export function normal(mean: Operand, std: Operand, options: NormalOptions = {}): Tensor {
  checkOptions('normal', options, normalOptions);
  const tensors = [mean, std].filter((operand) => typeof operand !== 'number');
  for (const operand of tensors) {
    if (!(operand instanceof Tensor)) throw notATensor('normal', operand);
    needFloat('normal', operand.dtype);
  }
  if (typeof std === 'number') checkValue('normal: std', std, nonNegative);
  const [first = null] = tensors;
  if ((options.shape === undefined) === (first === null))
    throw badOption(
      'normal: shape',
      first === null ? 'the shape of the result beside two numbers' : 'none beside a tensor',
      shown(options.shape),
    );
  const { shape: given, ...own } = options;
  return scope(() => {
    if (typeof std !== 'number' && any(lt(std, 0)).item() !== 0)
      throw badOption('normal: std', 'numbers ≥ 0', 'one below 0');
    const shape =
      first === null
        ? checkedShape('normal', given!)
        : tensors.reduce<Shape>((joint, tensor) => broadcastShapes('normal', joint, tensor.shape), []);
    const drawn = randn(shape, { ...own, ...(first && { device: first.device }) });
    const plain = (operand: Operand): Operand => (typeof operand === 'number' ? operand : operand.detach());
    return converted(add(mul(drawn, plain(std)), plain(mean)), first?.dtype ?? 'float32');
  });
}
