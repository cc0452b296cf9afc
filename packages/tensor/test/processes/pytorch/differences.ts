// Reads the table "Differences from PyTorch" of docs/tensor.md, whose columns are op, case, PyTorch, here and why. The
// second column has the form `word, word: kind` or `kind`. A difference is accepted if a row names its op and its kind,
// and all words of that row hold for the case.
import { readFileSync } from 'node:fs';
import { holds } from '../../../src/core/dtype.ts';
import type { Case, Input, Step } from './case.ts';
import { type Kind, kinds } from './compare.ts';

export interface Row {
  readonly line: string;
  readonly ops: readonly string[];
  readonly words: readonly string[];
  readonly kind: Kind;
}

/** Returns the shape of an input after its views, which are applied in order. */
function viewedShape({ shape, views }: Input): number[] {
  let own = [...shape];
  for (const [name, ...args] of views) {
    if (name === 'expand') own = [...(args[0] as number[])];
    if (name === 'select') own.splice(args[0] as number, 1);
    if (name === 'slice')
      own[args[0] as number] = Math.max(
        0,
        Math.ceil(((args[2] as number) - (args[1] as number)) / (args[3] as number)),
      );
    if (name === 'transpose') {
      const [a, b] = (args as number[]).map((dim) => (dim < 0 ? dim + own.length : dim)) as [number, number];
      own = own.with(a, own[b]!).with(b, own[a]!);
    }
    if (name === 'permute') own = (args[0] as number[]).map((dim) => own[dim]!);
  }
  return own;
}

const has =
  (wanted: (input: Input) => boolean) =>
  ({ inputs }: Case): boolean =>
    inputs.some(wanted);
const hasValue = (...values: (number | string)[]) =>
  has((input) => input.values.some((value) => values.includes(value)));
const calls =
  (wanted: (step: Step) => boolean) =>
  ({ steps }: Case): boolean =>
    steps.some(wanted);
const integerTypes: readonly string[] = ['int32', 'int64', 'uint8'];
const ofType = (...types: readonly string[]) => has(({ dtype }) => types.includes(dtype));

/**
 * The words that the second column may have besides tags, each with a predicate that tells whether it holds for a case.
 */
const words: Readonly<Record<string, (one: Case) => boolean>> = {
  integers: ofType(...integerTypes),
  halves: ofType('float16', 'bfloat16'),
  'mixed dtypes': ({ inputs }) => new Set(inputs.map(({ dtype }) => dtype)).size > 1,
  empty: has((input) => viewedShape(input).includes(0)),
  'different numbers of dimensions': ({ inputs }) =>
    new Set(inputs.map((input) => viewedShape(input).length)).size > 1,
  '0-dim': has((input) => viewedShape(input).length === 0),
  'NaN input': hasValue('nan'),
  'infinite input': hasValue('inf', '-inf'),
  'number that does not fit': hasMisfit,
  // A call with an empty list of dimensions.
  'no dims': calls(({ args }) => args.some((arg) => Array.isArray(arg) && arg.length === 0)),
  ...Object.fromEntries(
    ['float32', 'float64', 'float16', 'bfloat16', 'int32', 'int64', 'uint8', 'bool'].map((dtype) => [
      dtype,
      ofType(dtype),
    ]),
  ),
};

/**
 * Tells whether some integer argument (a number, or an integer input without dimensions) does not fit in the dtype of
 * some integer input, or an element of an integer input not in float16, where that is the dtype of another. Dimensions
 * count as numbers, too.
 */
function hasMisfit({ inputs, steps }: Case): boolean {
  const integers = inputs.filter(({ dtype }) => integerTypes.includes(dtype));
  const numbers = steps.flatMap(({ args }) => args.filter((arg) => Number.isInteger(arg))) as number[];
  if (integers.some(({ dtype }) => numbers.some((number) => !holds(dtype, number)))) return true;
  const exceedsHalf = (input: Input): boolean =>
    input.values.some((value) => !holds('float16', BigInt(value)));
  if (inputs.some(({ dtype }) => dtype === 'float16') && integers.some(exceedsHalf)) return true;
  return integers.some(
    (input) =>
      viewedShape(input).length === 0 &&
      integers.some(({ dtype }) => input.values.some((value) => !holds(dtype, BigInt(value)))),
  );
}

const isKind = (text: string): text is Kind => (kinds as readonly string[]).includes(text);

/** Parses a line of the table. Throws if it has no op, an unknown kind or an unknown word. */
function rowOf(line: string, tags: ReadonlySet<string>): Row {
  const [ops = '', second = ''] = line
    .split('|')
    .slice(1)
    .map((cell) => cell.trim());
  const colon = second.lastIndexOf(':');
  const kind = second.slice(colon + 1).trim();
  const wordsOfRow =
    colon < 0
      ? []
      : second
          .slice(0, colon)
          .split(',')
          .map((word) => word.trim());
  const opNames = [...ops.matchAll(/`([^`]+)`/g)].map(([, op]) => op!);
  if (opNames.length === 0) throw new Error(`docs/tensor.md: no op in backticks in "${line}"`);
  if (!isKind(kind)) throw new Error(`docs/tensor.md: '${kind}' is none of ${kinds.join(', ')} in "${line}"`);
  const unknown = wordsOfRow.find((word) => !(word in words) && !tags.has(word));
  if (unknown !== undefined)
    throw new Error(
      `docs/tensor.md: '${unknown}' is neither a known word nor the tag of a case in "${line}"`,
    );
  return { line, ops: opNames, words: wordsOfRow, kind };
}

/** Reads the rows of the table. `tags` are the tags of all cases. */
export function readTable(tags: ReadonlySet<string>): Row[] {
  const page = readFileSync(new URL('../../../../../docs/tensor.md', import.meta.url), 'utf8');
  const section = page.split(/^## /m).find((part) => part.startsWith('Differences from PyTorch\n')) ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\| *(op|-+) *\|/.test(line))
    .map((line) => rowOf(line, tags));
}

/**
 * Returns the first row that accepts a difference, if any. The name of a case starts with its op and a colon; that of
 * an expression starts with no op of the table, so its differences are never accepted.
 */
export function rowFor(rows: readonly Row[], one: Case, kind: Kind): Row | undefined {
  const op = one.name.split(':')[0]!;
  const appliesTo = (word: string): boolean => (word in words ? words[word]!(one) : one.tags.includes(word));
  return rows.find((row) => row.ops.includes(op) && row.kind === kind && row.words.every(appliesTo));
}
