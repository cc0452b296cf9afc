// Sends a million valid and invalid frames to the store's server, and as many messages to the launchers' coordinator.
// Checks that nothing throws, that memory does not grow, and that the store still serves afterwards.
//
//   node --expose-gc --import tsx bench/fuzz.ts [--frames 1000000] [--seed 1]
//
// Divides the frames among four kinds of clients: two that number requests in different ways, one that does not know
// the secret, and one that does. Prints one JSON line; the exit code is 1 if a check failed.
import { parseArgs } from 'node:util';
import { fuzzCoordinator } from '../packages/launch/test/support/fuzz.ts';
import { Fuzzer, modes } from '../packages/store/test/support/fuzz.ts';

const { values } = parseArgs({
  options: { frames: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
});
const frames = Number(values.frames);
const seed = Number(values.seed);
/** Largest growth of the heap that does not count as a leak, in bytes. */
const noiseBytes = 4 << 20;

const warnings: string[] = [];
process.on('warning', (warning) => warnings.push(String(warning)));

async function heapBytes(): Promise<number> {
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const startMs = performance.now();
const fuzzers = modes.map((_, index) => new Fuzzer(seed * modes.length + index));
const heaps: number[] = [];
for (let tenth = 1; tenth <= 10; tenth++) {
  for (const [index, mode] of modes.entries()) {
    const fuzzer = fuzzers[index]!;
    while (fuzzer.frames < (frames / modes.length) * (tenth / 10)) {
      // Let the event loop run: sessions end in callbacks.
      if (fuzzer.sessions % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      fuzzer.session(mode);
    }
  }
  heaps.push(await heapBytes());
}
const finishedJobs = fuzzCoordinator(seed, frames);
const serves = fuzzers.every((fuzzer) => fuzzer.serves());
const grownBytes = heaps.at(-1)! - heaps[0]!;
const sum = (of: (fuzzer: Fuzzer) => number) => fuzzers.reduce((total, fuzzer) => total + of(fuzzer), 0);
const ok = serves && warnings.length === 0 && grownBytes < noiseBytes;
console.log(
  JSON.stringify({
    bench: 'fuzz',
    seed,
    frames: sum(({ frames }) => frames),
    understood: sum(({ survived }) => survived),
    sessions: sum(({ sessions }) => sessions),
    messages: frames,
    finishedJobs,
    seconds: Math.round((performance.now() - startMs) / 1000),
    firstHeapBytes: heaps[0],
    lastHeapBytes: heaps.at(-1),
    serves,
    warnings: warnings.slice(0, 3),
    ok,
  }),
);
if (!ok) process.exitCode = 1;
