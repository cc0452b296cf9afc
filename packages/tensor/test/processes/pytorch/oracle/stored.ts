// Stores PyTorch's answers to the cases of one seed, for machines without PyTorch. The key of an answer is a hash of
// its case, so that it never serves another case. Stored float32 and float64 numbers are rounded; the relative error is
// less than a tenth of the relative tolerance in compare.ts.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Case } from '../case.ts';
import type { PackedAnswer } from './answers.ts';

const file = new URL('./answers.json.gz', import.meta.url);

const keyOf = (one: Case): string =>
  createHash('sha256').update(JSON.stringify(one)).digest('base64url').slice(0, 12);

interface Stored {
  readonly torch: string;
  /** The versions of PyTorch that answered the cases of other ops, by op. */
  readonly others?: Readonly<Record<string, string>>;
  readonly seed: string;
  readonly answers: Readonly<Record<string, PackedAnswer>>;
}

const read = (): Stored => JSON.parse(gunzipSync(readFileSync(file)).toString()) as Stored;

/** Returns the answers to `cases`, undefined for those that are not stored. */
export const storedAnswers = (cases: readonly Case[]): (PackedAnswer | undefined)[] => {
  const { answers } = read();
  return cases.map((one) => answers[keyOf(one)]);
};

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
  };
}

const write = (stored: Stored): void => writeFileSync(file, gzipSync(JSON.stringify(stored), { level: 9 }));

const byKey = (cases: readonly Case[], answers: readonly PackedAnswer[]): Stored['answers'] =>
  Object.fromEntries(cases.map((one, i) => [keyOf(one), shortened(answers[i]!)]));

/** Stores the answers to all cases. */
export function store(
  torch: string,
  seed: string,
  cases: readonly Case[],
  answers: readonly PackedAnswer[],
): void {
  write({ torch, seed, answers: byKey(cases, answers) });
}

/** Stores the answers to the cases of one op beside those that are there. */
export function storeOp(
  torch: string,
  op: string,
  cases: readonly Case[],
  answers: readonly PackedAnswer[],
): void {
  const stored = read();
  const others = stored.torch === torch ? stored.others : { ...stored.others, [op]: torch };
  write({ ...stored, ...(others && { others }), answers: { ...stored.answers, ...byKey(cases, answers) } });
}
