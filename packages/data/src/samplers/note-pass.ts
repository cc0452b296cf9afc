// Warns of a second pass over an iterator, such as the result of a generator function. It has ended, so the pass would
// silently have no samples.

/** Number of passes over each iterator. */
const passes = new WeakMap<object, number>();

/** Notes that a pass over `items` begins. Iterables that begin anew have no next() themselves. */
export function notePass(items: Iterable<unknown> | AsyncIterable<unknown>): void {
  if (typeof (items as { readonly next?: unknown }).next !== 'function') return;
  const count = (passes.get(items) ?? 0) + 1;
  passes.set(items, count);
  if (count !== 2) return;
  process.emitWarning(
    'DataLoader: a second pass over an iterator has no samples, because it has ended. Pass an object that begins anew ' +
      'in each pass: { [Symbol.asyncIterator]: generatorFunction }.',
    { type: 'RingwiseWarning', code: 'RINGWISE_ITERATOR_ENDED' },
  );
}
