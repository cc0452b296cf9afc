// Reads the equation of an einsum: the names of the dimensions of each operand and of the result.

import type { Shape } from '../../core/shape.ts';
import { badEinsum } from '../../errors.ts';

export interface Equation {
  /** A name for each dimension of each operand: a letter, or another character for a dimension under '...'. */
  readonly inputs: readonly string[];
  readonly output: string;
  /** Sizes by name. Operands whose size is 1 are broadcast. */
  readonly sizes: Readonly<Record<string, number>>;
}

const dots = '...';
/** The first of the characters that name dimensions under '...'. An equation must not contain them. */
const firstUnnamed = 0xe000;

const letters = (names: string): string => names.replace(dots, '');
const isRepeated = (names: string): boolean => new Set(names).size < names.length;

/** Returns the names of the last `count` of `most` dimensions under '...', which are aligned at the end. */
const unnamed = (count: number, most: number): string =>
  String.fromCharCode(...Array.from({ length: count }, (_, i) => firstUnnamed + most - count + i));

function checkWritten(equation: string, inputs: readonly string[], output: string | undefined): void {
  const all = output === undefined ? inputs : [...inputs, output];
  const areNames = all.every((names) => /^[a-zA-Z]*(\.{3})?[a-zA-Z]*$/.test(names));
  if (!areNames || /\.\s+\./.test(equation))
    throw badEinsum(equation, "a letter for each dimension, and '...' at most once in each operand");
  if (output !== undefined && isRepeated(letters(output)))
    throw badEinsum(equation, 'an output in which no letter is repeated');
}

/** Returns the number of dimensions of each operand that its '...' covers. */
function unnamedCounts(equation: string, inputs: readonly string[], shapes: readonly Shape[]): number[] {
  return inputs.map((names, i) => {
    const count = shapes[i]!.length - letters(names).length;
    if (count < 0 || (count > 0 && !names.includes(dots)))
      throw badEinsum(equation, `${shapes[i]!.length} letters for operand ${i}, or '...' among them`);
    return count;
  });
}

function sizesOf(
  equation: string,
  inputs: readonly string[],
  shapes: readonly Shape[],
): Record<string, number> {
  const sizes: Record<string, number> = {};
  for (const [i, names] of inputs.entries()) {
    for (const [d, name] of [...names].entries()) {
      const size = shapes[i]![d]!;
      const twin = shapes[i]![names.indexOf(name)]!;
      const known = sizes[name] ?? 1;
      const shown = name.charCodeAt(0) < firstUnnamed ? `'${name}'` : `a dimension under '...'`;
      if (size !== twin)
        throw badEinsum(equation, `one size for ${shown} in operand ${i}, not ${twin} and ${size}`);
      if (size !== known && size !== 1 && known !== 1)
        throw badEinsum(equation, `one size for ${shown}, not ${known} and ${size}`);
      sizes[name] = known === 1 ? size : known;
    }
  }
  return sizes;
}

/**
 * Reads 'ij,jk->ik' for operands of these shapes. Without an arrow the result has the dimensions under '...', then the
 * letters that occur once, in alphabetical order.
 */
export function parseEquation(equation: string, shapes: readonly Shape[]): Equation {
  const [left = '', right, ...rest] = equation.replaceAll(' ', '').split('->');
  const written = left.split(',');
  if (rest.length > 0) throw badEinsum(equation, "one '->'");
  checkWritten(equation, written, right);
  if (written.length !== shapes.length) throw badEinsum(equation, `letters for ${shapes.length} operands`);
  const counts = unnamedCounts(equation, written, shapes);
  const most = Math.max(...counts);
  const inputs = written.map((names, i) => names.replace(dots, unnamed(counts[i]!, most)));
  const all = letters(written.join(',')).replaceAll(dots, '');
  const once = [...new Set(all)].filter((name) => name !== ',' && all.split(name).length === 2);
  const output = (right ?? dots + once.sort().join('')).replace(dots, unnamed(most, most));
  const sizes = sizesOf(equation, inputs, shapes);
  for (const name of output)
    if (!(name in sizes))
      throw badEinsum(equation, `an output of letters that the operands have, not '${name}'`);
  return { inputs, output, sizes };
}
