// Computes the next view from the one that has ended and from the knowledge about its members. Pure: the same knowledge
// gives the same view on every member.
//
// Whether the step in flight is final follows from two facts. The vote that ends a step is a reduction over all
// members, which each of them starts when all its averages are complete. So if one member has applied the averages of a
// step, all members of that view hold them, and the survivors commit. If no survivor has applied them, either all
// survivors hold them, and commit as well, or no survivor has changed anything, and they redo the step. Each view takes
// the decision again from the reports, so the death of another survivor in between does not lose the step.
import { isHopeless, quorumsOf, suffices } from './quorum.ts';
import { fewestToRemove } from './reachable.ts';
import * as sentences from './sentences.ts';
import type { Decision, Member, Quorum, RepeatedFailure, Report, View, Wish } from './view.ts';

export interface NumberedWish {
  readonly number: number;
  /** Null if the process has not written it yet. */
  readonly wish: Wish | null;
}

/** The documents that a member has read in the store after the end of a view. */
export interface Knowledge {
  readonly reports: readonly Report[];
  /** All wishes that the view has not read, in order. */
  readonly wishes: readonly NumberedWish[];
  /** Ids of the members, and of the authors of wishes, whose processes have certainly ended. */
  readonly ended: ReadonlySet<string>;
  /** Milliseconds since the view ended for the member that decides, by its own clock. */
  readonly forMs: number;
}

export interface Rules {
  /**
   * Minimum number of members of a view. A view at the end of the training may have fewer, because they only finish.
   */
  readonly min: number;
  /** Milliseconds to wait, after a failure, for members that have not reported. */
  readonly settleMs: number;
  /** The same after a vote that changed the view: all members are known to be alive. */
  readonly stallMs: number;
  /** Milliseconds that the remaining members wait for others if they are fewer than `min`. */
  readonly joinTimeoutMs: number;
  /** Number of times that the store had moved when the members began to use it. */
  readonly epoch: number;
}

export type Outcome =
  | { readonly kind: 'view'; readonly view: View }
  /** There is no next view yet; the decision changes after `forMs` at the latest. `missing` are ids of members. */
  | { readonly kind: 'wait'; readonly forMs: number; readonly missing: readonly string[] };

/** Failures of the same kind at one step after which the job ends. */
const mostRepeats = 3;
/** Milliseconds that members without a quorum wait for others, which may still move to their store. */
const minorityMs = 10_000;
/** Limit of the longer wait if fewer members have reported than are missing. */
const longestSettlingMs = 5_000;

export function decide(view: View, knowledge: Knowledge, rules: Rules): Outcome {
  const { forMs } = knowledge;
  const reports = latest(view, knowledge.reports);
  const wishes = lastOfEachSlot(knowledge);
  const gone = goneMembers(view, knowledge.ended, wishes, reports);
  const missing = view.members.filter(({ id }) => !reports.has(id) && !gone.has(id)).map(({ id }) => id);
  const hasFailed = [...reports.values()].some(({ failure }) => failure !== null);
  const patienceMs = hasFailed ? settling(reports.size, missing.length, rules) : rules.stallMs;
  if (missing.length > 0 && forMs < patienceMs) return { kind: 'wait', forMs: patienceMs - forMs, missing };
  // A member that leaves may have ended after its report, which states the steps that it has applied. It does not count
  // as lost.
  const leaving = view.members.filter(({ id }) => reports.get(id)?.isLeaving === true);
  const staying = view.members.filter(({ id }) => reports.get(id)?.isLeaving === false && !gone.has(id));
  const kept = mutuallyReachable(staying, reports);
  const members = withSlots(kept, wishes);
  const wasConnected = [...reports.values()].some((report) => report.wasConnected);
  const quorums = quorumsOf(view, wasConnected);
  const next = compose(view, { ...knowledge, kept, leaving, members, reports, quorums }, rules.epoch);
  const certain = certainlyGone(view, knowledge.ended, wishes, reports);
  for (const { id } of leaving) certain.add(id);
  if (next.ended === null && !suffices(quorums, kept, certain, rules.epoch)) {
    const canChange = missing.length > 0 && !isHopeless(quorums, rules.epoch);
    if (canChange && forMs < minorityMs) return { kind: 'wait', forMs: minorityMs - forMs, missing };
    const ended = sentences.minority(kept.length, view.members.length, rules.epoch !== view.epoch);
    return { kind: 'view', view: { ...next, members: kept, joined: [], ended } };
  }
  const isOver = leaving.some(({ id }) => endsAt(next.finalSteps, reports.get(id)!));
  if (next.ended === null && members.length < rules.min && !isOver) {
    if (forMs < rules.joinTimeoutMs) return { kind: 'wait', forMs: rules.joinTimeoutMs - forMs, missing: [] };
    return {
      kind: 'view',
      view: { ...next, ended: sentences.tooFewLeft(members.length, rules.min, rules.joinTimeoutMs) },
    };
  }
  return { kind: 'view', view: next };
}

