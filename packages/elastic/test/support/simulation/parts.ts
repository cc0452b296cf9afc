// What a simulated world consists of: events, members, groups, hosts, and the times that things take.
import type { Input, Machine, Patience, Settings } from '../../../src/membership/protocol/machine.ts';
import type { Report, View, Wish } from '../../../src/membership/protocol/view.ts';
import type { Request, SimStore } from './store.ts';

export type What =
  | { readonly kind: 'request'; readonly request: Request; readonly store: number }
  | {
      readonly kind: 'answer';
      readonly request: Request['kind'];
      readonly input: Input;
      readonly store: number;
    }
  | { readonly kind: 'alarm'; readonly alarm: number }
  | { readonly kind: 'wish seen'; readonly view: number }
  /** The member has computed its part of an operation, and starts it. */
  | { readonly kind: 'start'; readonly group: number; readonly op: number }
  | { readonly kind: 'op ends'; readonly group: number; readonly op: number }
  | { readonly kind: 'op is late'; readonly group: number; readonly op: number }
  | { readonly kind: 'connected'; readonly group: number }
  | { readonly kind: 'connecting is late'; readonly group: number }
  | {
      readonly kind: 'error';
      readonly group: number;
      readonly failure: string;
      readonly lost: Report['unreachable'];
    }
  | { readonly kind: 'store is lost'; readonly store: number }
  | Fault;

export type Fault =
  | { readonly kind: 'start process'; readonly slot: number | null }
  | { readonly kind: 'kill' }
  | { readonly kind: 'stop'; readonly forMs: number }
  | { readonly kind: 'leave' }
  | { readonly kind: 'false alarm'; readonly peer: number };

export interface Event {
  readonly atMs: number;
  /** Index of the member to which it happens. */
  readonly member: number;
  readonly what: What;
}

export type Status =
  | 'running'
  | 'killed'
  | 'finished'
  | 'left'
  | 'left out'
  | 'job ended'
  | 'too few'
  | 'no store';

/** The averages of a step: in which view and from which state they were computed. */
export type Content = string;

export interface SimMember {
  readonly wish: Wish;
  readonly host: number;
  /** Host of the store that it uses. */
  store: number;
  machine: Machine;
  status: Status;
  ending: string | null;
  stoppedUntilMs: number;
  alarm: number;
  watchedView: number | null;
  watchedOver: number | null;
  watchedWish: number | null;
  hasUnreadWish: boolean;
  wantsToLeave: boolean;
  isAsking: boolean;
  /** Number of the group to which it belongs or connects; null between views. */
  group: number | null;
  op: number;
  /** The contents of the steps that it has applied, from `base` on. */
  base: number;
  steps: Content[];
  averages: Content | null;
  hasState: boolean;
  /** When the view ended for it, to measure a change. */
  endedAtMs: number | null;
}

export interface SimGroup {
  readonly view: View;
  readonly members: readonly number[];
  readonly calls: Set<number>;
  /** For each operation, the members that have started it. */
  readonly started: Set<number>[];
  /** The votes in which a member asked for a change of the view. */
  readonly changes: Set<number>;
  isBroken: boolean;
}

export interface Timing {
  /** Milliseconds that a message takes, that a store operation takes, and that a member computes for one step. */
  readonly messageMs: () => number;
  readonly serviceMs: number;
  readonly computeMs: () => number;
  readonly noticeMs: () => number;
  /** When the launcher says that a process has ended; null if it does not. */
  readonly endedMs: () => number | null;
  readonly connectMs: number;
  /** How long the store may take for an answer. */
  readonly storeMs: number;
}

/** A host: its store, to which the job can move if it is not the one that it has. */
export interface SimHost {
  readonly store: SimStore;
  isLost: boolean;
}

export interface WorldOptions {
  readonly settings: Settings;
  readonly patience: Patience;
  readonly timing: Timing;
  /** Number of steps after which a member finishes. */
  readonly target: number;
  /** Number of hosts. With one, its store is all there is. */
  readonly hosts?: number;
}
