// Changes of the membership of an elastic job: its last views, for the status line and the live page.

import { slotOf } from '../rendezvous/elastic/slots.ts';
import type { ViewFacts } from '../rendezvous/elastic/view-facts.ts';
import { Ring } from './ring.ts';

/** A view as viewers show it. */
export interface ShownView {
  readonly number: number;
  /** Milliseconds since the job started. */
  readonly atMs: number;
  readonly ranks: number;
  readonly step: number;
  /** Numbers of the ranks that changed. */
  readonly joined: readonly number[];
  readonly lost: readonly number[];
  readonly left: readonly number[];
}

const keptViews = 200;

/** Counts the changes of all views, and keeps the last views. */
export class Membership {
  readonly #views = new Ring<ShownView>(keptViews);
  /** Numbers of ranks that were lost, that left, and that joined after the first view. */
  losses = 0;
  leaves = 0;
  joins = 0;

  get views(): readonly ShownView[] {
    return this.#views.items;
  }

  /** The latest view; null before the first one, and in jobs that are not elastic. */
  get last(): ShownView | null {
    return this.#views.items.at(-1) ?? null;
  }

  add(view: ViewFacts, atMs: number): void {
    const [joined, lost, left] = [view.joined, view.lost, view.left].map((ids) => ids.map(slotOf));
    if (view.number > 0) this.joins += joined!.length;
    this.losses += lost!.length;
    this.leaves += left!.length;
    const { number, finalSteps: step, members } = view;
    this.#views.push({
      number,
      atMs,
      ranks: members.length,
      step,
      joined: joined!,
      lost: lost!,
      left: left!,
    });
  }
}

/** Returns the sentence about a new view; null for the first one, which changes nothing. */
export function viewText({ number, members, joined, lost, left, finalSteps }: ViewFacts): string | null {
  if (number === 0) return null;
  const parts = [
    ...(lost.length > 0 ? [`lost ${named(lost)}`] : []),
    ...(left.length > 0 ? [`${named(left)} left`] : []),
    ...(joined.length > 0 ? [`${named(joined)} joined`] : []),
  ];
  const size = `${members.length} rank${members.length === 1 ? '' : 's'}`;
  return `view ${number}, after step ${finalSteps}: ${[size, ...parts].join(', ')}.`;
}

const named = (ids: readonly string[]) => `rank${ids.length === 1 ? '' : 's'} ${ids.map(slotOf).join(', ')}`;
