// Forwards the events of a launcher's ranks, in batches through the store, to the launcher that keeps the store. If
// the store is slow, events that do not fit into the next batch are dropped, output lines first.

import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import type { Store } from '@ringwise/store';
import { inbox, Outbox } from '../rendezvous/mailbox.ts';
import { within } from '../within.ts';
import { type Observe, parseEvents, type RankEvent } from './events.ts';
import { maxShownLine } from './job-view.ts';

const box = 'launch/events';
const everyMs = 500;
/** Milliseconds that a launcher waits at the end of the job for events to be forwarded. */
const patienceMs = 1_000;
const maxLines = 500;
/** Maximum characters of a batch as JSON. A store accepts 8 MiB, and a character has at most 3 bytes there. */
const maxLength = 2 << 20;

export interface Forwarding {
  readonly observe: Observe;
  /** Offset to add to this host's clock to get the clock of the host with the store. */
  clockOffsetMs: number;
  readonly close: () => Promise<void>;
}

/** Begins to forward. close() sends the events that are left and waits briefly until the store has them. */
export function forward(store: Store): Forwarding {
  const outbox = new Outbox(store);
  let events: RankEvent[] = [];
  let lines = 0;
  let length = 0;
  let sending: Promise<void> | null = null;

  async function send(): Promise<void> {
    if (events.length === 0) return;
    const batch = events;
    events = [];
    lines = 0;
    length = 0;
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
      const isLine = event.kind === 'line';
      const sent = isLine
        ? shown(event)
        : event.kind === 'report'
          ? shifted(event, forwarding.clockOffsetMs)
          : event;
      const isOften = isLine || event.kind === 'report' || event.kind === 'memory';
      const more = JSON.stringify(sent).length + 1;
      if ((isOften && length + more > maxLength) || (isLine && lines >= maxLines)) return;
      if (isLine) lines++;
      length += more;
      events.push(sent);
      // Flushed at once, because the job may end soon.
      if (event.kind === 'ended') flush();
    },
    close: async () => {
      clearInterval(timer);
      const rest = async () => {
        await sending;
        await send();
      };
      // Limited here, because a store that does not answer would delay the end by its own deadline, which is minutes.
      await within(patienceMs, rest());
    },
  };
  return forwarding;
}

export interface Collecting {
  /** Waits briefly for the events that have been forwarded, then ends. */
  readonly close: () => Promise<void>;
}

/** Calls `observe` with every event that another launcher forwards. */
export function collect(store: Store, observe: Observe): Collecting {
  const ending = new AbortController();
  let taken = 0;
  async function read(): Promise<void> {
    for await (const batch of inbox(store, box, parseEvents, ending.signal)) {
      batch.forEach(observe);
      taken++;
    }
  }
  // Reading ends when the signal is aborted, or when the store is lost, which also ends the job.
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

function shown(event: Extract<RankEvent, { kind: 'line' }>): RankEvent {
  return { ...event, text: stripVTControlCharacters(event.text).slice(0, maxShownLine) };
}

function shifted(event: Extract<RankEvent, { kind: 'report' }>, offsetMs: number): RankEvent {
  return { ...event, report: { ...event.report, clockMs: event.report.clockMs + offsetMs } };
}
