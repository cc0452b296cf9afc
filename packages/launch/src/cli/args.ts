// Parses argv into options. Flags and their values come first; the first other word is the script, and all
// later words belong to the script. A flag on the command line takes precedence over its PET_ variable.

import { constants } from 'node:os';
import { parseArgs } from 'node:util';
import { loopbackAddress } from '@ringwise/store';
import { type BindingKind, bindingKinds } from '../agent/binding.ts';
import * as errors from '../errors.ts';
import { nearest } from '../nearest.ts';
import { flags, unsupportedFlags, variableOf } from './flags.ts';
import { meetingOf } from './meeting-args.ts';
import { defaultSignals, type LiveOptions, type OutputOptions, type RunOptions } from './run-options.ts';
import { streamsOf } from './std-streams.ts';
import { isSwitchedOn, switchOf, type Values, wholeNumber } from './values.ts';

/** Parses the arguments of `ringwise run`. Throws ERR_LAUNCH_ARGUMENT. */
export function parseRun(argv: readonly string[], env: NodeJS.ProcessEnv): RunOptions | 'help' {
  const values = fromVariables(env);
  // Flags may be spelled with underscores. Positions do not change, so the script's words are taken from argv
  // itself.
  const dashed = argv.map((word) => word.replace(/^--[^=]*/, (name) => name.replaceAll('_', '-')));
  const { tokens } = parseArgs({
    args: dashed,
    options: Object.fromEntries(
      flags.map((f) => [
        f.name,
        {
          type: f.value && !f.isValueOptional ? 'string' : 'boolean',
          ...(f.short && { short: f.short }),
        } as const,
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') {
      return toOptions(values, argv[token.index]!, argv.slice(token.index + 1), env);
    }
    if (token.kind === 'option-terminator') continue;
    if (token.rawName === '-h' || token.rawName === '--help') return 'help';
    values.set(token.name, checkedValue(token.name, token.rawName, token.value));
  }
  throw errors.noScript();
}

function fromVariables(env: NodeJS.ProcessEnv): Map<string, string> {
  const values = new Map<string, string>();
  for (const { name } of flags) {
    const value = env[variableOf(name)];
    if (value !== undefined) values.set(name, value);
  }
  for (const name of unsupportedFlags) {
    if (env[variableOf(name)] !== undefined)
      throw errors.unsupportedFlag(`--${name} (set by ${variableOf(name)})`);
  }
  return values;
}

/** Returns a flag's value from the command line; '1' for a switch, as its variable would have. */
function checkedValue(name: string, rawName: string, value: string | undefined): string {
  const flag = flags.find((f) => f.name === name);
  if (!flag) {
    if (name === 'module' || rawName === '-m') throw errors.noModules(rawName);
    if (unsupportedFlags.includes(name)) throw errors.unsupportedFlag(rawName);
    const meant = nearest(name, [...flags.map((f) => f.name), 'help']);
    throw errors.unknownWord('ringwise run', 'flag', rawName, meant && `--${meant}`);
  }
  if (!flag.value) {
    if (value !== undefined) throw errors.unexpectedValue(rawName, value);
    return '1';
  }
  if (value === undefined && flag.isValueOptional) return '1';
  if (value === undefined) throw errors.missingValue(rawName, flag.value);
  return value;
}

function toOptions(
  values: Values,
  script: string,
  scriptArgs: readonly string[],
  env: NodeJS.ProcessEnv,
): RunOptions {
  const interval = values.get('monitor-interval');
  if (interval !== undefined && !(Number(interval) > 0)) {
    throw errors.badArgument('ringwise run', '--monitor-interval', 'seconds above 0', interval);
  }
  return {
    script,
    scriptArgs,
    isProgram: isSwitchedOn(values, 'no-python'),
    nprocPerNode: values.get('nproc-per-node') ?? '1',
    role: values.get('role') ?? 'default',
    meeting: meetingOf(values, env),
    runId: values.get('rdzv-id'),
    maxRestarts: wholeNumber(values, 'max-restarts', '0', 1_000_000),
    shutdownTimeoutMs: wholeNumber(values, 'shutdown-timeout', '30', 86_400) * 1000,
    signals: signalsOf(values),
    output: outputOf(values),
    live: liveOf(values),
    isDryRun: isSwitchedOn(values, 'dry-run'),
    binding: bindingOf(values),
    isLocalRankVirtual: isSwitchedOn(values, 'virtual-local-rank'),
  };
}

function bindingOf(values: Values): BindingKind | null {
  const text = values.get('numa-binding');
  if (text === undefined) return null;
  const kind = bindingKinds.find((each) => each === text);
  if (!kind) throw errors.badArgument('ringwise run', '--numa-binding', bindingKinds.join(', '), text);
  return kind;
}

function liveOf(values: Values): LiveOptions {
  return {
    ui: uiOf(values),
    metricsFile: values.get('metrics') ?? null,
    tensorboardDir: values.get('tensorboard') ?? null,
  };
}

function uiOf(values: Values): LiveOptions['ui'] {
  const text = values.get('ui') ?? '';
  const isOn = switchOf(text);
  if (isOn !== null) return isOn ? { host: loopbackAddress(), port: 0 } : null;
  const [, bracketed, name, port = '0'] = /^(?:\[([\da-f:]+)\]|([^:[\]]+))(?::(\d+))?$/i.exec(text) ?? [];
  const host = bracketed ?? name;
  if (host === undefined || /^\d+$/.test(host) || Number(port) > 65_535) {
    throw errors.badArgument('ringwise run', '--ui', 'an address such as 127.0.0.1:8080', text);
  }
  return { host, port: Number(port) };
}

function outputOf(values: Values): OutputOptions {
  const filter = values.get('local-ranks-filter');
  if (filter !== undefined && !/^\d+(,\d+)*$/.test(filter)) {
    throw errors.badArgument('ringwise run', '--local-ranks-filter', 'local ranks such as 0,1', filter);
  }
  return {
    logDir: values.get('log-dir'),
    redirects: streamsOf('redirects', values.get('redirects') ?? '0'),
    tee: streamsOf('tee', values.get('tee') ?? '0'),
    localRanks: filter === undefined ? null : new Set(filter.split(',').map(Number)),
  };
}

function signalsOf(values: Values): readonly NodeJS.Signals[] {
  const text = values.get('signals-to-handle');
  if (text === undefined) return defaultSignals;
  return text.split(',').map((name) => {
    if (!(name in constants.signals) || ['SIGKILL', 'SIGSTOP'].includes(name)) {
      throw errors.badArgument(
        'ringwise run',
        '--signals-to-handle',
        'names of signals such as SIGTERM,SIGUSR1 (SIGKILL and SIGSTOP cannot be handled)',
        name,
      );
    }
    return name as NodeJS.Signals;
  });
}
