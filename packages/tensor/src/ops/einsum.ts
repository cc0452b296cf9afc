// Sums of products by the names of dimensions. Operands are taken up from the left, two at a time: dimensions that nothing
// else needs are summed, the rest is one batched matrix product.
import { scope } from '../context.ts';
import { badEinsum } from '../errors.ts';
import type { Tensor } from '../tensor.ts';
import { matmul } from './matmul.ts';
import { sum } from './reduce.ts';
import { permute, reshape } from './views.ts';

interface Named {
  readonly tensor: Tensor;
  /** One letter for each dimension. */
  readonly names: string;
}

type Sizes = Readonly<Record<string, number>>;

const product = (names: string, sizes: Sizes): number =>
  [...names].reduce((count, name) => count * sizes[name]!, 1);

const pick = (names: string, isWanted: (name: string) => boolean): string =>
  [...names].filter(isWanted).join('');

/** Sums over what nobody asks for. */
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
  return {
    tensor: reshape(
      matmul(x, y),
      [...names].map((name) => sizes[name]!),
    ),
    names,
  };
}

/** Reads 'ij,jk->ik'; without an arrow the result has the letters that occur once, in alphabetical order. */
function parsed(
  equation: string,
  operands: readonly Tensor[],
): { inputs: string[]; output: string; sizes: Sizes } {
  const [left = '', right] = equation.replaceAll(' ', '').split('->');
  const inputs = left.split(',');
  const all = inputs.join('');
  const once = [...new Set(all)].filter((name) => all.split(name).length === 2);
  const output = right ?? once.sort().join('');
  const areLetters = [...inputs, output].every((names) => /^[a-zA-Z]*$/.test(names));
  const areDistinct = [...inputs, output].every((names) => new Set(names).size === names.length);
  if (!areLetters || !areDistinct)
    throw badEinsum(equation, 'a letter for each dimension, none twice in one operand');
  if (inputs.length !== operands.length) throw badEinsum(equation, `letters for ${operands.length} operands`);
  const sizes: Record<string, number> = {};
  for (const [i, names] of inputs.entries()) {
    const { shape } = operands[i]!;
    if (names.length !== shape.length) throw badEinsum(equation, `${shape.length} letters for operand ${i}`);
    for (const [d, name] of [...names].entries()) {
      sizes[name] ??= shape[d]!;
      if (sizes[name] !== shape[d])
        throw badEinsum(equation, `one size for '${name}', not ${sizes[name]} and ${shape[d]}`);
    }
  }
  for (const name of output)
    if (!(name in sizes))
      throw badEinsum(equation, `an output of letters that the operands have, not '${name}'`);
  return { inputs, output, sizes };
}

/**
 * Products of operands, summed over the dimensions whose letters the output lacks: einsum('bij,bjk->bik', a, b). Letters
 * stand for sizes; an operand has each at most once, and there is no '...'.
 */
export function einsum(equation: string, ...operands: readonly Tensor[]): Tensor {
  const { inputs, output, sizes } = parsed(equation, operands);
  return scope(() => {
    const named = operands.map((tensor, i) => ({ tensor, names: inputs[i]! }));
    const result = named.reduce((left, right, i) =>
      contracted(left, right, output + inputs.slice(i + 1).join(''), sizes),
    );
    return ordered(reduced(result, output), output);
  });
}
