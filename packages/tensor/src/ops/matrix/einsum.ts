// Sums of products by the names of dimensions. Operands are multiplied from the left, two at a time: dimensions that
// neither the result nor a later operand needs are summed, the others make one batched matrix product.
import { notAnEquation } from '../../checks/argument-errors.ts';
import { needsNumbers } from '../../checks/op-errors.ts';
import { scope } from '../../core/context.ts';
import { isFloat, promoteTypes } from '../../core/dtype.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mul } from '../elementwise/binary.ts';
import { requireOperand, to } from '../elementwise/convert.ts';
import { sum } from '../reduce/reduce.ts';
import { jointDiagonal, permute, reshape, squeeze } from '../shape/views.ts';
import { type Equation, parseEquation } from './einsum-names.ts';
import { matmul } from './matmul.ts';

interface Named {
  readonly tensor: Tensor;
  /** One character for each dimension. */
  readonly names: string;
}

type Sizes = Equation['sizes'];

const product = (names: string, sizes: Sizes): number =>
  [...names].reduce((count, name) => count * sizes[name]!, 1);

const pick = (names: string, isWanted: (name: string) => boolean): string =>
  [...names].filter(isWanted).join('');

/** Returns an operand with each name once, and without broadcast dimensions, which other operands have. */
function plain({ tensor, names }: Named, sizes: Sizes): Named {
  for (let d = names.length - 1; d > 0; d--) {
    const first = names.indexOf(names[d]!);
    if (first === d) continue;
    tensor = jointDiagonal(tensor, first, d);
    names = names.slice(0, d) + names.slice(d + 1);
  }
  const isStretched = (name: string): boolean => tensor.shape[names.indexOf(name)] !== sizes[name];
  const stretched = [...names].flatMap((name, d) => (isStretched(name) ? [d] : []));
  if (stretched.length === 0) return { tensor, names };
  return { tensor: squeeze(tensor, stretched), names: pick(names, (name) => !isStretched(name)) };
}

/** Sums over the dimensions that are not needed. */
function reduced({ tensor, names }: Named, needed: string): Named {
  const dims = [...names].flatMap((name, d) => (needed.includes(name) ? [] : [d]));
  if (dims.length === 0) return { tensor, names };
  return { tensor: sum(tensor, dims), names: pick(names, (name) => needed.includes(name)) };
}

const ordered = ({ tensor, names }: Named, order: string): Tensor =>
  permute(
    tensor,
    [...order].map((name) => names.indexOf(name)),
  );

/** Multiplies in the joint dtype: one of two integer operands may be a sum, which is int64. */
function multiplied(x: Tensor, y: Tensor): Tensor {
  const hasProducts = x.count > 0 && y.count > 0;
  if (hasProducts && x.dtype === 'bool' && y.dtype === 'bool') throw needsNumbers('einsum');
  if (x.dtype === y.dtype || isFloat(x.dtype) || isFloat(y.dtype)) return matmul(x, y);
  const dtype = promoteTypes(x.dtype, y.dtype);
  return matmul(to(x, dtype), to(y, dtype));
}

function contracted(left: Named, right: Named, needed: string, sizes: Sizes): Named {
  const a = reduced(left, needed + right.names);
  const b = reduced(right, needed + left.names);
  const isShared = (name: string): boolean => a.names.includes(name) && b.names.includes(name);
  const batch = pick(a.names, (name) => isShared(name) && needed.includes(name));
  const inner = pick(a.names, (name) => isShared(name) && !needed.includes(name));
  const rows = pick(a.names, (name) => !isShared(name));
  const cols = pick(b.names, (name) => !isShared(name));
  const count = (names: string): number => product(names, sizes);
  const x = reshape(ordered(a, batch + rows + inner), [count(batch), count(rows), count(inner)]);
  const y = reshape(ordered(b, batch + inner + cols), [count(batch), count(inner), count(cols)]);
  const names = batch + rows + cols;
  const tensor = inner === '' ? mul(x, y) : multiplied(x, y);
  const shape = [...names].map((name) => sizes[name]!);
  return { tensor: reshape(tensor, shape), names };
}

/**
 * Multiplies operands and sums over the dimensions whose letters the output lacks: einsum('bij,bjk->bik', a, b). '...'
 * stands for dimensions without a letter; sizes of 1 are broadcast. A letter that one operand has several times takes
 * its diagonal. With one operand, the result may share memory with it.
 */
export function einsum(equation: string, ...operands: readonly Tensor[]): Tensor {
  if (typeof equation !== 'string') throw notAnEquation(equation);
  for (const [i, operand] of operands.entries()) requireOperand('einsum', `operand ${i}`, operand);
  const { inputs, output, sizes } = parseEquation(
    equation,
    operands.map(({ shape }) => shape),
  );
  return scope(() => {
    const named = operands.map((tensor, i) => plain({ tensor, names: inputs[i]! }, sizes));
    const result = named.reduce((left, right, i) => {
      const later = named.slice(i + 1).map(({ names }) => names);
      return contracted(left, right, output + later.join(''), sizes);
    });
    return ordered(reduced(result, output), output);
  });
}
