// The groups that split(), subgroup() and shrink() make of the ranks of one group: how their members find each other,
// and their end with the group.
import type { Backend } from '../../backend.ts';
import {
  type CollectiveError,
  type Failure,
  groupClosed,
  noSubgroups,
  noSurvivors,
  notByShrink,
} from '../../errors.ts';
import { withStoreErrors } from '../../init/store-errors.ts';
import { badTimeout, isTimeout } from '../../options/errors.ts';
import type { GroupOptions } from '../../options/group-options.ts';
import { checkGroupOptions, noOptions as none } from '../../options/known-options.ts';
import type { ShrinkOptions, SubgroupOptions } from '../../options/options.ts';
import type { Admission } from '../admission.ts';
import type { GroupState } from '../state.ts';
import type { Steps } from '../steps.ts';
import { childOptions, type Parent } from './child-options.ts';
import { nameOf } from './subgroups.ts';
import { candidatesOf } from './survivors.ts';
import { withParent } from './with-parent.ts';

/** A group, as far as its parent uses it. */
export interface Child {
  readonly abort: (reason: unknown) => void;
  readonly close: () => Promise<void>;
}

/** Calls of the parent. `G` is the class of groups. */
export interface ParentCalls<G extends Child> {
  /** Starts a call of the group that finds the members. Resolves with null on a rank that is none of them. */
  readonly findMembers: (
    verb: string,
    callOf: (group: Admission) => Steps<number[] | null>,
  ) => PromiseLike<number[] | null>;
  /** Fails all pending and later calls on all ranks. Returns `cause`. */
  readonly abort: (cause: CollectiveError) => CollectiveError;
  /** Constructs a group. */
  readonly groupOf: (backend: Backend, options: GroupOptions) => G;
}

export class Children<G extends Child> {
  readonly #parent: Parent;
  readonly #backend: Backend;
  readonly #state: GroupState;
  readonly #options: GroupOptions;
  readonly #calls: ParentCalls<G>;
  readonly #groups = new Set<G>();
  /** Calls of split() and subgroup() that have not ended. */
  readonly #making = new Set<Promise<unknown>>();
  /** Number of calls of split() and subgroup() so far; the same on all ranks. */
  #subgroups = 0;
  /** Number of calls of shrink() so far; the same on all survivors. */
  #shrinks = 0;

  /** `options` are those of `parent`. */
  constructor(
    parent: Parent,
    backend: Backend,
    state: GroupState,
    options: GroupOptions,
    calls: ParentCalls<G>,
  ) {
    this.#parent = parent;
    this.#backend = backend;
    this.#state = state;
    this.#options = options;
    this.#calls = calls;
  }

  /**
   * Makes a group of the members that `membersOf` finds. Resolves with null on all other ranks. A loss or failure of
   * the parent meanwhile, which concerns a member, fails the parent.
   */
  async subgroup(
    verb: 'split' | 'subgroup',
    options: SubgroupOptions,
    membersOf: (group: Admission) => Steps<number[] | null>,
  ): Promise<G | null> {
    const making = this.#subgroup(verb, options, membersOf);
    this.#making.add(making);
    try {
      return await making;
    } finally {
      this.#making.delete(making);
    }
  }

  async #subgroup(
    verb: 'split' | 'subgroup',
    options: SubgroupOptions,
    membersOf: (group: Admission) => Steps<number[] | null>,
  ): Promise<G | null> {
    let index = 0;
    const members = await this.#calls.findMembers(verb, (group) => {
      if (this.#options.subgroups === undefined) throw group.error(noSubgroups(verb));
      checkGroupOptions(group, verb, options);
      const steps = membersOf(group);
      index = this.#subgroups++;
      return steps;
    });
    if (members === null) return null;
    const fail = (failure: Failure) => this.#calls.abort(this.#state.error({ ...failure, verb, seq: null }));
    const make = (stop: AbortSignal) => this.#child(verb, members, `${index}/${members[0]}`, options, stop);
    return await withParent(() => this.#backend.failure?.() ?? null, members, fail, make);
  }

  /** See Group.shrink(). */
  async shrink(options: ShrinkOptions = none): Promise<G> {
    const state = this.#state;
    checkGroupOptions(state, 'shrink', options);
    const { waitMs = 10_000 } = options;
    if (!(waitMs === 0 || isTimeout(waitMs))) throw state.error(badTimeout('shrink', waitMs, 'waitMs'));
    const { survivors, subgroups, instead } = this.#options;
    if (state.isClosed) throw state.error(groupClosed('shrink', instead));
    if (instead !== undefined) throw state.error(notByShrink(instead));
    if (survivors === undefined || subgroups === undefined) throw state.error(noSurvivors());
    const candidates = candidatesOf(state, options.without);
    const attempt = this.#shrinks++;
    const members = await this.#meeting('shrink', () => survivors(candidates, attempt, waitMs));
    const fail = (failure: Failure) => state.error({ ...failure, verb: 'shrink' });
    const make = (stop: AbortSignal) => this.#child('shrink', members, `shrunk/${attempt}`, options, stop);
    return await withParent(() => this.#backend.losses?.() ?? null, members, fail, make);
  }

  abort(reason: unknown): void {
    for (const child of this.#groups) child.abort(reason);
  }

  /**
   * Closes the groups and waits for those that are being made, which close themselves because the parent was closed: on
   * other ranks their members may be waiting for this one. Resolves with the ends of the closed groups.
   */
  async close(): Promise<PromiseSettledResult<void>[]> {
    const ends = await Promise.allSettled([...this.#groups].map((child) => child.close()));
    await Promise.allSettled(this.#making);
    return ends;
  }

  /** Runs a part of `verb` in which ranks meet through the store. */
  #meeting<T>(verb: string, call: () => Promise<T>): Promise<T> {
    const { name, rank, size } = this.#state;
    return withStoreErrors(verb, { group: name, rank, size }, call);
  }

  /** `key` must be unique among these groups. */
  async #child(
    verb: string,
    members: readonly number[],
    key: string,
    options: SubgroupOptions,
    signal: AbortSignal,
  ): Promise<G> {
    const { name = nameOf(this.#state.name, members), timeoutMs = this.#options.timeoutMs } = options;
    const request = { members, key, name, timeoutMs, signal };
    const connected = await this.#meeting(verb, () => this.#options.subgroups!(request));
    const onClose = async () => void this.#groups.delete(child);
    const child: G = this.#calls.groupOf(connected.backend, {
      ...childOptions(this.#parent, request, connected, this.#options.instead),
      onClose,
    });
    this.#groups.add(child);
    if (this.#state.isClosed) await child.close();
    return child;
  }
}
