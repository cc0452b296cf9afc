// argv to options. Everything up to the first word that is no flag belongs to ringwise, everything from there on
// to the script. A flag on the command line wins over its PET_ variable.

import { parseArgs } from 'node:util';
import * as errors from './errors.ts';
import { flags, flagsToCome, variableOf } from './flags.ts';
import { nearest } from './nearest.ts';

export interface RunOptions {
  readonly script: string;
  readonly scriptArgs: readonly string[];
  /** As given: a number or auto, cpu, gpu. */
  readonly nprocPerNode: string;
  readonly masterAddr: string;
  /** 0 takes a free one. */
  readonly masterPort: number;
  /** Undefined: make one up. */
  readonly runId: string | undefined;
  readonly shutdownTimeoutMs: number;
}

type Values = Map<string, string>;

/** Reads the arguments of `ringwise run`; throws ERR_LAUNCH_ARGUMENT with a sentence for the user. */
export function parseRun(argv: readonly string[], env: NodeJS.ProcessEnv): RunOptions | 'help' {
  const values = fromVariables(env);
  // Underscores count as dashes in the names of flags; positions stay, so the script's words are taken from argv.
  const dashed = argv.map((word) => word.replace(/^--[^=]*/, (name) => name.replaceAll('_', '-')));
  const { tokens } = parseArgs({
    args: dashed,
    options: Object.fromEntries(
      flags.map((f) => [f.name, { type: f.value ? 'string' : 'boolean' }] as const),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') {
      return toOptions(values, argv[token.index]!, argv.slice(token.index + 1));
    }
    if (token.kind === 'option-terminator') continue;
    if (token.rawName === '-h' || token.rawName === '--help') return 'help';
    values.set(token.name, checkedValue(token.name, token.rawName, token.value));
  }
  throw errors.noScript();
}

function fromVariables(env: NodeJS.ProcessEnv): Values {
  const values: Values = new Map();
  for (const { name } of flags) {
    const value = env[variableOf(name)];
    if (value !== undefined) values.set(name, value);
  }
  for (const name of flagsToCome) {
    if (env[variableOf(name)] !== undefined) throw errors.notYet(`--${name} (set by ${variableOf(name)})`);
  }
  return values;
}

/** The value of a flag of the command line; a switch has the value '1', as its variable would. */
function checkedValue(name: string, rawName: string, value: string | undefined): string {
  const flag = flags.find((f) => f.name === name);
  if (!flag) {
    if (flagsToCome.includes(name)) throw errors.notYet(rawName);
    const meant = nearest(name, [...flags.map((f) => f.name), 'help']);
    throw errors.unknownWord('ringwise run', 'flag', rawName, meant && `--${meant}`);
  }
  if (!flag.value) {
    if (value !== undefined) throw errors.unexpectedValue(rawName, value);
    return '1';
  }
  if (value === undefined) throw errors.missingValue(rawName, flag.value);
  return value;
}

function toOptions(values: Values, script: string, scriptArgs: readonly string[]): RunOptions {
  const standalone = ['1', 'true'].includes((values.get('standalone') ?? '').toLowerCase());
  if (!standalone) {
    // 1:1 is torchrun's way to say "not elastic".
    const nnodes = (values.get('nnodes') ?? '1').replace(/^(\d+):\1$/, '$1');
    if (nnodes !== '1') throw errors.notYet(`jobs on several hosts (--nnodes ${nnodes})`);
    wholeNumber(values, 'node-rank', '0', 0);
  }
  return {
    script,
    scriptArgs,
    nprocPerNode: values.get('nproc-per-node') ?? '1',
    masterAddr: (standalone ? undefined : values.get('master-addr')) ?? '127.0.0.1',
    masterPort: standalone ? 0 : wholeNumber(values, 'master-port', '0', 65535),
    runId: values.get('rdzv-id'),
    shutdownTimeoutMs: wholeNumber(values, 'shutdown-timeout', '30', 86_400) * 1000,
  };
}

function wholeNumber(values: Values, name: string, byDefault: string, max: number): number {
  const text = values.get(name) ?? byDefault;
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > max) {
    const expected = max === 0 ? '0 with one host' : `a whole number from 0 to ${max}`;
    throw errors.badArgument('ringwise run', `--${name}`, expected, text);
  }
  return number;
}
