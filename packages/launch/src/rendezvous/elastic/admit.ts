// Admits further hosts to an elastic job whose store has moved to this host.

import { type Store, StoreError } from '@ringwise/store';
import { type Coordination, clockMs, type KeepAlive, runCoordinator } from '../coordinate.ts';
import { jobKey, watchedKey } from '../job-keys.ts';
import { failed, type Outcome } from '../messages.ts';
import { keeperEnded } from '../outcomes.ts';
import { AdmittingCoordinator } from './admitting-coordinator.ts';
import { elasticStore, endedKey, openedKey } from './elastic-keys.ts';
import type { ViewFacts } from './view-facts.ts';
import { appears, textAt, type ViewWatch, watchViews } from './view-watch.ts';

export interface AdmissionOptions {
  readonly runId: string;
  readonly maxRanks: number;
  readonly keepAlive: KeepAlive;
  /** Called when the job has moved to this store, and other hosts can join. */
  readonly onMove: () => void;
  /** Receives each view that is written in this store, to show it to users. */
  readonly onView: (view: ViewFacts) => void;
  /** How long a slot counts whose launcher is silent; default as in AdmittingCoordinator. */
  readonly silentMs?: number;
}

export interface Admission {
  /** Whether the job has moved to this store. */
  readonly hasMoved: () => boolean;
  /** Tells launchers that wait for a slot the outcome of the job; `outcome` is null if it is unknown. */
  readonly close: (outcome: Outcome | null) => Promise<void>;
}

/** Waits for the job to move to this store, and admits further hosts from then on. Does not close the store. */
export function admitAfterMove(store: Store, options: AdmissionOptions): Admission {
  const ending = new AbortController();
  let admitting: Admitting | null = null;
  let views: ViewWatch | undefined;

  async function follow(): Promise<void> {
    const ranks = elasticStore(options.runId, store);
    let isOpen = false;
    while (!isOpen) isOpen = await appears(ranks, openedKey, ending.signal);
    const opened = Number(await textAt(ranks, openedKey));
    views = watchViews(ranks, (view) => {
      // The first members to move have only copied their last view. There may be too few of them to continue.
      if (view.epoch <= opened) return;
      if (admitting === null) {
        admitting = admit(store, options, view);
        publish(store, options).catch(() => {});
      } else admitting.viewed(view);
      for (const id of view.lost) void noteEnd(ranks, id);
      options.onView(view);
    });
  }

  /** Waits for a while for the launcher of a lost process to report its end. */
  async function noteEnd(ranks: Store, id: string): Promise<void> {
    try {
      if (await appears(ranks, endedKey(id), ending.signal)) admitting?.ended(id);
    } catch (error) {
      if (!ending.signal.aborted && !StoreError.isInstance(error)) throw error;
    }
  }

  const following = follow().catch((error: unknown) => {
    if (!ending.signal.aborted && !StoreError.isInstance(error)) throw error;
  });
  return {
    hasMoved: () => admitting !== null,
    close: async (outcome) => {
      ending.abort(new Error('the launcher ends'));
      await following;
      await views?.close();
      admitting?.finish(outcome ?? failed(keeperEnded));
      await admitting?.coordination.close();
    },
  };
}

interface Admitting {
  readonly coordination: Coordination;
  readonly viewed: (view: ViewFacts) => void;
  readonly ended: (id: string) => void;
  readonly finish: (outcome: Outcome) => void;
}

function admit(
  store: Store,
  { maxRanks, keepAlive, silentMs }: AdmissionOptions,
  first: ViewFacts,
): Admitting {
  let viewed: Admitting['viewed'] = () => {};
  let ended: Admitting['ended'] = () => {};
  let finish: Admitting['finish'] = () => {};
  // No launcher in this process takes part through this store.
  const coordination = runCoordinator(store, null, keepAlive, (send, advance) => {
    const coordinator = new AdmittingCoordinator(maxRanks, first, send, silentMs);
    viewed = (view) => advance(() => coordinator.viewed(view, clockMs()));
    ended = (id) => advance(() => coordinator.ended(id, clockMs()));
    finish = (outcome) => advance(() => coordinator.finish(outcome));
    return { coordinator, lost: (id) => coordinator.lost(id, clockMs()) };
  });
  return { coordination, viewed, ended, finish };
}

/** Lets launchers find the job in this store. */
async function publish(store: Store, { runId, onMove }: AdmissionOptions): Promise<void> {
  await store.set(watchedKey, 'false');
  await store.set(jobKey, runId);
  onMove();
}
