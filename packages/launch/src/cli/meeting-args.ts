// Parses the flags for the number of hosts and the address of their rendezvous.

import { loopbackAddress } from '@ringwise/store';
import { badArgument, unknownWord } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { type MeetingOptions, oneHost } from './run-options.ts';
import { isSwitchedOn, type Values, wholeNumber } from './values.ts';

const verb = 'ringwise run';
const maxHosts = 65_536;

/** Default ports of the rendezvous of several hosts, as in torchrun. */
export const defaultPorts = { c10d: 29_400, static: 29_500 } as const;

export function meetingOf(values: Values, env: NodeJS.ProcessEnv): MeetingOptions {
  const localName = values.get('local-addr') || undefined;
  if (isSwitchedOn(values, 'standalone')) {
    checkStandalone(values);
    return { ...oneHost, localName };
  }
  const [minNodes, maxNodes] = hostsOf(values);
  const backend = values.get('rdzv-backend') ?? 'static';
  if (backend !== 'static' && backend !== 'c10d') {
    throw badArgument(verb, values.nameOf('rdzv-backend'), 'static or c10d', backend);
  }
  if (backend === 'static' && minNodes !== maxNodes) {
    throw badArgument(
      verb,
      values.nameOf('nnodes'),
      'one number with --rdzv-backend static (c10d takes a range)',
      values.get('nnodes'),
    );
  }
  return {
    ...oneHost,
    ...confOf(values),
    ...addressOf(values, backend, maxNodes),
    backend,
    minNodes,
    maxNodes,
    nodeRank: backend === 'static' ? nodeRankOf(values, env, maxNodes) : 0,
    localName,
  };
}

/** Refuses --nnodes of several hosts beside --standalone: each host would train alone. A variable gives way to it. */
function checkStandalone(values: Values): void {
  const flag = values.nameOf('nnodes');
  if (!flag.startsWith('-') || hostsOf(values)[0] === 1) return;
  throw badArgument(verb, flag, '1 with --standalone, which is for one host', values.get('nnodes'));
}

/** Parses --nnodes; "2" means 2:2. */
function hostsOf(values: Values): [number, number] {
  const text = values.get('nnodes') ?? '1';
  const [min, max = min] = (/^(\d+)(?::(\d+))?$/.exec(text)?.slice(1) ?? []).map(
    (part) => part && Number(part),
  );
  if (!min || !max || max < min || max > maxHosts) {
    const expected = 'a number of hosts such as 2, or a range such as 1:4';
    throw badArgument(verb, values.nameOf('nnodes'), expected, text);
  }
  return [min as number, max as number];
}

// Schedulers that start one launcher per host set these variables to the host's index, not to a rank.
function nodeRankOf(values: Values, env: NodeJS.ProcessEnv, hosts: number): number {
  const variable =
    env.SLURM_STEP_ID !== undefined
      ? 'SLURM_NODEID'
      : ['JOB_COMPLETION_INDEX', 'LWS_WORKER_INDEX'].find((name) => env[name] !== undefined);
  const given = variable === undefined ? undefined : env[variable];
  const isGiven = hosts > 1 && given !== undefined && /^\d+$/.test(given);
  const expected = hosts === 1 ? '0 with one host' : `a whole number from 0 to ${hosts - 1}`;
  const shownName = isGiven && values.get('node-rank') === undefined ? variable : undefined;
  return wholeNumber(values, 'node-rank', isGiven ? given : '0', hosts - 1, expected, shownName);
}

function addressOf(values: Values, backend: 'static' | 'c10d', hosts: number) {
  const endpoint = values.get('rdzv-endpoint');
  const byDefault = hosts === 1 ? 0 : defaultPorts[backend];
  if (endpoint) return parseEndpoint(values.nameOf('rdzv-endpoint'), endpoint, byDefault, hosts);
  if (backend === 'c10d' && hosts > 1) {
    throw badArgument(
      verb,
      values.nameOf('rdzv-endpoint'),
      'HOST[:PORT] of one of the hosts when several meet by c10d',
      endpoint ?? '',
    );
  }
  const host = values.get('master-addr') ?? loopbackAddress();
  if (host === '')
    throw badArgument(verb, values.nameOf('master-addr'), 'the name or address of host 0', host);
  return {
    host,
    port: portOf(values, byDefault, hosts),
  };
}

/** Parses --master-port. Several hosts must know the port, so that 0, which takes any free one, is for one host. */
function portOf(values: Values, byDefault: number, hosts: number): number {
  const port = wholeNumber(values, 'master-port', `${byDefault}`, 65_535);
  if (port > 0 || hosts === 1) return port;
  throw badArgument(verb, values.nameOf('master-port'), portForm, values.get('master-port'));
}

const portForm = 'a port from 1 to 65535 when several hosts meet';

/** Parses "gpu-a", "gpu-a:29400" or "[fe80::1]:29400". */
function parseEndpoint(
  flag: string,
  text: string,
  byDefault: number,
  hosts: number,
): { host: string; port: number } {
  const [, v6, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d+))?$/i.exec(text) ?? [];
  const host = v6 ?? name;
  const port = digits === undefined ? byDefault : Number(digits);
  if (host === undefined || port > 65_535) throw badArgument(verb, flag, 'HOST[:PORT]', text);
  if (port === 0 && hosts > 1) throw badArgument(verb, flag, portForm, text);
  return { host, port };
}

type Conf = Partial<MeetingOptions>;

const conf: Readonly<Record<string, (text: string) => Conf | null>> = {
  join_timeout: (text) => milliseconds(text, 'joinTimeoutMs'),
  timeout: (text) => milliseconds(text, 'joinTimeoutMs'),
  last_call_timeout: (text) => milliseconds(text, 'lastCallMs'),
  keep_alive_interval: (text) => (Number(text) > 0 ? milliseconds(text, 'keepAliveMs') : null),
  keep_alive_max_attempt: (text) =>
    /^[1-9]\d{0,5}$/.test(text) ? { keepAliveAttempts: Number(text) } : null,
  is_host: (text) =>
    /^(1|true|0|false)$/i.test(text) ? { isHost: ['1', 'true'].includes(text.toLowerCase()) } : null,
};

function confOf(values: Values): Conf {
  const entries = (values.get('rdzv-conf') ?? '').split(',').filter((part) => part.trim() !== '');
  const flag = values.nameOf('rdzv-conf');
  return Object.assign({}, ...entries.map((entry) => parseConf(flag, entry))) as Conf;
}

function parseConf(flag: string, entry: string): Conf {
  const [key = '', value = ''] = entry.split('=').map((part) => part.trim());
  if (!Object.hasOwn(conf, key)) {
    throw unknownWord(verb, `key of ${flag}`, key, nearest(key, Object.keys(conf)));
  }
  const parsed = conf[key]!(value);
  if (parsed === null) throw badArgument(verb, `${flag} ${key}`, 'a number (is_host: true or false)', value);
  return parsed;
}

function milliseconds(text: string, key: keyof MeetingOptions): Conf | null {
  const seconds = Number(text);
  return text !== '' && seconds >= 0 && seconds <= 2_000_000 ? { [key]: seconds * 1000 } : null;
}
