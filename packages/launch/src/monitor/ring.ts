/** Keeps the last `capacity` items, oldest first. */
export class Ring<Item> {
  readonly #items: Item[] = [];
  readonly #capacity: number;
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(item: Item): void {
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#capacity;
  }

  get items(): Item[] {
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)];
  }

  clear(): void {
    this.#items.length = 0;
    this.#next = 0;
  }
}
