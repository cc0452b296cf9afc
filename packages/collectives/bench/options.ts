// Parses the arguments. The command parses them to find mistakes before it starts ranks, and every rank
// parses them again.
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { byteSize, type DType, dtypes } from '../src/dtype.ts';
import type { ReduceOp } from '../src/reduce-ops.ts';
import { isReducible, reduceOps } from '../src/reduce-ops.ts';
import { flagFault } from './flag-fault.ts';
import { parseBytes, type SizeRange } from './sizes.ts';
import { type BenchVerb, benchVerbs } from './verbs.ts';

/** An error whose message says all that the user needs: it is printed without a stack. */
export class BenchError extends Error {}

/** An error that the user can correct; the message says how. */
export class UsageError extends BenchError {}

/** 'auto' uses the Sync form if the backend can block. */
export type Form = 'sync' | 'async' | 'auto';

export interface BenchOptions {
  readonly verb: BenchVerb;
  /** Value as given; the launcher checks it. */
  readonly nprocPerNode: string;
  readonly sizes: SizeRange;
  readonly dtype: DType;
  readonly op: ReduceOp;
  readonly backend: string | undefined;
  readonly form: Form;
  /** Whether to use buffers from group.alloc(). */
  readonly alloc: boolean;
  /** Seconds for the calls of one size. */
  readonly seconds: number;
  readonly json: boolean;
  /** Whether to measure every algorithm of the verb and print rules for RINGWISE_TUNING. */
  readonly tune: boolean;
  /** File to which results are written for later comparisons. */
  readonly save: string | undefined;
  /** File of an earlier run to compare with. */
  readonly compare: string | undefined;
}

const flags = {
  'nproc-per-node': { type: 'string', short: 'n', default: '2' },
  min: { type: 'string', default: '4' },
  max: { type: 'string', default: '64M' },
  factor: { type: 'string', default: '4' },
  dtype: { type: 'string', default: 'float32' },
  op: { type: 'string', default: 'sum' },
  backend: { type: 'string' },
  sync: { type: 'boolean', default: false },
  async: { type: 'boolean', default: false },
  alloc: { type: 'boolean', default: false },
  seconds: { type: 'string', default: '0.3' },
  json: { type: 'boolean', default: false },
  tune: { type: 'boolean', default: false },
  save: { type: 'string' },
  compare: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const satisfies ParseArgsConfig['options'];

/** Names of flags in nccl-tests and other benchmarks. */
const renamed = {
  ...{ np: 'nproc-per-node', nprocs: 'nproc-per-node', ranks: 'nproc-per-node', b: 'min', minbytes: 'min' },
  ...{ e: 'max', maxbytes: 'max', f: 'factor', stepfactor: 'factor', d: 'dtype', datatype: 'dtype' },
};

/** Parses the arguments. Throws UsageError. */
export function parseBench(argv: readonly string[]): BenchOptions | 'help' {
  const { values, positionals } = parsed(argv);
  if (values.help) return 'help';
  const verb = verbOf(positionals);
  const dtype = oneOf('--dtype', values.dtype, dtypes);
  const op = oneOf('--op', values.op, reduceOps);
  if (verb.reduces && !isReducible(op, dtype)) {
    const defined = reduceOps.filter((other) => isReducible(other, dtype));
    throw usage(`${op} is not defined on ${dtype}; expected --op ${defined.join(', ')}`);
  }
  // One rank has the solo backend, which sends no messages.
  if (verb.name === 'send-recv' && values['nproc-per-node'] === '1')
    throw usage('send-recv needs another rank; expected --nproc-per-node 2 or more, got 1');
  if (values.sync && values.async) throw usage('--sync and --async exclude each other');
  if (values.tune && (values.save ?? values.compare) !== undefined)
    throw usage('--tune excludes --save and --compare, which are about one algorithm per size');
  return {
    verb,
    nprocPerNode: values['nproc-per-node'],
    sizes: sizesOf(values.min, values.max, values.factor, byteSize(dtype)),
    dtype,
    op,
    backend: values.backend,
    form: values.sync ? 'sync' : values.async ? 'async' : 'auto',
    alloc: values.alloc,
    seconds: numberOf('--seconds', values.seconds, 0.001, 3600),
    json: values.json,
    tune: values.tune,
    save: values.save,
    compare: values.compare,
  };
}

function parsed(argv: readonly string[]) {
  // As in `ringwise run`, flags may be spelled with underscores instead of dashes.
  const args = argv.map((word) => word.replace(/^--[^=]*/, (name) => name.replaceAll('_', '-')));
  try {
    return parseArgs({ args, options: flags, allowPositionals: true });
  } catch (error) {
    throw usage(flagFault(error as Error, Object.keys(flags), renamed));
  }
}

function verbOf([word, ...more]: readonly string[]): BenchVerb {
  const names = benchVerbs.map(({ name }) => name).join(', ');
  if (word === undefined) throw usage(`no verb given; expected one of ${names}`);
  if (more.length > 0) throw usage(`one verb at a time; expected only ${word}, got also ${more.join(', ')}`);
  const plain = (name: string) => name.replaceAll(/[-_]/g, '').toLowerCase();
  const verb = benchVerbs.find(({ name }) => plain(name) === plain(word));
  if (!verb) throw usage(`unknown verb ${word}; expected one of ${names}`);
  return verb;
}

function sizesOf(min: string, max: string, factor: string, elementBytes: number): SizeRange {
  const bytes = { min: parseBytes(min), max: parseBytes(max) };
  for (const [name, text] of Object.entries({ min, max })) {
    if (bytes[name as 'min' | 'max'] === null)
      throw usage(`--${name} expects bytes, as 4, 64K, 16M or 1G, got ${text}`);
  }
  const range = {
    min: Math.max(bytes.min!, elementBytes),
    max: bytes.max!,
    factor: numberOf('--factor', factor, 1.01, 2 ** 20),
  };
  if (range.min > range.max) throw usage(`--max ${max} is less than --min ${min} (at least one element)`);
  return range;
}

function numberOf(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= min && value <= max) return value;
  throw usage(`${flag} expects a number from ${min} to ${max}, got ${text}`);
}

function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  if (known.includes(text as T)) return text as T;
  throw usage(`${flag} expects one of ${known.join(', ')}, got ${text}`);
}

const usage = (what: string) => new UsageError(`ringwise bench: ${what}. See ringwise bench --help.`);
