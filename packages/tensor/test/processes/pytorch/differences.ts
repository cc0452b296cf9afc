// Reads the table "Differences from PyTorch" of docs/tensor.md: op, case, PyTorch, here, why. A difference is accepted
// if a row names its op, its kind, and only words that hold for the case.
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

/** Returns the shape that the case sees through the views of an input. */
function seen({ shape, views }: Input): number[] {
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
const whole: readonly string[] = ['int32', 'int64', 'uint8'];
const ofType = (...types: readonly string[]) => has(({ dtype }) => types.includes(dtype));

/** The words that the second column may have, beside dtypes and tags. Each tells whether it holds for a case. */
const words: Readonly<Record<string, (one: Case) => boolean>> = {
  integers: ofType(...whole),
  halves: ofType('float16', 'bfloat16'),
  'mixed dtypes': ({ inputs }) => new Set(inputs.map(({ dtype }) => dtype)).size > 1,
  empty: has((input) => seen(input).includes(0)),
  '0-dim': has((input) => seen(input).length === 0),
  'NaN input': hasValue('nan'),
  'infinite input': hasValue('inf', '-inf'),
  'number that does not fit': hasMisfit,
  'no dims': calls(({ args }) => args.some((arg) => Array.isArray(arg) && arg.length === 0)),
  ...Object.fromEntries(
    ['float32', 'float64', 'float16', 'bfloat16', 'int32', 'int64', 'uint8', 'bool'].map((dtype) => [
      dtype,
      ofType(dtype),
    ]),
  ),
};

/**
 * Tells whether an integer argument (a number or a tensor without dimensions) is out of the range of the dtype of an
 * integer tensor.
 */
function hasMisfit({ inputs, steps }: Case): boolean {
  const integers = inputs.filter(({ dtype }) => whole.includes(dtype));
  const numbers = steps.flatMap(({ args }) => args.filter((arg) => Number.isInteger(arg))) as number[];
  if (integers.some(({ dtype }) => numbers.some((number) => !holds(dtype, number)))) return true;
  return integers.some(
    (input) =>
      seen(input).length === 0 &&
      integers.some(({ dtype }) => input.values.some((value) => !holds(dtype, BigInt(value)))),
  );
}

const isKind = (text: string): text is Kind => (kinds as readonly string[]).includes(text);

function rowOf(line: string, tags: ReadonlySet<string>): Row {
  const [ops = '', found = ''] = line
    .split('|')
    .slice(1)
    .map((cell) => cell.trim());
  const colon = found.lastIndexOf(':');
  const kind = found.slice(colon + 1).trim();
  const named =
    colon < 0
      ? []
      : found
          .slice(0, colon)
          .split(',')
          .map((word) => word.trim());
  const own = [...ops.matchAll(/`([^`]+)`/g)].map(([, op]) => op!);
  if (own.length === 0) throw new Error(`docs/tensor.md: no op in backticks in "${line}"`);
  if (!isKind(kind)) throw new Error(`docs/tensor.md: '${kind}' is none of ${kinds.join(', ')} in "${line}"`);
  const unknown = named.find((word) => !(word in words) && !tags.has(word));
  if (unknown !== undefined)
    throw new Error(`docs/tensor.md: no case has the word '${unknown}' in "${line}"`);
  return { line, ops: own, words: named, kind };
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

/** Returns the row that accepts a difference, if any. No row accepts a difference in an expression. */
export function rowFor(rows: readonly Row[], one: Case, kind: Kind): Row | undefined {
  const op = one.name.split(':')[0]!;
  const holds = (word: string): boolean => (word in words ? words[word]!(one) : one.tags.includes(word));
  return rows.find((row) => row.ops.includes(op) && row.kind === kind && row.words.every(holds));
}
