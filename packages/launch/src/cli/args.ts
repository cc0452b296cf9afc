// Parses argv into options. Flags and their values come first; the first other word is the script, and all
// later words belong to the script. A flag on the command line takes precedence over its PET_ variable.

import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { loopbackAddress } from '@ringwise/store';
import { type BindingKind, bindingKinds } from '../agent/binding.ts';
import { isRankCount, rankCountForm } from '../agent/plan.ts';
import * as errors from '../errors.ts';
import { checkMin, checkWordAfter, elasticOf, graceOf, isRange } from './elastic-args.ts';
import { checkedValue, isPageAddress } from './flag-values.ts';
import { flags, unsupportedFlags, variableOf } from './flags.ts';
import { meetingOf } from './meeting-args.ts';
import { defaultSignals, type LiveOptions, type OutputOptions, type RunOptions } from './run-options.ts';
import { streamsOf } from './std-streams.ts';
import { isSwitchedOn, switchOf, Values, wholeNumber } from './values.ts';

/** Parses the arguments of `ringwise run`. Throws ERR_LAUNCH_ARGUMENT. */
export function parseRun(argv: readonly string[], env: NodeJS.ProcessEnv): RunOptions | 'help' {
  const values = fromVariables(env);
  // Flags may be spelled with underscores. Positions do not change, so the script's words are taken from argv
  // itself.
  const dashed = argv.map(
    (word) =>
      word
        .replace(/^--[^=]*/, (name) => name.replaceAll('_', '-'))
        .replace(/^-np?(=|$)/, (_, equals: string) => (equals ? '--nproc-per-node=' : '-n')), // mpirun's -np, and -n=2
  );
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
  let last: (typeof tokens)[number] | undefined;
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (last?.kind === 'option' && last.name === 'elastic' && !last.value) {
        if (isRange(token.value)) {
          values.set('elastic', token.value, last.rawName);
          last = token;
          continue;
        }
        const isProgram = isSwitchedOn(values, 'no-python');
        if (!isProgram) checkWordAfter(last.rawName, token.value, argv.slice(token.index + 1));
      }
      if (last?.kind === 'option' && isPageAddress(last, token.value)) {
        throw errors.valueWithoutEquals(last.rawName, token.value);
      }
      return toOptions(values, argv[token.index]!, argv.slice(token.index + 1), env);
    }
    last = token;
    if (token.kind === 'option-terminator') continue;
    if (token.rawName === '-h' || token.rawName === '--help') return 'help';
    values.set(token.name, checkedValue(token), token.rawName);
  }
  throw errors.noScript();
}

function fromVariables(env: NodeJS.ProcessEnv): Values {
  const values = new Values();
  for (const { name } of flags) {
    const value = env[variableOf(name)];
    // Shells and container specifications set an empty variable to leave a setting out.
    if (value) values.set(name, value, variableOf(name));
  }
  for (const name of unsupportedFlags) {
    if (env[variableOf(name)]) throw errors.unsupportedFlag(`--${name} (set by ${variableOf(name)})`);
  }
  return values;
}

function toOptions(
  values: Values,
  script: string,
  scriptArgs: readonly string[],
  env: NodeJS.ProcessEnv,
): RunOptions {
  const interval = values.get('monitor-interval');
  if (interval !== undefined && !(Number(interval) > 0)) {
    throw errors.badArgument('ringwise run', values.nameOf('monitor-interval'), 'seconds above 0', interval);
  }
  const meeting = meetingOf(values, env);
  const elastic = elasticOf(values);
  const nprocPerNode = nprocOf(values);
  checkMin(elastic, values, meeting.maxNodes, nprocPerNode);
  const isProgram = isSwitchedOn(values, 'no-python');
  return {
    script: isProgram ? script : scriptPath(script),
    scriptArgs,
    isProgram,
    nprocPerNode,
    role: values.get('role') ?? 'default',
    meeting,
    // Empty as from --rdzv-id=$JOB_ID without that variable: then no name was given, as for torchrun.
    runId: values.get('rdzv-id') || undefined,
    elastic,
    maxRestarts: wholeNumber(values, 'max-restarts', elastic ? '3' : '0', 1_000_000),
    graceMs: graceOf(values, elastic !== null),
    shutdownTimeoutMs: wholeNumber(values, 'shutdown-timeout', '30', 86_400) * 1000,
    signals: signalsOf(values),
    output: outputOf(values),
    live: liveOf(values),
    isDryRun: isSwitchedOn(values, 'dry-run'),
    binding: bindingOf(values),
    isLocalRankVirtual: isSwitchedOn(values, 'virtual-local-rank'),
  };
}

