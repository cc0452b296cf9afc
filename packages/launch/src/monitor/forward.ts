// Forwards the events of a launcher's ranks, in batches through the store, to the launcher that keeps the
// store. If the store is slow, events that do not fit into the next batch are dropped, output lines first.

import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '@ringwise/store';
import { inbox, Outbox } from '../rendezvous/mailbox.ts';
import { type Observe, parseEvents, type RankEvent } from './events.ts';

const box = 'launch/events';
const everyMs = 500;
/** Time in milliseconds that a job that has ended waits for forwarded events. */
const patienceMs = 1_000;
const maxLines = 500;
const maxEvents = 5_000;

export interface Forwarding {
  readonly observe: Observe;
  /** Offset to add to this host's clock to get the clock of the host with the store. */
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
      // Flushed at once, because the job may end soon.
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
  /** Waits briefly for the events that have been forwarded, then ends. */
  readonly close: () => Promise<void>;
}

/** Passes the events that other launchers forward to `observe`. */
export function collect(store: Store, observe: Observe): Collecting {
  const ending = new AbortController();
  let taken = 0;
  async function read(): Promise<void> {
    for await (const batch of inbox(store, box, parseEvents, ending.signal)) {
      batch.forEach(observe);
      taken++;
    }
  }
  // Ends when it is told to, or when the store is lost, which also ends the job.
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
