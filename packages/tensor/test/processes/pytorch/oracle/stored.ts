// Stores PyTorch's answers to the cases of one seed, for machines without PyTorch: in answers/, a file for each group
// of cases/index.ts. The key of an answer is a hash of its case, so that it never serves another case. Stored float32
// and float64 numbers are rounded; the relative error is less than a tenth of the relative tolerance in compare.ts.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Case } from '../case.ts';
import { groupOf } from '../cases/index.ts';
import type { PackedAnswer } from './answers.ts';

const folder = new URL('./answers/', import.meta.url);
const fileOf = (group: string): URL => new URL(`${group}.json.gz`, folder);

const keyOf = (one: Case): string =>
  createHash('sha256').update(JSON.stringify(one)).digest('base64url').slice(0, 12);

interface Stored {
  readonly torch: string;
  /** The versions of PyTorch that answered the cases of other ops, by op. */
  readonly others?: Readonly<Record<string, string>>;
  readonly seed: string;
  readonly answers: Readonly<Record<string, PackedAnswer>>;
}

function read(group: string): Stored | null {
  const file = fileOf(group);
  return existsSync(file) ? (JSON.parse(gunzipSync(readFileSync(file)).toString()) as Stored) : null;
}

const opOf = ({ name }: Case): string => name.split(':')[0]!;

/** Returns the answers to `cases`, undefined for those that are not stored. */
export function storedAnswers(cases: readonly Case[]): (PackedAnswer | undefined)[] {
  const groups = new Map<string, Stored['answers']>();
  return cases.map((one) => {
    const group = groupOf(opOf(one));
    if (!groups.has(group)) groups.set(group, read(group)?.answers ?? {});
    return groups.get(group)![keyOf(one)];
  });
}

/** Rounds the elements of a result to fewer bits: float64 by 16, float32 by 5; others are not changed. */
function rounded(text: string, dtype: string): string {
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'));
  if (dtype === 'float64') {
    const words = new BigUint64Array(bytes.buffer);
    for (const [i, word] of words.entries()) words[i] = roundedWord(word, 16n, 0x7ffn << 52n);
  } else if (dtype === 'float32') {
    const words = new Uint32Array(bytes.buffer);
    for (const [i, word] of words.entries()) words[i] = Number(roundedWord(BigInt(word), 5n, 0xffn << 23n));
  }
  return Buffer.from(bytes).toString('base64');
}

/**
 * Rounds a float's word to the nearest multiple of 2^bits. `exponent` is the mask of its exponent: where all of these
 * bits are set, the float is NaN or infinite and stays as it is. No
 * number becomes infinite, because the cases do not use the largest ones.
 */
const roundedWord = (word: bigint, bits: bigint, exponent: bigint): bigint =>
  (word & exponent) === exponent ? word : ((word + (1n << (bits - 1n))) >> bits) << bits;

function shortened(answer: PackedAnswer): PackedAnswer {
  const one = <T extends PackedAnswer['outs'] extends readonly (infer P)[] | undefined ? P | null : never>(
    packed: T,
  ): T => (Array.isArray(packed) ? [packed[0], packed[1], rounded(packed[2], packed[0])] : packed) as T;
  return {
    ...answer,
    ...(answer.outs && { outs: answer.outs.map(one) }),
    ...(answer.grads && { grads: answer.grads.map(one) }),
    ...(answer.seconds && { seconds: answer.seconds.map(one) }),
  };
}

function write(group: string, stored: Stored): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(fileOf(group), gzipSync(JSON.stringify(stored), { level: 9 }));
}

const byKey = (cases: readonly Case[], answers: readonly PackedAnswer[]): Stored['answers'] =>
  Object.fromEntries(cases.map((one, i) => [keyOf(one), shortened(answers[i]!)]));

/** Stores the answers to all cases. */
export function store(
  torch: string,
  seed: string,
  cases: readonly Case[],
  answers: readonly PackedAnswer[],
): void {
  for (const group of new Set(cases.map((one) => groupOf(opOf(one))))) {
    const indices = [...cases.keys()].filter((i) => groupOf(opOf(cases[i]!)) === group);
    const [own, theirs] = [indices.map((i) => cases[i]!), indices.map((i) => answers[i]!)];
    write(group, { torch, seed, answers: byKey(own, theirs) });
  }
}

/** Stores the answers to the cases of one op beside those that are there. */
export function storeOp(
  torch: string,
  seed: string,
  op: string,
  cases: readonly Case[],
  answers: readonly PackedAnswer[],
): void {
  const group = groupOf(op);
  const stored = read(group) ?? { torch, seed, answers: {} };
  const others = stored.torch === torch ? stored.others : { ...stored.others, [op]: torch };
  write(group, {
    ...stored,
    ...(others && { others }),
    answers: { ...stored.answers, ...byKey(cases, answers) },
  });
}
