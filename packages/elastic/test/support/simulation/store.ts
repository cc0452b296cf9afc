// The store of a simulation: what the keys hold, and what a request does when the server executes it.
import type { Action, Reading } from '../../../src/membership/protocol/machine.ts';
import type { Report, View, Wish } from '../../../src/membership/protocol/view.ts';

export type Request =
  | { readonly kind: 'wish'; readonly wish: Wish }
  | { readonly kind: 'head' }
  | Extract<Action, { kind: 'read' | 'report' | 'propose' | 'open' }>
  | { readonly kind: 'announce'; readonly view: number }
  | { readonly kind: 'ended'; readonly id: string }
  | { readonly kind: 'watch view'; readonly after: number }
  | { readonly kind: 'watch over'; readonly view: number }
  | { readonly kind: 'watch wish'; readonly after: number };

export class SimStore {
  readonly views: View[] = [];
  readonly reports: Report[][] = [];
  /** Null for those of an earlier store. */
  readonly wishes: (Wish | null)[] = [];
  readonly ended = new Set<string>();
  head = -1;
  operations = 0;

  fork(): SimStore {
    const copy = new SimStore();
    copy.views.push(...this.views);
    this.reports.forEach((each, view) => {
      copy.reports[view] = [...each];
    });
    copy.wishes.push(...this.wishes);
    for (const id of this.ended) copy.ended.add(id);
    copy.head = this.head;
    return copy;
  }

  read({ view, wishes, unread, ids }: Extract<Request, { kind: 'read' }>): Reading {
    const numbers = [...unread, ...this.wishes.slice(wishes).map((_, index) => wishes + 1 + index)];
    const found = numbers.map((number) => ({ number, wish: this.wishes[number - 1] ?? null }));
    const asked = [...ids, ...found.flatMap(({ wish }) => wish?.id ?? [])];
    return {
      view,
      reports: [...(this.reports[view] ?? [])],
      wishes: found,
      ended: new Set(asked.filter((id) => this.ended.has(id))),
    };
  }

  /** Returns the view that counts. */
  propose(view: View): View {
    this.views[view.number] ??= view;
    return this.views[view.number]!;
  }

  /** Takes over a view of an earlier store. Returns the one that is there. */
  open(view: View): View {
    while (this.wishes.length < view.wishes) this.wishes.push(null);
    return this.propose(view);
  }

  /** Returns the next view after `number`, or a later one if that has been deleted. */
  after(number: number): View | null {
    const next = this.views[number + 1];
    if (next === undefined) return null;
    return number + 1 < this.head - 2 ? this.views[this.head]! : next;
  }

  operationsOf(request: Request): number {
    if (request.kind === 'read') return 4 + request.ids.length + (this.wishes.length - request.wishes);
    return request.kind === 'wish' || request.kind === 'head' ? 2 : 1;
  }
}
