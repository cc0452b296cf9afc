// Ranks that are threads, for host.test.ts: pairs of them, one after another, end in one process while the operations
// of their groups end.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { init } from '../../src/index.ts';

/** How a thread ends: it calls process.exit(), or its parent terminates it. */
export type End = 'exit' | 'terminate';

/** Runs `pairs` pairs of threads, one after another. Returns the exit codes of all threads. */
export async function endThreads(_rank: number, end: End, pairs: number): Promise<number[]> {
  const loader = process.execArgv[process.execArgv.indexOf('--import') + 1]; // which a thread does not inherit
  const code = `import('${loader}').then(() => import('${import.meta.url}')).then(({ work }) => work())`;
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-threads-'));
  const codes: number[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    const url = pathToFileURL(join(folder, `${pair}`)).href;
    const threads = [0, 1].map((rank) => new Worker(code, { eval: true, workerData: { url, rank, end } }));
    const ended = threads.map((thread) => once(thread, 'exit'));
    await Promise.all(threads.map((thread) => once(thread, 'message')));
    if (end === 'terminate') await Promise.all(threads.map((thread) => thread.terminate()));
    for (const [exitCode] of await Promise.all(ended)) codes.push(exitCode);
  }
  rmSync(folder, { recursive: true });
  return codes;
}

/** Runs in a thread: starts operations until it ends. Several end in each turn of the event loop. */
export async function work(): Promise<never> {
  const { url, rank, end } = workerData as { url: string; rank: number; end: End };
  const group = await init({ backend: 'host', url, rank, size: 2 });
  const buffers = Array.from({ length: 16 }, () => new Float32Array(1));
  parentPort!.postMessage('works');
  for (let turn = 0; ; turn++) {
    const works = buffers.map((buffer) => group.allReduce(buffer));
    if (end === 'exit' && turn === 2) {
      // Meanwhile the lane ends the operations and asks this thread to report them.
      for (const startMs = performance.now(); performance.now() < startMs + 20; );
      process.exit(3);
    }
    // The other thread may end first, so that the operations fail. This thread then goes on until its own end.
    await Promise.all(works).catch(() => sleep(end === 'terminate' ? 60_000 : 0));
  }
}

/**
 * Terminates a thread that blocks in a call for which the other rank, a thread too, does not come. Returns what the
 * other rank is told.
 */
export async function terminateBlocked(_rank: number): Promise<string> {
  const loader = process.execArgv[process.execArgv.indexOf('--import') + 1]; // which a thread does not inherit
  const code = `import('${loader}').then(() => import('${import.meta.url}')).then(({ block }) => block())`;
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-threads-'));
  const url = pathToFileURL(folder).href;
  const [blocked, other] = [0, 1].map((rank) => new Worker(code, { eval: true, workerData: { url, rank } }));
  const [told, ended] = [once(other!, 'message'), once(other!, 'exit')];
  await once(blocked!, 'message');
  await sleep(200); // so that it blocks by then
  await blocked!.terminate();
  const [text] = (await told) as [string];
  await ended;
  rmSync(folder, { recursive: true });
  return text;
}

/** Runs in a thread: rank 0 blocks in a barrier, in which rank 1 comes only after it has seen the failure. */
export async function block(): Promise<void> {
  const { url, rank } = workerData as { url: string; rank: number };
  const group = await init({ backend: 'host', url, rank, size: 2 });
  if (rank === 0) {
    parentPort!.postMessage('blocks');
    group.barrierSync();
  }
  await group.recv(new Float32Array(1), 0).catch(({ what }: Error & { what: string }) => {
    parentPort!.postMessage(what);
  });
  await group.close();
}