/**
 * Returns how long to wait for members after a failure. If most are missing, waits longer, so that a few members that
 * notice a failure first, such as a device that hangs, do not exclude the others, which notice it later.
 */
function settling(reported: number, missing: number, { settleMs }: Rules): number {
  return missing > reported ? Math.max(settleMs, Math.min(4 * settleMs, longestSettlingMs)) : settleMs;
}

/** Returns the latest report of each member of the view that has reported. */
function latest(view: View, reports: readonly Report[]): ReadonlyMap<string, Report> {
  const ids = new Set(view.members.map(({ id }) => id));
  return new Map(
    reports.flatMap((report) => (ids.has(report.member) ? [[report.member, report] as const] : [])),
  );
}

/**
 * Returns the wishes of living processes. If several have the same slot, returns the last one, whose process has
 * replaced the others.
 */
export function lastOfEachSlot({ wishes, ended }: Pick<Knowledge, 'wishes' | 'ended'>): Wish[] {
  const all = wishes.flatMap(({ wish }) => (wish === null ? [] : [wish]));
  return all.filter(
    ({ id, slot }, index) =>
      !ended.has(id) && (slot === null || !all.slice(index + 1).some((later) => later.slot === slot)),
  );
}

/**
 * Returns the members that need not be waited for: their launcher, or a member on the same host, has reported that they
 * have ended, or their launcher has started other processes in their slots. Reports that a connection to a member was
 * lost do not count: all members report the same root cause, and the one that noticed it may itself be cut off.
 */
function goneMembers(
  view: View,
  ended: ReadonlySet<string>,
  wishes: readonly Wish[],
  reports: ReadonlyMap<string, Report>,
): ReadonlySet<string> {
  const gone = certainlyGone(view, ended, wishes, reports);
  const replaced = new Map(wishes.map(({ slot, id }) => [slot, id]));
  for (const { id, slot } of view.members) {
    const successor = replaced.get(slot);
    if (successor !== undefined && successor !== id) gone.add(id);
  }
  return gone;
}

/**
 * Returns the members whose processes have certainly ended. A launcher starts another process in a slot when the
 * previous one has ended; on another host it may also do so when it has only lost contact with the first one.
 */
function certainlyGone(
  view: View,
  ended: ReadonlySet<string>,
  wishes: readonly Wish[],
  reports: ReadonlyMap<string, Report>,
): Set<string> {
  const gone = new Set(ended);
  for (const { unreachable } of reports.values()) {
    for (const { member, isCertain } of unreachable) if (isCertain) gone.add(member);
  }
  for (const { id, slot, host } of view.members) {
    if (wishes.some((wish) => wish.slot === slot && wish.host === host && wish.id !== id)) gone.add(id);
  }
  return gone;
}

