// A launcher that does not keep the store passes on what it sees of its ranks, in batches, through the store. If the
// store is slow, what does not fit into the next batch is left out: lines first.

import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '@ringwise/store';
import { inbox, Outbox } from '../rendezvous/mailbox.ts';
import { type Observe, parseEvents, type RankEvent } from './events.ts';

const box = 'launch/events';
const everyMs = 500;
/** How long a job that has ended waits for what was forwarded. */
const patienceMs = 1_000;
const maxLines = 500;
const maxEvents = 5_000;

export interface Forwarding {
  readonly observe: Observe;
  /** Added to this host's clock to get that of the host with the store. */
  clockOffsetMs: number;
  readonly close: () => Promise<void>;
}

export function forward(store: Store): Forwarding {
  const outbox = new Outbox(store);
  let events: RankEvent[] = [];
  let lines = 0;
  let sending: Promise<void> | null = null;

  async function send(): Promise<void> {
    if (events.length === 0) return;
    const batch = events;
    events = [];
    lines = 0;
    await outbox.post(box, batch);
  }

  function flush(): void {
    sending ??= send().finally(() => {
      sending = null;
    });
  }

  const timer = setInterval(flush, everyMs);
  const forwarding: Forwarding = {
    clockOffsetMs: 0,
    observe: (event) => {
      const isOften = event.kind === 'line' || event.kind === 'report' || event.kind === 'memory';
      if ((isOften && events.length >= maxEvents) || (event.kind === 'line' && lines >= maxLines)) return;
      if (event.kind === 'line') lines++;
      events.push(event.kind === 'report' ? shifted(event, forwarding.clockOffsetMs) : event);
      // The job may be over soon.
      if (event.kind === 'ended') flush();
    },
    close: async () => {
      clearInterval(timer);
      await sending;
      await send();
    },
  };
  return forwarding;
}

export interface Collecting {
  /** Takes in what has been forwarded before, though it does not wait long. */
  readonly close: () => Promise<void>;
}

/** Gives what other launchers forward to `observe`. */
export function collect(store: Store, observe: Observe): Collecting {
  const ending = new AbortController();
  let taken = 0;
  async function read(): Promise<void> {
    for await (const batch of inbox(store, box, parseEvents, ending.signal)) {
      batch.forEach(observe);
      taken++;
    }
  }
  // It ends when it is told to, or when the store is lost, which ends the job elsewhere.
  const reading = read().catch(() => {});
  return {
    close: async () => {
      const posted = await store.add(`${box}/posted`, 0).catch(() => 0);
      for (let ms = 0; taken < posted && ms < patienceMs; ms += 10) await delay(10);
      ending.abort();
      await reading;
    },
  };
}

function shifted(event: Extract<RankEvent, { kind: 'report' }>, offsetMs: number): RankEvent {
  return { ...event, report: { ...event.report, clockMs: event.report.clockMs + offsetMs } };
}
