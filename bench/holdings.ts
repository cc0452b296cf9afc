// Measures what a process holds (memory, file descriptors, threads, handles), for benchmarks that look for leaks.
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Group } from '@ringwise/collectives';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Names of the numbers that holdings() returns, in the same order. */
export const holdingNames = ['rssBytes', 'heapBytes', 'nativeBytes', 'fds', 'threads', 'handles'] as const;

/** Heap growth that is no leak, in bytes: for example, code that was compiled late. */
const heapNoiseBytes = 2 << 20;
/** Growth outside the heap that is no leak, in bytes: allocators keep some of the memory that was freed. */
const nativeNoiseBytes = 16 << 20;

/**
 * Measures this process after a garbage collection. V8 keeps free space in the heap, more after busy times,
 * so the result has the used heap and, separately, the resident memory outside the heap. Another thread
 * returns freed buffers to the system, so each number is the least of ten readings.
 */
export async function holdings(): Promise<Float64Array> {
  const least = new Float64Array(holdingNames.length).fill(Number.POSITIVE_INFINITY);
  for (let i = 0; i < 10; i++) {
    collectGarbage();
    await delay(20);
    const rss = process.memoryUsage.rss();
    const heap = getHeapStatistics();
    const held = [
      rss,
      heap.used_heap_size,
      rss - heap.total_physical_size,
      readdirSync('/proc/self/fd').length,
      readdirSync('/proc/self/task').length,
      process.getActiveResourcesInfo().length,
    ];
    for (const [k, value] of held.entries()) least[k] = Math.min(least[k]!, value);
  }
  return least;
}

/** Returns `own` of every rank, in rank order. Collective. */
export async function ofAllRanks(group: Group, own: Float64Array): Promise<number[][]> {
  const all = new Float64Array(own.length * group.size);
  await group.allGather(own, all);
  return Array.from({ length: group.size }, (_, rank) => [
    ...all.subarray(rank * own.length, (rank + 1) * own.length),
  ]);
}

/** Tells whether no rank holds more than before, beyond noise. Ignores the resident size, which has free heap space. */
export function nothingLeft(before: readonly number[][], after: readonly number[][]): boolean {
  return after.every(([, ...held], rank) =>
    held.every((value, i) => value - before[rank]![i + 1]! < ([heapNoiseBytes, nativeNoiseBytes][i] ?? 1)),
  );
}

export const named = (held: readonly number[]): Record<string, number> =>
  Object.fromEntries(held.map((value, i) => [holdingNames[i]!, value]));

/** Returns one line of JSON, with numbers rounded to 8 digits. */
export const jsonLine = (line: object): string =>
  JSON.stringify(line, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(8)) : value));
