// Transposed convolution over volumes: each depth of the input gives the planes of all depths of the kernel, which are
// added to the depths of the result that they belong to.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, atLeastOne } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { isHalf } from '../../core/dtype.ts';
import { created, type Tensor } from '../../core/tensor.ts';
import { recast } from '../elementwise/autocast.ts';
import { add } from '../elementwise/binary.ts';
import { to } from '../elementwise/convert.ts';
import { indexAdd } from '../indexing/index-write.ts';
import { jointDevice } from '../joint-device.ts';
import { narrow, permute, reshape, squeeze, unsqueeze } from '../shape/views.ts';
import {
  checkOperands,
  convTranspose2d,
  outSizesOf,
  type TransposedSteps,
  transposedSteps,
} from './conv-transpose.ts';
import { storedPositions } from './positions.ts';
import type { Triple } from './sizes.ts';

/** As ConvTransposeOptions, for three dimensions. */
export interface ConvTranspose3dOptions {
  /** Distance in the output between two elements of the input. Default 1. */
  readonly stride?: Triple;
  /** Elements that are cut off on both sides of the output. Default 0. */
  readonly padding?: Triple;
  /** Elements that are added on one side of the output. Default 0. */
  readonly outputPadding?: Triple;
  /** Number of groups of channels that are computed apart from each other. Default 1. */
  readonly groups?: number;
  /** Distance between two elements of the kernel. Default 1. */
  readonly dilation?: Triple;
}

/** Values are checked together with the sizes of the operands. */
export const convTranspose3dOptions = optionChecks<ConvTranspose3dOptions>({
  stride: anything,
  padding: anything,
  outputPadding: anything,
  groups: atLeastOne,
  dilation: anything,
});

/**
 * Computes the transposed convolution of x [batch, in, depth, height, width] with w [in, out / groups, kernel depth,
 * kernel height, kernel width], with the options of convTranspose2d. Needs memory for as many copies of the result as
 * the kernel is deep.
 */
export function convTranspose3d(
  x: Tensor,
  w: Tensor,
  b: Tensor | null = null,
  options: ConvTranspose3dOptions = {},
): Tensor {
  const lowered = recast('low', [x, w, b], (...wide) =>
    convTranspose3d(wide[0]!, wide[1]!, wide[2], options),
  );
  if (lowered) return lowered;
  const op = 'convTranspose3d';
  checkOptions(op, options, convTranspose3dOptions);
  const { groups = 1 } = options;
  checkOperands(op, 5, x, w, b, groups);
  const steps = transposedSteps(op, options, 3);
  jointDevice(op, x, w, b);
  const out = outSizesOf(op, x, w, steps);
  return scope(() => {
    const batched = x.rank === 5 ? x : unsqueeze(x, 0);
    const wide = isHalf(x.dtype)
      ? computed(to(batched, 'float32'), to(w, 'float32'), b && to(b, 'float32'), steps, groups, out[0]!)
      : computed(batched, w, b, steps, groups, out[0]!);
    const result = to(wide, x.dtype);
    return x.rank === 5 ? result : squeeze(result, 0);
  });
}

function computed(
  x: Tensor,
  w: Tensor,
  b: Tensor | null,
  { stride, padding, outputPadding, dilation }: TransposedSteps,
  groups: number,
  outDepth: number,
): Tensor {
  const [batch, ins, depth, height, width] = x.shape as [number, number, number, number, number];
  const [, perGroup, kernel, high, wide] = w.shape as [number, number, number, number, number];
  const planes = reshape(permute(x, [0, 2, 1, 3, 4]), [batch * depth, ins, height, width]);
  const all = convTranspose2d(planes, reshape(w, [ins, perGroup * kernel, high, wide]), null, {
    stride: [stride[1]!, stride[2]!],
    padding: [padding[1]!, padding[2]!],
    outputPadding: [outputPadding[1]!, outputPadding[2]!],
    dilation: [dilation[1]!, dilation[2]!],
    groups,
  });
  const [rows, columns] = all.shape.slice(-2) as [number, number];
  const outs = groups * perGroup;
  const apart = permute(reshape(all, [batch, depth, outs, kernel, rows, columns]), [0, 2, 1, 3, 4, 5]);
  const parts = reshape(apart, [batch, outs, depth * kernel, rows, columns]);
  const positions = Array.from(
    { length: depth * kernel },
    (_, i) => Math.floor(i / kernel) * stride[0]! + (i % kernel) * dilation[0]!,
  );
  const index = created(storedPositions(positions, x.device), [positions.length]);
  const length = Math.max(positions.at(-1)! + 1 + outputPadding[0]!, padding[0]! + outDepth);
  const { dtype, device } = x;
  const sums = indexAdd(zeros([batch, outs, length, rows, columns], { dtype, device }), 2, index, parts);
  const result = narrow(sums, 2, padding[0]!, outDepth);
  return b === null ? result.contiguous() : add(result, reshape(b, [outs, 1, 1, 1]));
}
