// What a Group takes beside its backend.

import type { Subgroups, Survivors } from '../group/membership.ts';
import type { Via } from '../init/env.ts';
import type { Placement } from '../init/placement.ts';

export interface GroupOptions {
  /** Appears in error messages. */
  readonly name: string;
  readonly timeoutMs: number;
  /** The rank that each rank has in the outermost group. Default: the same. */
  readonly ranks?: readonly number[];
  /** Makes backends for subgroups. Without it split() and subgroup() are refused. */
  readonly subgroups?: Subgroups;
  /** Agrees on who is left after a failure. Without it shrink() is refused. */
  readonly survivors?: Survivors;
  /** Runs once, after the backend has left the group. */
  readonly onClose?: () => Promise<void>;
  readonly via?: Via | null;
  /** Default: all ranks on one host. */
  readonly placement?: Placement;
}
