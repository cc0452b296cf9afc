// Checks one flag of the command line and its value. The script or another flag is never accepted as a value: users who
// forget a value would get an error about something else.

import { statSync } from 'node:fs';
import * as errors from '../errors.ts';
import { nearest } from '../nearest.ts';
import { type Flag, flags, unsupportedFlags } from './flags.ts';

/** An option as util.parseArgs() returns it. */
interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

/** Files that `run` starts in an interpreter. */
export const scriptFile = /\.([cm]?[jt]s|[jt]sx|py)$/;

/** Returns a flag's value from the command line; '1' for a switch, as its variable would have. */
export function checkedValue({ name, rawName, value, inlineValue }: OptionToken): string {
  const flag = flags.find((f) => f.name === name);
  if (!flag) throw unknownFlag(name, rawName);
  if (!flag.value) {
    if (value !== undefined) throw errors.unexpectedValue(rawName, value);
    return '1';
  }
  if (value === undefined && flag.isValueOptional) return '1';
  const isWord = value !== undefined && inlineValue !== true;
  const isMissing = value === undefined || (value === '' && flag.isValueOptional);
  if (isMissing || (isWord && /^-./.test(value))) throw errors.missingValue(rawName, flag.value);
  if (isWord && scriptFile.test(value)) throw errors.scriptAsValue(rawName, flag.value, value);
  return value;
}

function unknownFlag(name: string, rawName: string): Error {
  if (name === 'module' || rawName === '-m') return errors.noModules(rawName);
  if (name === 'use-env') return errors.useEnv(rawName);
  if (unsupportedFlags.includes(name)) return errors.unsupportedFlag(rawName);
  return errors.unknownWord('ringwise run', 'flag', rawName, meantFlag(name));
}

/** Returns the flag that the user probably means by an unknown name, such as --nproc-per-node. */
export function meantFlag(name: string): string | undefined {
  const sought = flags.find(({ soughtAs }) => soughtAs?.includes(name));
  const meant = sought?.name ?? nearest(name, [...flags.map((flag) => flag.name), 'help']);
  return meant && `--${meant}`;
}

/** Returns whether the word after a flag without a value is a port or an address, so probably not the script. */
export function isPageAddress({ name, value }: OptionToken, next: string): boolean {
  const flag = flags.find((f) => f.name === name);
  return value === undefined && flag?.isValueOptional === true && /^(\d+|[^/\\]*:\d+)$/.test(next);
}

/** Returns a hint if the script is an empty file; null if it is not. */
export function emptyScriptHint(script: string): string | null {
  return isEmptyFile(script)
    ? `${script} is empty, so its ranks do nothing. Has your editor saved it?`
    : null;
}

function isEmptyFile(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isFile() && found.size === 0;
  } catch {
    return false; // scriptExists() says what is wrong with it
  }
}

/**
 * Returns a hint if a word after the script is a flag of `ringwise run`, which the script gets instead; null if there
 * is none. Words after `--` are the script's for certain. Of the short flags only -n counts, and only if one rank is
 * started: scripts have flags of the same letters.
 */
export function misplacedFlagHint({
  script,
  scriptArgs,
  nprocPerNode,
}: {
  readonly script: string;
  readonly scriptArgs: readonly string[];
  readonly nprocPerNode: string;
}): string | null {
  const end = scriptArgs.indexOf('--');
  const words = end < 0 ? scriptArgs : scriptArgs.slice(0, end);
  for (const [index, word] of words.entries()) {
    const isShort = nprocPerNode === '1' && isNumberOfRanks(word, words[index + 1]);
    if (!isShort && !isOurFlag(word)) continue;
    const flag = isShort ? '-n' : /^[^=]*/.exec(word)![0];
    const meant = isShort || known(flag) ? flag : meantFlag(dashed(flag).slice(2));
    return (
      `${flag} comes after ${script} and goes to the script. If it is meant for ringwise, put ${meant} before ` +
      `${script}.`
    );
  }
  return null;
}

function isOurFlag(word: string): boolean {
  const flag = /^[^=]*/.exec(word)![0];
  const found = known(flag);
  if (found) return found.isCommon !== true;
  // torchrun takes this beginning of --nproc-per-node, too.
  return ['--nproc', '--nprocs'].includes(flag);
}

/** Returns whether the word is -n and a number of ranks follows, in the same word (-n2) or as the next one. */
const isNumberOfRanks = (word: string, next = ''): boolean =>
  /^-np?$/.test(word) ? /^(\d+|auto|cpu|gpu)$/.test(next) : /^-n=?\d+$/.test(word);

const known = (word: string): Flag | undefined => flags.find(({ name }) => `--${name}` === dashed(word));
const dashed = (word: string) => word.replaceAll('_', '-');

/** Returns a hint if --local-ranks-filter (`localRanks`) names none of the `nproc` ranks of this host; else null. */
export function hiddenRanksHint(localRanks: ReadonlySet<number> | null, nproc: number): string | null {
  if (localRanks === null || [...localRanks].some((rank) => rank < nproc)) return null;
  const here = nproc === 1 ? 'only local rank 0' : `local ranks 0 to ${nproc - 1}`;
  return `--local-ranks-filter ${[...localRanks].join()} hides the output of all ranks here: this host has ${here}.`;
}
