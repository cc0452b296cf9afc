// Parses the flags of elastic mode.

import { existsSync } from 'node:fs';
import { badArgument, onlyElastic } from '../errors.ts';
import type { ElasticLimits } from '../rendezvous/elastic/elastic-coordinator.ts';
import { scriptFile } from './flag-values.ts';
import { switchOf, type Values, wholeNumber } from './values.ts';

const verb = 'ringwise run';

/** Tells whether a word is a value of --elastic, and so not the script. */
export const isRange = (word: string): boolean => /^\d+(:\d+)?$/.test(word);

/**
 * Refuses a word after --elastic that is neither a range nor a file, when a script follows: the word is probably meant
 * as the value.
 */
export function checkWordAfter(rawName: string, word: string, rest: readonly string[]): void {
  const isHardlyScript = !scriptFile.test(word) && rest.some((each) => scriptFile.test(each));
  if (isHardlyScript && !existsSync(word)) throw badArgument(verb, rawName, rangeForm, word);
}

const rangeForm = 'a number of ranks such as 2, or a range such as 2:8';

/**
 * Returns the limits of an elastic job; null without --elastic. MIN is 1 by default, and MAX the number of ranks that
 * the hosts start.
 */
export function elasticOf(values: Values): ElasticLimits | null {
  const text = values.get('elastic') ?? '';
  if (switchOf(text) === false) return null;
  const [min = 0, max = Number.POSITIVE_INFINITY] = switchOf(text)
    ? [1]
    : isRange(text)
      ? text.split(':').map(Number)
      : [];
  if (min < 1 || max < min) {
    throw badArgument(verb, values.nameOf('elastic'), rangeForm, text);
  }
  return { minRanks: min, maxRanks: max };
}

/** Refuses a MIN above the number of ranks of a job on one host: its launcher would wait forever for other hosts. */
export function checkMin(
  limits: ElasticLimits | null,
  values: Values,
  maxNodes: number,
  nproc: string,
): void {
  if (limits === null || maxNodes > 1 || !/^\d+$/.test(nproc) || limits.minRanks <= Number(nproc)) return;
  throw badArgument(
    verb,
    values.nameOf('elastic'),
    `at most the ranks of this host, ${nproc} by --nproc-per-node, or --nnodes with more hosts`,
    values.get('elastic'),
  );
}

/** Returns the milliseconds that ranks have to leave. */
export function graceOf(values: Values, isElastic: boolean): number {
  if (!isElastic && values.get('grace') !== undefined) throw onlyElastic(values.nameOf('grace'));
  return wholeNumber(values, 'grace', '30', 86_400) * 1000;
}
