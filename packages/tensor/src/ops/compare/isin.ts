// Membership test for elements.

import { notOfBool } from '../../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { resultType } from '../../core/dtype.ts';
import { type Operand, Tensor } from '../../core/tensor.ts';
import { badOption, notATensor, shown } from '../../errors.ts';
import { eq, logicalNot, minimum } from '../elementwise/binary.ts';
import { contiguous, to } from '../elementwise/convert.ts';
import { take } from '../indexing/lookup.ts';
import { jointDevice } from '../joint-device.ts';
import { positionsIn } from '../order/search.ts';
import { any } from '../reduce/reduce.ts';
import { sort } from '../shape/order.ts';
import { flatten, unsqueeze } from '../shape/views.ts';

/** Options of isin(). */
export interface IsinOptions {
  /** Whether to return true for the elements that are not among the others. Default false. */
  readonly invert?: boolean;
}

const isinOptions = optionChecks<IsinOptions>({ invert: flag });

/** Maximum number of elements to compare with one by one; more are sorted and searched. */
const fewElements = 16;

/**
 * Returns bools in the shape of `elements`: whether each is among `testElements`. Both are tensors of any shape, or one
 * of them is a number. NaN equals no element. Bool is refused, as in PyTorch.
 */
export function isin(elements: Operand, testElements: Operand, options: IsinOptions = {}): Tensor {
  checkOptions('isin', options, isinOptions);
  for (const operand of [elements, testElements]) {
    if (typeof operand !== 'number' && !(operand instanceof Tensor)) throw notATensor('isin', operand);
    if (operand instanceof Tensor && operand.dtype === 'bool') throw notOfBool('isin', ".to('uint8')");
  }
  if (typeof elements === 'number' && typeof testElements === 'number')
    throw badOption('isin: elements', 'a tensor beside a number', shown(elements));
  const device = jointDevice('isin', elements, testElements);
  return scope(() => {
    const dtype = resultType(elements, testElements);
    const ready = (operand: Operand): Tensor =>
      typeof operand === 'number' ? full([], operand, { dtype, device }) : to(operand.detach(), dtype);
    const found = among(ready(elements), flatten(ready(testElements)));
    return options.invert ? logicalNot(found) : found;
  });
}

function among(elements: Tensor, others: Tensor): Tensor {
  if (others.count <= fewElements) return any(eq(unsqueeze(elements, -1), others), -1);
  const { values } = sort(others);
  const positions = positionsIn(values, contiguous(elements), false);
  return eq(take(values, minimum(positions, others.count - 1)), elements);
}