/** Returns the path of a script, which may be given as a file URL, as `node` and import.meta.url have it. */
function scriptPath(script: string): string {
  if (!script.startsWith('file:')) return script;
  try {
    return fileURLToPath(script);
  } catch (cause) {
    throw errors.badArgument('ringwise run', 'the script', 'a path or a URL of a file', script, cause);
  }
}

/** Returns the text, which rankCount() reads once the GPUs are known. */
function nprocOf(values: Values): string {
  const text = values.get('nproc-per-node') ?? '1';
  if (!isRankCount(text)) {
    throw errors.badArgument('ringwise run', values.nameOf('nproc-per-node'), rankCountForm, text);
  }
  return text;
}

function bindingOf(values: Values): BindingKind | null {
  const text = values.get('numa-binding');
  if (text === undefined) return null;
  const kind = bindingKinds.find((each) => each === text);
  if (!kind)
    throw errors.badArgument('ringwise run', values.nameOf('numa-binding'), bindingKinds.join(', '), text);
  return kind;
}

function liveOf(values: Values): LiveOptions {
  return {
    ui: uiOf(values),
    isUiKept: isSwitchedOn(values, 'ui-keep'),
    reportFile: values.get('report') ?? null,
    metricsFile: values.get('metrics') ?? null,
    tensorboardDir: values.get('tensorboard') ?? null,
  };
}

function uiOf(values: Values): LiveOptions['ui'] {
  const isKept = isSwitchedOn(values, 'ui-keep');
  const text = values.get('ui') ?? (isKept ? '1' : '');
  const isOn = switchOf(text);
  if (isOn === false && isKept) {
    throw errors.badArgument('ringwise run', values.nameOf('ui'), 'a page that --ui-keep can keep', text);
  }
  if (isOn !== null) return isOn ? { host: loopbackAddress(), port: 0 } : null;
  const [, bracketed, name, port = '0'] = /^(?:\[([\da-f:]+)\]|([^:[\]]+))(?::(\d+))?$/i.exec(text) ?? [];
  const isPort = /^\d+$/.test(text);
  const host = isPort ? loopbackAddress() : (bracketed ?? name);
  const number = Number(isPort ? text : port);
  if (host === undefined || /^\d+$/.test(host) || number > 65_535) {
    const expected = 'an address such as 127.0.0.1:8080, or a port such as 8080';
    throw errors.badArgument('ringwise run', values.nameOf('ui'), expected, text);
  }
  return { host, port: number };
}

function outputOf(values: Values): OutputOptions {
  const filter = values.get('local-ranks-filter');
  if (filter !== undefined && !/^\d+(,\d+)*$/.test(filter)) {
    throw errors.badArgument(
      'ringwise run',
      values.nameOf('local-ranks-filter'),
      'local ranks such as 0,1',
      filter,
    );
  }
  return {
    logDir: values.get('log-dir') || undefined,
    redirects: streamsOf(values.nameOf('redirects'), values.get('redirects') ?? '0'),
    tee: streamsOf(values.nameOf('tee'), values.get('tee') ?? '0'),
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
        values.nameOf('signals-to-handle'),
        'names of signals such as SIGTERM,SIGUSR1 (SIGKILL and SIGSTOP cannot be handled)',
        name,
      );
    }
    return name as NodeJS.Signals;
  });
}