/**
 * Returns a largest set of members that reach each other. If a member has lost another one that has nevertheless
 * reported, perhaps only their connection was lost: the next view tries again, and only members that could not connect
 * count as unreachable.
 */
function mutuallyReachable(members: readonly Member[], reports: ReadonlyMap<string, Report>): Member[] {
  const indexOf = new Map(members.map(({ id }, index) => [id, index]));
  const cutOf = (rows: readonly Member[]) =>
    rows.flatMap(({ id }): [number, number][] => {
      const { unreachable, wasConnected } = reports.get(id)!;
      if (wasConnected) return [];
      return unreachable.flatMap(({ member }): [number, number][] => {
        const other = indexOf.get(member);
        return other === undefined ? [] : [[indexOf.get(id)!, other]];
      });
    });
  const removed = new Set(fewestToRemove(members.length, cutOf(members)));
  const kept = members.filter((_, index) => !removed.has(index));
  const hasState = ({ id }: Member) => reports.get(id)!.hasState;
  if (kept.some(hasState) || !members.some(hasState)) return kept;
  // No member of this set has the state of the training, so choose among the members that have it.
  return mutuallyReachable(members.filter(hasState), reports);
}

/** Returns the kept members and those that join, in order of slot. */
export function withSlots(kept: readonly Member[], wishes: readonly Wish[]): Member[] {
  const taken = new Set(kept.map(({ slot }) => slot));
  for (const { slot } of wishes) if (slot !== null) taken.add(slot);
  const members = [...kept];
  let lowest = 0;
  for (const wish of wishes) {
    if (wish.slot === null) while (taken.has(lowest)) lowest++;
    const slot = wish.slot ?? lowest;
    taken.add(slot);
    members.push({ ...wish, slot });
  }
  return members.sort((a, b) => a.slot - b.slot);
}

interface Parts extends Knowledge {
  readonly kept: readonly Member[];
  readonly leaving: readonly Member[];
  readonly members: readonly Member[];
  readonly quorums: readonly Quorum[];
}

function compose(
  view: View,
  parts: Omit<Parts, 'reports'> & { readonly reports: ReadonlyMap<string, Report> },
  epoch: number,
): View {
  const { kept, leaving, members, reports, wishes } = parts;
  const keptReports = kept.map(({ id }) => reports.get(id)!);
  const step = resolve(
    view,
    keptReports,
    leaving.map(({ id }) => reports.get(id)!),
  );
  const stays = new Set(members.map(({ id }) => id));
  const left = leaving.map(({ id }) => id);
  const lost = view.members.filter(({ id }) => !stays.has(id) && !left.includes(id));
  const failure = repeated(view, lost, [...reports.values()], step.finalSteps);
  const stateless = new Set(keptReports.filter(({ hasState }) => !hasState).map(({ member }) => member));
  const keptIds = new Set(kept.map(({ id }) => id));
  return {
    number: view.number + 1,
    epoch,
    members,
    joined: members.filter(({ id }) => stateless.has(id) || !keptIds.has(id)).map(({ id }) => id),
    lost: lost.map(({ id }) => id),
    left,
    finalSteps: step.finalSteps,
    decision: step.decision,
    unsettled: parts.quorums,
    wishes: wishes.reduce((most, { number }) => Math.max(most, number), view.wishes),
    unread: wishes.filter(({ wish }) => wish === null).map(({ number }) => number),
    failure,
    isOver: step.isOver,
    ended:
      step.ended ??
      (failure !== null && failure.times >= mostRepeats ? sentences.repeats(failure, step.finalSteps) : null),
  };
}

/** Returns whether a leaving member has finished the training with the last final step. */
const endsAt = (last: number, { isDone, finalSteps }: Report): boolean => isDone && finalSteps === last;

interface Step {
  readonly finalSteps: number;
  readonly decision: Decision;
  readonly ended: string | null;
  readonly isOver: boolean;
}

