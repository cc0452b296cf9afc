// Parses the arguments of `ringwise plan`.
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { flagFault } from '../bench/flag-fault.ts';
import { parseBytes } from '../bench/sizes.ts';
import { byteSize, type DType } from '../src/dtype.ts';
import { parseCount, parseGbit } from './units.ts';

/** An error that the user can correct; the message says how. */
export class UsageError extends Error {}

/** Costs of one kind of link in the model of docs/simulation.md. */
export interface Link {
  readonly latencyUs: number;
  /** Of a port, for each message. */
  readonly overheadUs: number;
  readonly gbit: number;
}

/** Wires between hosts, in the order of Wire in native/coll/op.h. */
export const planWires = ['full', 'bfloat16', 'int8'] as const;
export type PlanWire = (typeof planWires)[number];
/** Types of gradients. */
export const planDTypes = ['float32', 'float16', 'bfloat16', 'float64'] as const satisfies readonly DType[];

export interface PlanOptions {
  readonly ranks: number;
  /** Ranks of each host, which share its port. */
  readonly perHost: number;
  readonly between: Link;
  readonly inside: Link;
  readonly params: number;
  readonly dtype: DType;
  readonly wire: PlanWire;
  /** Milliseconds of a step of one rank that does not communicate. */
  readonly stepMs: number;
  /** Share of that time which backward takes. */
  readonly backwardShare: number;
  /** Limits of buckets in bytes, ascending. */
  readonly buckets: readonly number[];
  readonly json: boolean;
  readonly svg: string | undefined;
}

const flags = {
  ranks: { type: 'string' },
  hosts: { type: 'string' },
  'per-host': { type: 'string' },
  link: { type: 'string' },
  'latency-us': { type: 'string', default: '20' },
  'overhead-us': { type: 'string', default: '1' },
  'inside-link': { type: 'string', default: '80g' },
  'inside-latency-us': { type: 'string', default: '1' },
  'inside-overhead-us': { type: 'string', default: '0.2' },
  params: { type: 'string' },
  dtype: { type: 'string', default: 'float32' },
  wire: { type: 'string', default: 'full' },
  'step-ms': { type: 'string' },
  'backward-share': { type: 'string', default: '0.67' },
  buckets: { type: 'string', default: '1M,5M,25M,50M,100M' },
  json: { type: 'boolean', default: false },
  svg: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const satisfies ParseArgsConfig['options'];

/** The flags, for completion. */
export const planFlags = Object.keys(flags).map((name) => `--${name}`);

/** Names of flags that other commands have for the same. */
const renamed = {
  ...{ nnodes: 'hosts', nodes: 'hosts', 'nproc-per-node': 'per-host', n: 'ranks', gpus: 'ranks' },
  ...{ bandwidth: 'link', parameters: 'params', 'step-time': 'step-ms' },
};
const mostRanks = 16_384;

/** Parses the arguments. Throws UsageError. */
export function parsePlan(argv: readonly string[]): PlanOptions | 'help' {
  const values = parsed(argv);
  if (values.help) return 'help';
  const ranks = whole('--ranks', given('--ranks', values.ranks, '512'), 2, mostRanks);
  const dtype = oneOf('--dtype', values.dtype, planDTypes);
  const wire = oneOf('--wire', values.wire, planWires);
  if (wire !== 'full' && dtype !== 'float32')
    throw usage(`--wire ${wire} rounds float32; expected --dtype float32, got ${dtype}`);
  return {
    ranks,
    perHost: perHostOf(ranks, values.hosts, values['per-host']),
    between: {
      gbit: rate('--link', given('--link', values.link, '100g')),
      latencyUs: number('--latency-us', values['latency-us'], 0, 1e6),
      overheadUs: number('--overhead-us', values['overhead-us'], 0, 1e6),
    },
    inside: {
      gbit: rate('--inside-link', values['inside-link']),
      latencyUs: number('--inside-latency-us', values['inside-latency-us'], 0, 1e6),
      overheadUs: number('--inside-overhead-us', values['inside-overhead-us'], 0, 1e6),
    },
    params: paramsOf(given('--params', values.params, '124M')),
    dtype,
    wire,
    stepMs: number('--step-ms', given('--step-ms', values['step-ms'], '80'), 0.001, 1e9),
    backwardShare: number('--backward-share', values['backward-share'], 0, 1),
    buckets: bucketsOf(values.buckets, byteSize(dtype)),
    json: values.json,
    svg: values.svg,
  };
}

function parsed(argv: readonly string[]) {
  const args = argv.map((word) => word.replace(/^--[^=]*/, (name) => name.replaceAll('_', '-')));
  try {
    return parseArgs({ args, options: flags }).values;
  } catch (error) {
    throw usage(flagFault(error as Error, Object.keys(flags), renamed));
  }
}

function given(flag: string, text: string | undefined, example: string): string {
  if (text === undefined) throw usage(`${flag} is missing; expected for example ${flag} ${example}`);
  return text;
}

function perHostOf(ranks: number, hosts: string | undefined, perHost: string | undefined): number {
  if (hosts !== undefined && perHost !== undefined)
    throw usage('--hosts and --per-host exclude each other: one follows from the other and --ranks');
  const flag = hosts === undefined ? '--per-host' : '--hosts';
  const count = whole(flag, hosts ?? perHost ?? '1', 1, ranks);
  if (ranks % count !== 0)
    throw usage(`${flag} expects a number that divides ${ranks} ranks evenly, got ${count}`);
  const each = hosts === undefined ? count : ranks / count;
  if (each < ranks) return each;
  throw usage(
    `all ${ranks} ranks on one host use no link; expected two hosts or more. Measure one host instead`,
  );
}

function rate(flag: string, text: string): number {
  const gbit = parseGbit(text);
  if (gbit !== null) return gbit;
  throw usage(`${flag} expects bits per second, as 100g, 2.5g or 800m, got ${text}`);
}

function paramsOf(text: string): number {
  const params = parseCount(text);
  if (params !== null) return params;
  throw usage(`--params expects a number of parameters, as 124M, 1.5B or 7000000, got ${text}`);
}

function bucketsOf(text: string, elementBytes: number): number[] {
  const buckets = text.split(',').map((word) => {
    const bytes = parseBytes(word);
    if (bytes !== null && bytes >= elementBytes) return bytes;
    throw usage(
      `--buckets expects sizes in bytes, as 1M,25M,100M, got ${word === '' ? 'an empty word' : word}`,
    );
  });
  return [...new Set(buckets)].sort((a, b) => a - b);
}

function number(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= min && value <= max) return value;
  const unit = flag.endsWith('-us') ? ' of microseconds' : flag.endsWith('-ms') ? ' of milliseconds' : '';
  throw usage(`${flag} expects a plain number${unit} from ${min} to ${max}, got ${text}`);
}

function whole(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw usage(`${flag} expects a whole number from ${min} to ${max}, got ${text}`);
}

function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  if (known.includes(text as T)) return text as T;
  throw usage(`${flag} expects one of ${known.join(', ')}, got ${text}`);
}

const usage = (what: string) => new UsageError(`ringwise plan: ${what}. See ringwise plan --help.`);
