// Runs one launcher of a job: joins the job, starts and stops the ranks of its host when ordered, and reports their
// outcomes. The coordinator makes all decisions; see coordinator.ts.

import { type Store, StoreError } from '@ringwise/store';
import type { Job } from '../agent/agent.ts';
import type { RankOutcome } from '../agent/rank-process.ts';
import type { SlotAgent } from '../agent/slot-agent.ts';
import { jobIsElastic, storeLost } from '../errors.ts';
import { within } from '../within.ts';
import { clockOffset, type Sample } from './clock-offset.ts';
import { boxOf, coordinatorBox, goodbyeMs, type KeepAlive, pulseOf } from './coordinate.ts';
import { OwnSlots } from './elastic/own-slots.ts';
import { inbox, Outbox } from './mailbox.ts';
import {
  type AdmittedOrder,
  endedReport,
  type Member,
  type Order,
  type Outcome,
  parseOrder,
  type Report,
  type SlotOrder,
  type StartOrder,
  stoppedBy,
  toSent,
} from './messages.ts';
import * as words from './outcomes.ts';

export interface ParticipantOptions {
  readonly member: Member;
  /** Connection to the store, used only by this launcher. */
  readonly store: Store;
  /** Address of the store, to show to users. */
  readonly where: string;
  /** Null for the launcher that keeps the store: it shares the store's clock and ends with it. */
  readonly keepAlive: KeepAlive | null;
  /** Prints a line for the user. */
  readonly say: (text: string) => void;
  /**
   * Starts the ranks of this host. `onFailure` is called as soon as one of them fails. `clockOffsetNs` is
   * added to this host's clock to get the clock of the host with the store.
   */
  readonly start: (
    order: StartOrder,
    onFailure: (isSecondary: boolean) => void,
    clockOffsetNs: bigint,
  ) => Promise<Job>;
  /** Runs the slots of this host in an elastic job; absent in others. */
  readonly slots?: SlotHosting | undefined;
  /** Maximum number of restarts of a slot while no coordinator decides. Default: none. */
  readonly maxRestarts?: number;
  /**
   * Called when the store is lost. Returns whether the ranks of this host continue, because they may move to another
   * store. Default: no.
   */
  readonly goesOn?: () => boolean;
}

/** Functions that run the slots of this launcher's host in an elastic job. */
export interface SlotHosting {
  /** Opens the agent. It calls `tell` with the report of each process that has ended. */
  readonly open: (tell: TellEnd, clockOffsetNs: bigint) => Promise<SlotAgent>;
  /** Starts the process of a slot. */
  readonly start: (agent: SlotAgent, order: SlotOrder) => Promise<void>;
  /**
   * Finds the store to which the ranks have moved, and reports there that process `id` has ended; start() uses that
   * store from then on. Resolves with the number of final steps; null if no store is found, or the job has ended.
   * Rejects with the reason of `signal`.
   */
  readonly follow: (id: string, ending: string, signal: AbortSignal) => Promise<number | null>;
}

export type TellEnd = (slot: number, incarnation: number, outcome: RankOutcome, step: number | null) => void;

/** The processes that this launcher has started. */
interface HostRanks {
  readonly stop: (signal: NodeJS.Signals) => void;
  readonly interrupt: (signal: NodeJS.Signals) => void;
  readonly ended: () => Promise<void>;
}

export interface Participant {
  /**
   * Resolves with the outcome of the job. Rejects with ERR_LAUNCH_STORE if the store is lost, and with the error of
   * `start` if it rejects; the ranks have been stopped by then.
   */
  readonly outcome: Promise<Outcome>;
  /** Whether this launcher has slots of an elastic job. */
  readonly hasSlots: () => boolean;
  /** Stops this launcher for the user: gracefully the first time, immediately the second time. */
  readonly interrupt: (signal: NodeJS.Signals) => void;
}

const clockSamples = 5;

