// Derives a plan from options and environment: this process's rank, and the store of the rendezvous. No side
// effects. Rank and size come together from the first of: options, url, launcher.

import { fileURLToPath } from 'node:url';
import { loopbackAddress, type Store } from '@ringwise/store';
import { allVerbs } from '../all-verbs.ts';
import { CollectiveError, type Failure } from '../errors.ts';
import { badTimeoutVariable, isTimeout, wrongOption } from '../options/errors.ts';
import type { InitOptions } from '../options/init-options.ts';
import { checkGroupOptions } from '../options/known-options.ts';
import { unknownOption } from '../options/option-names.ts';
import { detectLauncher, type Env, type Launched, masterOf, type Via } from './env.ts';
import {
  badMasterPort,
  badUrl,
  halfALauncher,
  masterUnknown,
  noLauncher,
  rankOutOfRange,
  rankUnknown,
  soloForMany,
  storeAndUrl,
  tooManyRanks,
  unknownAlgorithmVariable,
} from './errors.ts';
import { secretOf } from './secret.ts';

export type StoreLocation =
  | { readonly kind: 'nowhere' }
  | { readonly kind: 'store'; readonly store: Store }
  | { readonly kind: 'file'; readonly directory: string }
  | {
      readonly kind: 'tcp';
      readonly host: string;
      readonly port: number;
      /** True if another process serves the store: connect, never bind. */
      readonly isServed: boolean;
      readonly secret: string | null;
    };

export interface Plan {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /**
   * The launcher that gave rank and size; null if they came from options or a URL, or if there is no
   * launcher.
   */
  readonly via: Via | null;
  /** Null unless the launcher gives them. Without local ranks, the ranks of a host are numbered in rank order. */
  readonly localRank: number | null;
  readonly localSize: number | null;
  readonly backend: string;
  readonly store: StoreLocation;
  /** Key prefix that separates this run from other runs, and from itself before a restart. */
  readonly runKey: string;
  readonly secret: string | null;
  readonly timeoutMs: number;
}

const defaultTimeoutMs = 300_000;

const storeMethods = ['set', 'get', 'add', 'compareSet', 'wait', 'check', 'delete', 'multiGet'] as const;

/** Describes the store that is expected in place of `value`, with the methods that `value` lacks if it has others. */
export function expectedStore(value: unknown): string {
  const isObject = typeof value === 'object' && value !== null;
  const missing = isObject ? storeMethods.filter((name) => !(name in value)) : storeMethods;
  const isPart = missing.length < storeMethods.length;
  return `a Store of @ringwise/store, or an object with its methods${isPart ? ` (missing: ${missing.join(', ')})` : ''}`;
}

export function isStore(value: unknown): value is Store {
  return typeof value === 'object' && value !== null && storeMethods.every((name) => name in value);
}

export function planInit(options: InitOptions, env: Env): Plan {
  const { plan, fault } = draftInit(options, env);
  if (fault !== null) throw refused(fault);
  return plan;
}

const algorithmPrefix = 'RINGWISE_ALGO_';

/** The most ranks that a job can have: a store takes requests for the keys of twice as many at once. */
const maxSize = 65_536;

/**
 * Like planInit(), but if rank and size do not fit and the store is known, returns that fault beside the plan, so
 * that this rank can tell the other ranks.
 */
export function draftInit(
  options: InitOptions,
  env: Env,
): { readonly plan: Plan; readonly fault: Failure | null } {
  checkInitOptions(options);
  checkAlgorithmVariables(env);
  const url = options.url === undefined ? null : parseUrl(options.url);
  if (url !== null && options.store !== undefined) throw refused(storeAndUrl());
  const launched = detectLauncher(env);
  const { rank, size, from } = whoAmI(options, url, launched, env);
  const isInRange = Number.isSafeInteger(rank) && Number.isSafeInteger(size) && rank >= 0 && rank < size;
  if (isInRange && size > maxSize) throw refused(tooManyRanks(size, maxSize, from));
  const { name = 'world', backend = env.RINGWISE_BACKEND || 'auto' } = options;
  const soloFault = backend === 'solo' && size > 1 ? soloForMany(size) : null;
  const fault = isInRange ? soloFault : rankOutOfRange(rank, size, from);
  const isLaunched = launched !== null && from === launched.via;
  const isAlone = size === 1 && fault === null;
  const secret = isAlone ? null : unless(fault, () => secretOf(env));
  const store: StoreLocation = isAlone
    ? { kind: 'nowhere' }
    : unless(fault, () => storeLocationOf(options, url, launched, size, secret, env));
  const plan: Plan = {
    name,
    rank,
    size,
    via: isLaunched ? launched.via : null,
    localRank: isLaunched ? launched.localRank : null,
    localSize: isLaunched ? launched.localSize : null,
    backend: backend === 'auto' && size === 1 ? 'solo' : backend,
    store,
    runKey: `ringwise/${env.RINGWISE_RUN_ID || env.TORCHELASTIC_RUN_ID || 'run'}/${env.TORCHELASTIC_RESTART_COUNT || 0}`,
    secret,
    timeoutMs: timeoutOf(options, env),
  };
  return { plan, fault };
}

/** Returns what `find` returns. If that throws, throws the earlier `fault` if there is one. */
function unless<T>(fault: Failure | null, find: () => T): T {
  try {
    return find();
  } catch (error) {
    throw fault === null ? error : refused(fault);
  }
}

