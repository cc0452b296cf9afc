// Options of joinMembership(), checked and completed from the environment of the launcher.
import { randomUUID } from 'node:crypto';
import { detectLauncher, hostId } from '@ringwise/collectives';
import { MemoryStore, type Store } from '@ringwise/store';
import { unknownOption } from '../option-names.ts';
import {
  badOption,
  badOptions,
  badVariable,
  endedByLauncher,
  endedByTorchrun,
  noStore,
  sizeUnknown,
} from './errors.ts';
import { ownProcess } from './processes.ts';
import type { Patience, Settings } from './protocol/machine.ts';
import type { Wish } from './protocol/view.ts';

/** Options of joinMembership(). Times are in milliseconds. */
export interface MembershipOptions {
  /**
   * Store through which the members agree. It has to outlive each member, so no member may serve it. The caller keeps
   * it and must leave it open. Default: the store of the launcher.
   */
  readonly store?: Store;
  /** Name of the job in the store. Default: RINGWISE_RUN_ID, TORCHELASTIC_RUN_ID or 'run'. */
  readonly runId?: string;
  /** Number of processes that found the job. Default: the launcher's WORLD_SIZE. */
  readonly size?: number;
  /**
   * Minimum number of members with which the job continues. Default: MIN of `ringwise run --elastic MIN:MAX`, else 1.
   */
  readonly min?: number;
  /** Backend of the groups, as in init(). */
  readonly backend?: string;
  /** Default deadline of the operations of the groups. Default: `stallMs` when the view begins. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds that the others wait, after a failure, for a member that does not report and is not known to have
   * ended. Default: 4 times the median step, from 200 to 5,000; 2,000 before there are steps. If more members are
   * missing than have reported, the others wait 4 times as long, but at most 5,000 or settleMs, whichever is longer.
   */
  readonly settleMs?: number;
  /**
   * Milliseconds that the others wait for a member in a vote, and for its report after a vote that changes the view.
   * Default: 20 times the median step, at least 2,000; 60,000 before there are steps.
   */
  readonly stallMs?: number;
  /** Milliseconds that `min` or more founding members wait for the rest of `size`. Default: 30,000. */
  readonly lastCallMs?: number;
  /**
   * Milliseconds that this process waits to be admitted, and that fewer than `min` members wait for others. Default:
   * 600,000.
   */
  readonly joinTimeoutMs?: number;
  /** Deadline of connecting the members of a view. Default: 30,000. */
  readonly connectMs?: number;
}

const names: readonly (keyof MembershipOptions)[] = [
  ...(['store', 'runId', 'size', 'min', 'backend', 'timeoutMs'] as const),
  ...(['settleMs', 'stallMs', 'lastCallMs', 'joinTimeoutMs', 'connectMs'] as const),
];
/** Our options by their names elsewhere: in torchrun, torchft, Elastic Horovod and this package's environment. */
export const renamed: Readonly<Record<string, string>> = {
  ...{ min_size: 'min', minRanks: 'min', min_ranks: 'min', minNp: 'min', min_np: 'min', minReplicas: 'min' },
  ...{ world_size: 'size', worldSize: 'size', timeout: 'timeoutMs' },
};

/** Address of the store, if the caller has not passed one. */
export interface StoreAddress {
  readonly host: string;
  readonly port: number;
  readonly secret: string | null;
}

export interface JoinPlan {
  readonly self: Wish;
  readonly runId: string;
  readonly store: Store | StoreAddress;
  readonly masterHost: string | null;
  readonly backend: string | undefined;
  readonly timeoutMs: number | null;
  readonly connectMs: number;
  readonly settings: Settings;
  readonly patience: Partial<Patience>;
}

type Env = Readonly<Record<string, string | undefined>>;

