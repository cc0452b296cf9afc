// Products of two vectors with a matrix for each output.

import { badBilinear } from '../../checks/array-errors.ts';
import { scope } from '../../core/context.ts';
import { countOf, type Shape, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mixedDtypes } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add } from '../elementwise/binary.ts';
import { requireFloat, requireOperand } from '../elementwise/convert.ts';
import { permute, reshape } from '../shape/views.ts';
import { matmul } from './matmul.ts';

/**
 * Computes x1 · w[o] · x2 for each output o, and adds b [out] unless it is null. x1 is [..., in1], x2 [..., in2] with
 * the same dimensions in front, w [out, in1, in2]; the result is [..., out]. Floats of one dtype.
 */
export function bilinear(x1: Tensor, x2: Tensor, w: Tensor, b: Tensor | null = null): Tensor {
  const op = 'bilinear';
  const lowered = recast('low', [x1, x2, w, b], (...all) =>
    bilinear(all[0]!, all[1]!, all[2]!, all[3] ?? null),
  );
  if (lowered) return lowered;
  requireFloat(op, x1);
  requireOperand(op, 'x2', x2);
  requireOperand(op, 'w', w);
  if (b !== null) requireOperand(op, 'b', b);
  for (const other of [x2, w, b])
    if (other && other.dtype !== x1.dtype) throw mixedDtypes(op, x1.dtype, other.dtype);
  const front: Shape = x1.shape.slice(0, -1);
  const [outs, in1, in2] = w.shape;
  const fits =
    w.rank === 3 &&
    x1.rank > 0 &&
    sameShape(front, x2.shape.slice(0, -1)) &&
    x1.rank === x2.rank &&
    x1.shape.at(-1) === in1 &&
    x2.shape.at(-1) === in2 &&
    (b === null || sameShape(b.shape, [outs!]));
  if (!fits) throw badBilinear(x1.shape, x2.shape, w.shape, b?.shape ?? null);
  return scope(() => {
    const rows = countOf(front);
    const sides = reshape(permute(w, [1, 0, 2]), [in1!, outs! * in2!]);
    const left = reshape(matmul(reshape(x1, [rows, in1!]), sides), [rows, outs!, in2!]);
    const out = reshape(matmul(left, reshape(x2, [rows, in2!, 1])), [...front, outs!]);
    return b === null ? out : add(out, b);
  });
}
