// The events of a random simulation in the order of their times: a binary heap. Events of one time keep their order.
import type { Event } from './parts.ts';

interface Entry {
  readonly event: Event;
  readonly order: number;
}

export class EventQueue {
  readonly #heap: Entry[] = [];
  #order = 0;

  get size(): number {
    return this.#heap.length;
  }

  push(event: Event): void {
    const heap = this.#heap;
    heap.push({ event, order: this.#order++ });
    for (let at = heap.length - 1; at > 0; ) {
      const up = (at - 1) >> 1;
      if (!isBefore(heap[at]!, heap[up]!)) return;
      [heap[at], heap[up]] = [heap[up]!, heap[at]!];
      at = up;
    }
  }

  pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (heap.length === 0) return first.event;
    heap[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      let least = at;
      if (left < heap.length && isBefore(heap[left]!, heap[least]!)) least = left;
      if (left + 1 < heap.length && isBefore(heap[left + 1]!, heap[least]!)) least = left + 1;
      if (least === at) return first.event;
      [heap[at], heap[least]] = [heap[least]!, heap[at]!];
      at = least;
    }
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.event.atMs < b.event.atMs || (a.event.atMs === b.event.atMs && a.order < b.order);
}
