// The threads of dataParallel(). The first one is the main thread. It starts the others, which run the same program
// from its beginning until they reach dataParallel(), where all form a group.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { type Group, init } from '@ringwise/collectives';
import { endedEarly, noProgram, notAgain, otherThread } from '../errors.ts';

/** Data that the main thread passes to a thread that it starts. */
interface ThreadData {
  readonly rank: number;
  readonly size: number;
  /** URL of the folder of the file store through which the threads connect. */
  readonly meeting: string;
  /** Shared by all threads: [0] is 1 once the main thread ends them. Errors after that are ignored. */
  readonly ending: Int32Array;
}

const own = (workerData as { ringwiseThread?: ThreadData } | null)?.ringwiseThread;
let isTaken = false;

export interface Crew {
  readonly group: Group;
  /** Ends the other threads, on the main thread. Resolves when they have ended. */
  readonly end: () => Promise<unknown>;
}

const meet = ({ rank, size, meeting }: Omit<ThreadData, 'ending'>): Promise<Group> =>
  init({ url: `${meeting}?rank=${rank}&size=${size}`, name: 'threads' });

/** Returns the group of all threads that run `program`. On the main thread, starts the others. */
export async function gatherCrew(size: number, program: string | URL | undefined): Promise<Crew> {
  if (isTaken) throw notAgain();
  if (own === undefined && !isMainThread) throw otherThread();
  const file = fileOf(program ?? process.argv[1]);
  isTaken = true;
  if (own !== undefined) return { group: await meet(own), end: () => Promise.resolve() };
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-threads-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const ending = new Int32Array(new SharedArrayBuffer(4));
  let formed: Group | null = null;
  // Node.js waits for the other threads, which may be blocked in a call that waits for this one.
  const announceEnd = () => {
    Atomics.store(ending, 0, 1);
    formed?.abort('the main thread has ended');
  };
  process.once('exit', announceEnd);
  const workers: Worker[] = [];
  const end = () => {
    announceEnd();
    process.off('exit', announceEnd);
    return Promise.all(workers.map((worker) => worker.on('error', () => {}).terminate()));
  };
  try {
    const meeting = pathToFileURL(folder).href;
    for (let rank = 1; rank < size; rank++) workers.push(start(file, { rank, size, meeting, ending }));
    const exits = workers.map((worker) => new Promise<number>((resolve) => worker.once('exit', resolve)));
    const early = exits.map(async (exit, i) => Promise.reject(endedEarly(i + 1, await exit)));
    const group = await Promise.race([meet({ rank: 0, size, meeting }), ...early]);
    formed = group;
    for (const each of early) each.catch(() => {}); // from now on, threads may end
    return { group, end };
  } catch (error) {
    await end();
    throw error;
  } finally {
    remove();
    process.off('exit', remove);
  }
}

/**
 * Runs in a new thread: sets process.argv[1] to the program's path and runs the program. An error that the program does
 * not catch is printed at once, because the main thread may be blocked in a call and fail before it receives the error.
 */
const entry = `
  const { workerData } = require('node:worker_threads');
  const { program, rank, registrars, ending } = workerData.ringwiseThread;
  process.on('uncaughtExceptionMonitor', (error) => {
    if (Atomics.load(ending, 0) === 1) return;
    require('node:fs').writeSync(2, 'dataParallel: thread ' + rank + ' failed: ' + (error?.stack ?? error) + '\\n');
  });
  process.argv[1] = require('node:url').fileURLToPath(program);
  (async () => {
    for (const url of registrars) (await import(url)).register();
    await import(program);
  })();
`;

/**
 * Starts a thread. Its stdout is discarded, because all threads print the same. An error that it does not catch ends
 * the process, because there is no 'error' listener.
 */
function start(file: string, data: ThreadData): Worker {
  const program = pathToFileURL(file).href;
  const worker = new Worker(entry, {
    eval: true,
    argv: process.argv.slice(2),
    execArgv: [],
    name: `ringwise thread ${data.rank}`,
    stdout: true,
    workerData: { ringwiseThread: { ...data, program, registrars: registrarsFor(file) } },
  });
  worker.stdout.resume();
  return worker;
}

/**
 * Returns the modules of tsx that let a thread run TypeScript; empty for JavaScript, or if Node.js strips the types
 * itself. Looks for tsx beside the program, and for the tsx that started this process.
 */
function registrarsFor(file: string): string[] {
  if (!/\.[cm]?tsx?$/.test(file)) return [];
  const loaders = process.execArgv.filter((arg) => arg.startsWith('file:') && arg.includes('tsx'));
  for (const base of [file, ...loaders]) {
    try {
      const [cjs, esm] = ['tsx/cjs/api', 'tsx/esm/api'].map((name) => createRequire(base).resolve(name));
      // require() resolves to the CommonJS version, which cannot register a loader for ES modules.
      return [cjs!, esm!.replace(/\.cjs$/, '.mjs')].map((path) => pathToFileURL(path).href);
    } catch {
      // Not installed in that folder.
    }
  }
  return [];
}

/** Returns the path of the program. Throws if there is no such file, for example under `node -e`. */
function fileOf(program: unknown): string {
  const isUrl = program instanceof URL || (typeof program === 'string' && program.startsWith('file:'));
  const file = isUrl ? fileURLToPath(program) : program;
  if (typeof file === 'string' && existsSync(file)) return file;
  throw noProgram(typeof file === 'string' ? file : null);
}
