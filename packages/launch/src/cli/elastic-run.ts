// Runs the slots of this launcher's host in an elastic job.

import type { Store } from '@ringwise/store';
import { type Machine, planRank, type RankBinding } from '../agent/plan.ts';
import type { RankOptions } from '../agent/rank-process.ts';
import { openSlotAgent } from '../agent/slot-agent.ts';
import type { Monitor } from '../monitor/monitor.ts';
import type { ElasticLimits } from '../rendezvous/elastic/elastic-coordinator.ts';
import { endedKey } from '../rendezvous/elastic/elastic-keys.ts';
import { answerMs } from '../rendezvous/elastic/moved-store.ts';
import type { RankStores } from '../rendezvous/elastic/rank-stores.ts';
import type { Member, SlotOrder } from '../rendezvous/messages.ts';
import type { Meeting } from '../rendezvous/rendezvous.ts';
import type { SlotHosting } from '../rendezvous/take-part.ts';
import type { LogFiles } from '../report/log-files.ts';
import { within } from '../within.ts';
import type { Program } from './program.ts';
import type { RunOptions } from './run-options.ts';

/** Facts about one launcher that stay the same in all rounds of its job. */
export interface Setup {
  readonly options: RunOptions;
  /** The signals that end the job. */
  readonly signals: readonly NodeJS.Signals[];
  readonly machine: Machine;
  readonly program: Program;
  readonly member: Member;
  readonly bindings: readonly RankBinding[];
  readonly monitor: Monitor;
  /** Aborted by the first signal to this launcher. */
  readonly ending: AbortController;
}

export interface SlotSetup extends Setup {
  readonly meeting: Meeting;
  readonly logs: LogFiles;
  readonly elastic: ElasticLimits;
  /** The keys of the job in the store of its ranks. */
  readonly ranks: Store;
  /** Follows that store from host to host; null on the launcher that keeps it. */
  readonly stores: RankStores | null;
  /** Address of this launcher's standby store; null if the job has one host only. */
  readonly standby: string | null;
}

/** Returns the targets of the output and the events of this host's ranks. */
export function outputsOf({ write, observe, showProgress, say }: Monitor): RankOptions {
  return {
    ...(write && { write }),
    ...(observe && { observe }),
    ...(showProgress && { showProgress }),
    warn: say,
  };
}

export function slotHosting(setup: SlotSetup): SlotHosting {
  const { options, monitor, stores, member } = setup;
  const ranks = () => stores?.ranks ?? setup.ranks;
  const { shutdownTimeoutMs, graceMs } = options;
  /** The step that each slot has last reported; no entry for a slot that has not reported since its last start. */
  const steps = new Map<number, number>();
  return {
    open: (tell, clockOffsetNs) => {
      monitor.startSlots(clockOffsetNs);
      return openSlotAgent({
        shutdownTimeoutMs,
        graceMs,
        onExit: (slot, incarnation, ending) => {
          // Tells the other ranks at once, before they notice it themselves. If the store is lost, the job ends anyway.
          ranks()
            .set(endedKey(`${slot}.${incarnation}`), ending)
            .catch(() => {});
        },
        onEnded: (slot, incarnation, outcome) => tell(slot, incarnation, outcome, steps.get(slot) ?? null),
      });
    },
    follow: async (id, ending, signal) => {
      const isThere = (await stores?.follow(signal)) ?? false;
      if (!isThere) return null;
      await within(answerMs, ranks().set(endedKey(id), ending));
      return stores!.view!.finalSteps;
    },
    start: async (agent, order) => {
      const { slot, worldSize, groupWorldSize, why } = order;
      steps.delete(slot);
      monitor.showSlots(worldSize, groupWorldSize);
      if (why !== null) monitor.say(why);
      const outputs = outputsOf(monitor);
      const observe: NonNullable<RankOptions['observe']> = (event) => {
        if (event.kind === 'report') steps.set(event.rank, event.report.step);
        outputs.observe?.(event);
      };
      agent.start(await planSlot(setup, order), order.incarnation, {
        ...outputs,
        host: member.host,
        observe,
      });
    },
  };
}

async function planSlot(
  { options, machine, program, bindings, meeting, logs, elastic, monitor, standby, stores }: SlotSetup,
  order: SlotOrder,
) {
  const { slot, incarnation, localRank, localWorldSize, worldSize, groupRank, groupWorldSize } = order;
  const placement = { rank: slot, localRank, localWorldSize, worldSize, groupRank, groupWorldSize };
  const facts = { role: options.role, restartCount: 0, maxRestarts: options.maxRestarts };
  const rendezvous = { ...(await meeting.forRound(0)), ...stores?.movedTo };
  const extras = logs.forRank(0, localRank, monitor.say);
  const own = { slot, incarnation, minRanks: elastic.minRanks, standby };
  return planRank(placement, program, rendezvous, machine, facts, extras, bindings[localRank], own);
}