export function takePart(options: ParticipantOptions): Participant {
  const { member, store, keepAlive } = options;
  const { id } = member;
  const outbox = new Outbox(store);
  const tell = (report: Report) => void outbox.post(coordinatorBox, report);
  const lost = new AbortController();
  let ranks: HostRanks | undefined;
  let agent: SlotAgent | undefined;
  /** The last order for each slot, and the outcome of its last process. */
  const orders = new Map<number, SlotOrder>();
  const ends = new Map<number, Parameters<TellEnd>>();
  /** Decides for the slots after the coordinator is lost; undefined before. */
  let own: OwnSlots | undefined;
  const beganNs = process.hrtime.bigint();
  let hasJoined = false;
  /** The coordinator's clock minus this host's clock. */
  let offsetNs = 0n;
  let stopping: NodeJS.Signals | null = null;
  /** The second signal, which ends the ranks at once, also those that are still being started. */
  let killing: NodeJS.Signals | null = null;

  async function follow(): Promise<Outcome> {
    const orders = inbox(store, boxOf(id), parseOrder, lost.signal);
    if (keepAlive) offsetNs = await measureClock(tell, id, orders);
    // The coordinator does not know this launcher yet, so it needs no report of the stop.
    if (stopping) return stoppedBy(stopping, id);
    hasJoined = true;
    tell({ kind: 'join', member });
    for (;;) {
      const { value: order } = await orders.next();
      if (order.kind === 'start') await startRound(order);
      else if (order.kind === 'slot') await startSlot(order);
      else if (order.kind === 'admitted') return await takeOver(order);
      else if (order.kind === 'end-slot') agent?.kill(order.slot, order.incarnation);
      else if (order.kind === 'wait') options.say(order.text);
      else if (order.kind === 'stop') ranks?.stop('SIGTERM');
      else if (order.kind === 'finish') {
        await within(goodbyeMs, outbox.post(coordinatorBox, { kind: 'bye', id } satisfies Report));
        await stopRanks();
        return order.outcome;
      }
    }
  }

  async function startRound(order: StartOrder): Promise<void> {
    const { round } = order;
    const onFailure = (isSecondary: boolean) => tell({ kind: 'failing', id, round, isSecondary });
    const job = await options.start(order, onFailure, offsetNs);
    ranks = {
      ...job,
      ended: async () => {
        await job.done;
      },
    };
    passOn(job);
    void job.done.then(({ outcomes }) => tell(endedReport(id, round, outcomes, offsetNs)));
  }

  /** Passes on the signals that have arrived while the ranks were being started. */
  function passOn(started: Pick<HostRanks, 'interrupt'>): void {
    for (const signal of [stopping, killing]) if (signal !== null) started.interrupt(signal);
  }

  async function startSlot(order: SlotOrder): Promise<void> {
    if (!options.slots) throw jobIsElastic(options.where);
    if (!agent) {
      const end: TellEnd = (slot, incarnation, outcome, step) => {
        ends.set(slot, [slot, incarnation, outcome, step]);
        own?.handle(slot, incarnation, outcome, step);
        tell({ kind: 'slot-ended', id, slot, incarnation, outcome: toSent(outcome, offsetNs), step });
      };
      agent = await options.slots.open(end, offsetNs);
      ranks = agent;
      passOn(agent);
    }
    orders.set(order.slot, order);
    await options.slots.start(agent, order);
  }

  /** Starts the processes of this host in a job in which each launcher decides for its own slots. */
  async function takeOver({ slots }: AdmittedOrder): Promise<Outcome> {
    for (const slot of slots) await startSlot(slot);
    const outcome = await goOn();
    await within(goodbyeMs, outbox.post(coordinatorBox, { kind: 'bye', id } satisfies Report));
    return outcome;
  }

  /** Decides for the slots of this host until none of its processes is left. */
  async function goOn(): Promise<Outcome> {
    const { say, maxRestarts = 0 } = options;
    const { start, follow } = options.slots!;
    own = new OwnSlots(orders, { maxRestarts, say, follow, start: (order) => start(agent!, order) });
    if (stopping !== null) own.stop();
    for (const end of ends.values()) own.handle(...end);
    try {
      await own.ended;
    } finally {
      agent!.stop('SIGTERM');
      await agent!.ended();
    }
    if (stopping !== null) return stoppedBy(stopping, id);
    const outcomes = [...ends.values()].map(([, , outcome]) => outcome);
    return words.withoutStore(outcomes, beganNs, id);
  }

  async function stopRanks(): Promise<void> {
    ranks?.stop('SIGTERM');
    await ranks?.ended();
  }

  async function run(): Promise<Outcome> {
    const pulse = keepAlive && beat(store, id, keepAlive, () => lost.abort());
    try {
      return await follow();
    } catch (cause) {
      const isStoreLost = lost.signal.aborted || StoreError.isInstance(cause);
      if (isStoreLost && agent && own === undefined && options.goesOn?.()) {
        options.say(words.storeLost(options.where));
        return await goOn();
      }
      await stopRanks();
      if (!isStoreLost) throw cause;
      throw storeLost(options.where, cause);
    } finally {
      clearInterval(pulse ?? undefined);
      agent?.close();
    }
  }

  return {
    outcome: run(),
    hasSlots: () => agent !== undefined,
    interrupt: (signal) => {
      const atNs = `${process.hrtime.bigint() + offsetNs}`;
      if (!stopping && hasJoined) tell({ kind: 'leaving', id, signal, atNs });
      if (stopping === null) stopping = signal;
      else killing ??= signal;
      own?.stop();
      ranks?.interrupt(signal);
    },
  };
}

/**
 * Asks for the coordinator's time a few times. Before this launcher has joined, no other message is expected, so others
 * are dropped.
 */
async function measureClock(
  tell: (report: Report) => void,
  id: string,
  orders: AsyncGenerator<Order, never>,
): Promise<bigint> {
  const samples: Sample[] = [];
  while (samples.length < clockSamples) {
    const sentNs = process.hrtime.bigint();
    tell({ kind: 'clock', id });
    const { value: order } = await orders.next();
    const receivedNs = process.hrtime.bigint();
    if (order.kind === 'time') samples.push({ sentNs, otherNs: BigInt(order.ns), receivedNs });
  }
  return clockOffset(samples);
}

/**
 * Sends keep-alive signals. Calls `onLost` when the store has failed to answer as many in a row as a launcher may miss
 * before the coordinator counts it as lost.
 */
function beat(
  store: Store,
  id: string,
  { everyMs, attempts }: KeepAlive,
  onLost: () => void,
): NodeJS.Timeout {
  let unanswered = 0;
  return setInterval(() => {
    if (++unanswered > attempts) return onLost();
    store.add(pulseOf(id), 1).then(() => {
      unanswered = 0;
    }, onLost);
  }, everyMs);
}
