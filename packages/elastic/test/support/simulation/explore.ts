// Executes the messages of a small world in every order: 3 members, 2 steps, some faults at any moment. A fault is a
// kill, a false alarm about a member that is alive, or a message that takes longer than a deadline. A state that was
// seen before is not continued, so that the search ends.
//
// Otherwise time passes only when no message is under way, to the next deadline. Messages between one member and the
// store keep their order, as on a connection. Some events happen at once, because no other member can tell when they
// did: the start of an operation, a watch, the new head of the chain, and the answer to a read.
import { createHash } from 'node:crypto';
import type { Event, WorldOptions } from './parts.ts';
import { World } from './world.ts';

export interface Found {
  readonly states: number;
  /** Number of states in which all members have ended. */
  readonly ends: number;
  readonly isComplete: boolean;
}

interface State {
  readonly world: World;
  readonly pending: readonly Event[];
  readonly faults: number;
}

const options: WorldOptions = {
  settings: { size: 3, min: 1, lastCallMs: 10, joinTimeoutMs: 100, founders: [] },
  patience: { settleMs: 20, stallMs: 20 },
  timing: {
    messageMs: () => 0,
    serviceMs: 0,
    computeMs: () => 0,
    noticeMs: () => 0,
    endedMs: () => 0,
    connectMs: 40,
    storeMs: 1_000,
  },
  target: 2,
};

export interface Limits {
  readonly mostStates: number;
  readonly mostFaults: number;
  /** Whether kills are the only faults. */
  readonly onlyKills?: boolean;
}

export function explore({ mostStates, mostFaults, onlyKills = false }: Limits): Found {
  const seen = new Set<string>();
  let ends = 0;
  const stack: State[] = [founded()];
  while (stack.length > 0) {
    const state = stack.pop()!;
    const moves = movesOf(state, mostFaults, onlyKills);
    if (moves.length === 0) {
      checkEnd(state.world);
      ends++;
      continue;
    }
    for (const move of moves) {
      const next = after(state, move);
      const key = createHash('sha1').update(keyOf(next)).digest('base64');
      if (seen.has(key)) continue;
      if (seen.size >= mostStates) return { states: seen.size, ends, isComplete: false };
      seen.add(key);
      stack.push(next);
    }
  }
  return { states: seen.size, ends, isComplete: true };
}

/** Returns the world in which three members are connected in view 0 and have their state. */
function founded(): State {
  const pending: Event[] = [];
  const world = new World(options, (event) => pending.push(event));
  for (let slot = 0; slot < 3; slot++) world.startProcess(slot);
  const isTraining = () =>
    world.members.every(({ machine, hasState }) => machine.phase === 'training' && hasState);
  while (!isTraining()) {
    const index = pending.findIndex((event) => !isDeadline(event));
    const [event] = pending.splice(Math.max(index, 0), 1);
    if (event === undefined) throw new Error('the members do not found the job');
    world.nowMs = Math.max(world.nowMs, event.atMs);
    world.execute(event);
  }
  return { world, pending: pending.filter((event) => isAlive(world, event)), faults: 0 };
}

/** Returns whether an event can still change something. */
function isAlive(world: World, { member, what }: Event): boolean {
  if (what.kind === 'request') return true;
  const self = world.members[member]!;
  if (self.status !== 'running') return false;
  const { phase, view } = self.machine;
  switch (what.kind) {
    case 'alarm':
      return what.alarm === self.alarm && phase !== 'training';
    case 'op is late':
      return self.group === what.group && self.op === what.op && phase === 'training';
    case 'connecting is late':
      return self.group === what.group && phase === 'connecting';
    case 'op ends':
      return self.group === what.group && self.op === what.op;
    case 'start':
    case 'error':
    case 'connected':
      return self.group === what.group;
    case 'answer':
      if (what.input.kind === 'over') return phase === 'connecting';
      if (what.input.kind === 'view') return what.input.view.number > view!.number && phase !== 'training';
      return what.input.kind !== 'read' || (what.input.reading.view === view!.number && phase !== 'training');
    default:
      return true;
  }
}