function checkInitOptions(options: InitOptions): void {
  checkGroupOptions({ error: refused }, 'init', options);
  const { rank, size, store, url, backend } = options;
  for (const [name, value] of Object.entries({ rank, size })) {
    if (value !== undefined && typeof value !== 'number')
      throw refused(wrongOption('init', name, 'a number', value));
  }
  for (const [name, value] of Object.entries({ url, backend })) {
    if (value !== undefined && typeof value !== 'string')
      throw refused(wrongOption('init', name, 'a string', value));
  }
  if (store !== undefined && !isStore(store))
    throw refused(wrongOption('init', 'store', expectedStore(store), store));
}

interface Address {
  readonly kind: 'env' | 'tcp' | 'file';
  readonly host: string;
  readonly port: number;
  readonly directory: string;
  readonly rank: number | undefined;
  readonly size: number | undefined;
}

function parseUrl(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : null;
  const kind = url?.protocol.slice(0, -1);
  if (url === null || (kind !== 'env' && kind !== 'tcp' && kind !== 'file')) {
    throw refused(badUrl(text, 'env://, tcp://host:port or file:///directory'));
  }
  const parameters = Object.fromEntries(url.searchParams);
  const fault = unknownOption(parameters, ['rank', 'size'], { world_size: 'size' });
  if (fault !== null) throw refused(badUrl(text, `rank and size after the question mark: ${fault}`));
  // Number('') would be 0.
  const number = (key: 'rank' | 'size') => {
    const { [key]: value } = parameters;
    return value === undefined ? undefined : /^\d+$/.test(value) ? Number(value) : Number.NaN;
  };
  const port = Number(url.port);
  if (kind === 'tcp' && (url.hostname === '' || port === 0)) {
    throw refused(badUrl(text, 'tcp://host:port with a port from 1 to 65535'));
  }
  // Of file://scratch/run, "scratch" would be a host, and the directory /run.
  if (kind === 'file' && (url.hostname !== '' || url.pathname === '/')) {
    throw refused(badUrl(text, 'file:///directory with three slashes and an absolute path'));
  }
  return {
    kind,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port,
    directory: kind === 'file' ? fileURLToPath(`file://${url.pathname}`) : '',
    rank: number('rank'),
    size: number('size'),
  };
}

function whoAmI(options: InitOptions, url: Address | null, launched: Launched | null, env: Env) {
  for (const [from, { rank, size }] of [['options', options] as const, ['url', url ?? {}] as const]) {
    if (rank !== undefined || size !== undefined)
      return { from, rank: rank ?? Number.NaN, size: size ?? Number.NaN };
  }
  if (launched !== null)
    return { from: launched.via, rank: launched.rank, size: launched.size ?? Number.NaN };
  // If only half of a launcher's variables are set, a group of one would silently train alone.
  if (env.RANK || env.WORLD_SIZE) throw refused(halfALauncher(env.RANK, env.WORLD_SIZE));
  if (url?.kind === 'env') throw refused(noLauncher());
  if (url !== null || options.store !== undefined) throw refused(rankUnknown());
  return { from: 'nothing', rank: 0, size: 1 };
}

function storeLocationOf(
  { store }: InitOptions,
  url: Address | null,
  launched: Launched | null,
  size: number,
  secret: string | null,
  env: Env,
): StoreLocation {
  if (store !== undefined) return { kind: 'store', store };
  if (url?.kind === 'file') return { kind: 'file', directory: url.directory };
  // The launcher's store is exactly at its master's address. At any other address rank 0 serves the store.
  const { masterHost, masterPort, isStoreServed } = launched ?? { ...masterOf(env), isStoreServed: false };
  const isPortRead = url?.kind !== 'tcp';
  if (isPortRead && env.MASTER_PORT && !isPort(env.MASTER_PORT))
    throw refused(badMasterPort(env.MASTER_PORT));
  const isAgent = url === null || url.kind === 'env' || (url.host === masterHost && url.port === masterPort);
  // torchrun's agent does not know the secret. RINGWISE_RUN_ID is set only by the ringwise launcher.
  const isServed = isStoreServed && isAgent;
  const storeSecret = isServed && !env.RINGWISE_RUN_ID ? null : secret;
  if (url?.kind === 'tcp')
    return { kind: 'tcp', host: url.host, port: url.port, isServed, secret: storeSecret };
  const via = launched?.via ?? null;
  const isOneHost = launched?.localSize === size;
  const host = isOneHost && !isServed ? loopbackAddress() : masterHost;
  if (host === null) throw refused(masterUnknown('MASTER_ADDR', via));
  if (masterPort === null) throw refused(masterUnknown('MASTER_PORT', via));
  return { kind: 'tcp', host, port: masterPort, isServed, secret: storeSecret };
}

/** The variables that choose the algorithm of a verb; native/coll/plan/choose.h reads them. */
const algorithmVariables = allVerbs.map((verb) => `${algorithmPrefix}${verb.toUpperCase()}`);

/** Throws for a misspelled name, which would leave the algorithm as it is. */
function checkAlgorithmVariables(env: Env): void {
  for (const name of Object.keys(env)) {
    if (!name.startsWith(algorithmPrefix) || algorithmVariables.includes(name)) continue;
    throw refused(unknownAlgorithmVariable(name, algorithmVariables));
  }
}

const isPort = (text: string): boolean =>
  /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;

function timeoutOf(options: InitOptions, env: Env): number {
  const text = env.RINGWISE_TIMEOUT_MS;
  const value = options.timeoutMs ?? (text ? Number(text) : defaultTimeoutMs);
  if (isTimeout(value)) return value;
  throw refused(badTimeoutVariable('init', text ?? ''));
}

function refused(failure: Failure): CollectiveError {
  return new CollectiveError(failure, null);
}
