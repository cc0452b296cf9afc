// Options of the Group constructor.

import type { Subgroups, Survivors } from '../group/members/membership.ts';
import type { Via } from '../init/env.ts';
import type { Placement } from '../init/placement.ts';

/** Options of `new Group()`, for code that makes a backend itself. Users call init(). */
export interface GroupOptions {
  /** Name for error messages. */
  readonly name: string;
  /** Default deadline of operations in milliseconds. */
  readonly timeoutMs: number;
  /** This group's ranks as ranks of the outermost group. Default: 0, 1, 2, … */
  readonly ranks?: readonly number[];
  /** Makes backends for subgroups. Without it, split() and subgroup() are refused. */
  readonly subgroups?: Subgroups;
  /** Agrees on the ranks that are left after a failure. Without it, shrink() is refused. */
  readonly survivors?: Survivors;
  /** Called once, after the backend has left the group or has failed to. */
  readonly onClose?: () => Promise<void>;
  /** Sentence for errors of calls on the group after it is closed or has failed: how to get another one. */
  readonly instead?: string;
  /** The launcher that gave this process its rank. Default: null, for none. */
  readonly via?: Via | null;
  /** Default: all ranks are on one host. */
  readonly placement?: Placement;
}