const isDeadline = ({ what: { kind } }: Event) =>
  kind === 'alarm' || kind === 'op is late' || kind === 'connecting is late';

const isImmediate = ({ what }: Event) =>
  what.kind === 'start' ||
  (what.kind === 'answer' && what.input.kind === 'read') ||
  (what.kind === 'request' && (what.request.kind.startsWith('watch') || what.request.kind === 'announce'));

interface Move {
  readonly event: Event;
  readonly isFault: boolean;
}

/** Returns the events that may happen next. */
function movesOf({ world, pending, faults }: State, mostFaults: number, onlyKills: boolean): Move[] {
  const moves: Move[] = [];
  const deadlines = pending.filter(isDeadline);
  const messages = pending.filter((event) => !isDeadline(event));
  const busy = new Set<string>();
  for (const event of messages) {
    const { kind } = event.what;
    const channel = `${kind} ${event.member}`;
    if ((kind === 'request' || kind === 'answer') && busy.has(channel)) continue;
    busy.add(channel);
    moves.push({ event, isFault: false });
  }
  if (messages.length === 0 && deadlines.length > 0) {
    moves.push({ event: deadlines.reduce((a, b) => (b.atMs < a.atMs ? b : a)), isFault: false });
  }
  if (faults >= mostFaults) return moves;
  if (messages.length > 0 && !onlyKills) {
    for (const event of deadlines) if (event.what.kind === 'alarm') moves.push({ event, isFault: true });
  }
  world.members.forEach(({ status, machine }, member) => {
    if (status !== 'running') return;
    const fault = (what: Event['what']) =>
      moves.push({ event: { atMs: world.nowMs, member, what }, isFault: true });
    fault({ kind: 'kill' });
    if (machine.phase === 'training' && !onlyKills) fault({ kind: 'false alarm', peer: (member + 1) % 3 });
  });
  return moves;
}

function after(state: State, { event: move, isFault }: Move): State {
  let pending: Event[] = state.pending.filter((event) => event !== move);
  const world = state.world.fork((event) => pending.push(event));
  world.nowMs = Math.max(world.nowMs, move.atMs);
  world.execute(move);
  for (;;) {
    pending = pending.filter((event) => isAlive(world, event));
    const immediate = pending.find(isImmediate);
    if (immediate === undefined) break;
    pending.splice(pending.indexOf(immediate), 1);
    world.execute(immediate);
  }
  return { world, pending, faults: state.faults + Number(isFault) };
}

function keyOf({ world, pending, faults }: State): string {
  const { nowMs } = world;
  // Beyond the longest deadline, more time changes nothing.
  const relative = (ms: number) => Math.min(Math.round(Math.abs(ms - nowMs)), 200);
  return JSON.stringify([
    world.members.map(({ machine, alarm: _, endedAtMs: __, ...rest }) => [
      rest,
      rest.status === 'running' ? machine.describe(nowMs) : null,
    ]),
    world.store.views.map(({ members, decision, finalSteps }) => [
      members.map(({ id }) => id),
      decision,
      finalSteps,
    ]),
    world.store.reports.map((each) => each.map((report) => JSON.stringify(report)).sort()),
    [...world.store.ended].sort(),
    world.groups.map(({ calls, started, changes, isBroken }) => [
      [...calls].sort(),
      started.map((each) => [...each].sort()),
      [...changes],
      isBroken,
    ]),
    pending
      .map(({ atMs, member, what }) =>
        JSON.stringify([member, isDeadline({ atMs, member, what }) ? [what.kind, relative(atMs)] : what]),
      )
      .sort(),
    faults,
  ]);
}

function checkEnd(world: World): void {
  for (const [index, { status, ending, machine }] of world.members.entries()) {
    const where = `member ${index} (${machine.phase}, view ${machine.view?.number})`;
    if (status === 'running') throw new Error(`${where} hangs`);
    if (ending?.includes('expected at most one step')) throw new Error(`${where}: ${ending}`);
  }
}