/** Decides about the step in flight, from the reports of the remaining and of the leaving members. */
function resolve(view: View, kept: readonly Report[], leaving: readonly Report[]): Step {
  const able = kept.filter(({ hasState }) => hasState);
  const witnesses = [...able, ...leaving.filter(({ hasState }) => hasState)];
  const finalSteps = witnesses.reduce((most, report) => Math.max(most, report.finalSteps), view.finalSteps);
  const redo: Step = { finalSteps, decision: 'redo', ended: null, isOver: false };
  const isOver = leaving.some((report) => endsAt(finalSteps, report));
  if (able.length === 0 && isOver) return { ...redo, isOver, ended: sentences.over(finalSteps) };
  if (kept.length === 0)
    return {
      ...redo,
      ended: leaving.length > 0 ? sentences.allLeft(finalSteps) : sentences.allLost(finalSteps),
    };
  if (able.length === 0) return finalSteps === 0 ? redo : { ...redo, ended: sentences.allLost(finalSteps) };
  const behind = able.filter((report) => report.finalSteps < finalSteps);
  const unable = behind.find((report) => report.finalSteps < finalSteps - 1 || !report.isComplete);
  if (unable !== undefined) return { ...redo, ended: sentences.contradiction(unable, finalSteps) };
  if (behind.length > 0) return { ...redo, decision: 'commit' };
  if (able.every(({ isComplete }) => isComplete))
    return { ...redo, finalSteps: finalSteps + 1, decision: 'commit' };
  return redo;
}

/**
 * Counts how often the same failure has ended a view at the same step. Ignores lost members of a view that was never
 * connected.
 */
function repeated(
  view: View,
  lost: readonly Member[],
  reports: readonly Report[],
  finalSteps: number,
): RepeatedFailure | null {
  const before = finalSteps === view.finalSteps ? view.failure : null;
  const isConnected = reports.some(({ wasConnected }) => wasConnected);
  if (!isConnected && lost.length > 0) return before;
  const what =
    lost.length > 0
      ? `the loss of ${lost.length === 1 ? 'slot' : 'slots'} ${lost.map(({ slot }) => slot).join(', ')}`
      : isConnected
        ? reports.find(({ failure }) => failure !== null)?.failure
        : 'the members could not connect';
  if (what === undefined || what === null) return null;
  return { what, times: before?.what === what ? before.times + 1 : 1 };
}

export interface FoundingRules {
  readonly size: number;
  readonly min: number;
  readonly lastCallMs: number;
  /** Ids of the founding members by slot, if a launcher names them; else none. */
  readonly founders: readonly string[];
}

/**
 * Returns the first view of a job, or null while members are missing. The view exists when `size` processes have
 * written a wish to join (founding members that have ended count as present), or when at least `min` have done so for
 * `lastCallMs` milliseconds. `forMs` is the time for which at least `min` have.
 */
export function found(
  knowledge: Pick<Knowledge, 'wishes' | 'ended' | 'forMs'>,
  rules: FoundingRules,
): View | null {
  const members = withSlots([], lastOfEachSlot(knowledge));
  const isLate = knowledge.forMs >= rules.lastCallMs;
  const slots = new Set(members.map(({ slot }) => slot));
  const absent = rules.founders.filter((id, slot) => knowledge.ended.has(id) && !slots.has(slot)).length;
  const areAll = members.length + absent >= rules.size;
  if (members.length < rules.min || (!areAll && !isLate)) return null;
  return {
    number: 0,
    epoch: 0,
    members,
    joined: members.map(({ id }) => id),
    lost: [],
    left: [],
    finalSteps: 0,
    decision: 'redo',
    unsettled: [],
    wishes: knowledge.wishes.reduce((most, { number }) => Math.max(most, number), 0),
    unread: knowledge.wishes.filter(({ wish }) => wish === null).map(({ number }) => number),
    failure: null,
    ended: null,
    isOver: false,
  };
}