export function planJoin(options: MembershipOptions, env: Env): JoinPlan {
  checkMembership('joinMembership', options);
  const launched = detectLauncher(env);
  // Without a launcher this is the only process, as for init(). A process with only one of RANK and WORLD_SIZE is not.
  const isAlone =
    options.store === undefined &&
    launched === null &&
    (options.size ?? 1) === 1 &&
    !env.RANK &&
    !env.WORLD_SIZE;
  const size = isAlone ? 1 : (options.size ?? launched?.size ?? null);
  if (size === null) throw sizeUnknown();
  const {
    min = whole('RINGWISE_MIN_RANKS', env) ?? 1,
    lastCallMs = 30_000,
    joinTimeoutMs = 600_000,
    connectMs = 30_000,
  } = options;
  if (!isAlone && min > size) throw badOption('joinMembership', 'min', `at most size, which is ${size}`, min);
  const { settleMs, stallMs } = options;
  return {
    self: selfOf(env),
    runId: options.runId ?? (env.RINGWISE_RUN_ID || env.TORCHELASTIC_RUN_ID || 'run'),
    store: isAlone ? new MemoryStore() : (options.store ?? addressOf(launched, env)),
    masterHost: launched?.masterHost ?? null,
    backend: options.backend,
    timeoutMs: options.timeoutMs ?? null,
    connectMs,
    settings: { size, min: Math.min(min, size), lastCallMs, joinTimeoutMs, founders: foundersOf(size, env) },
    patience: { ...(settleMs !== undefined && { settleMs }), ...(stallMs !== undefined && { stallMs }) },
  };
}

/** Throws ERR_ELASTIC_INVALID for an unknown or unusable option. `verb` is the function to which it was passed. */
export function checkMembership(verb: string, options: MembershipOptions): void {
  const fault = unknownOption(options, names, renamed);
  if (fault !== null) throw badOptions(verb, fault);
  const { store, runId, backend, size, min, ...times } = options;
  const refuse = (name: string, expected: string, got: unknown) => {
    throw badOption(verb, name, expected, got);
  };
  if (store !== undefined && (typeof store !== 'object' || store === null || !('compareSet' in store)))
    refuse('store', 'a Store of @ringwise/store, or an object with its methods', store);
  for (const [name, text] of Object.entries({ runId, backend })) {
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      refuse(name, 'a text that is not empty', text);
  }
  for (const [name, count] of Object.entries({ size, min })) {
    if (count !== undefined && !(Number.isSafeInteger(count) && count > 0))
      refuse(name, 'a whole number from 1', count);
  }
  for (const [name, ms] of Object.entries(times)) {
    const isTime = typeof ms === 'number' && ms > 0 && ms <= 2 ** 31 - 1;
    if (ms !== undefined && !isTime) refuse(name, 'milliseconds above 0, at most 2147483647', ms);
  }
}

/** Returns the id of this process: `slot.incarnation` if the launcher gives both, otherwise a random id. */
function selfOf(env: Env): Wish {
  const slot = whole('RINGWISE_SLOT', env);
  const incarnation = whole('RINGWISE_INCARNATION', env);
  const id = slot === null || incarnation === null ? randomUUID() : `${slot}.${incarnation}`;
  return { id, slot, host: hostId(), process: ownProcess(), standby: env.RINGWISE_STANDBY || null };
}

/** Returns the ids of the founding members, if the launcher names them. */
function foundersOf(size: number, env: Env): string[] {
  const isNamed = env.RINGWISE_SLOT && env.RINGWISE_INCARNATION;
  return isNamed ? Array.from({ length: size }, (_, slot) => `${slot}.0`) : [];
}

function whole(name: string, env: Env): number | null {
  const text = env[name];
  if (!text) return null;
  if (!/^\d{1,9}$/.test(text)) throw badVariable(name, 'a whole number', text);
  return Number(text);
}

function addressOf(launched: ReturnType<typeof detectLauncher>, env: Env): StoreAddress {
  // A store that rank 0 serves would end with rank 0.
  if (launched === null || !launched.isStoreServed) throw noStore();
  if (launched.via === 'torchrun') throw endedByTorchrun();
  if (launched.via === 'ringwise' && !env.RINGWISE_SLOT) process.emitWarning(endedByLauncher);
  const { masterHost: host, masterPort: port } = launched;
  if (host === null || port === null) throw noStore();
  // torchrun's agent does not know the secret; RINGWISE_RUN_ID is set only by the ringwise launcher.
  return { host, port, secret: (env.RINGWISE_RUN_ID && env.RINGWISE_SECRET) || null };
}
