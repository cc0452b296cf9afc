// Programs of mpi.test.ts, which use groups in unusual orders. mpirun starts two ranks with the name of a program and a
// folder for the files through which the ranks meet.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { loadMpi } from '../../src/backends/mpi.ts';
import type { NativeMpi } from '../../src/backends/native.ts';
import { CollectiveError, type Group, type InitOptions, init } from '../../src/index.ts';

const [, , program, folder] = process.argv;

const join = (name = 'world', options: InitOptions = {}) =>
  init({ backend: 'mpi', url: pathToFileURL(folder!).href, name, timeoutMs: 60_000, ...options });

async function failureOf(call: PromiseLike<unknown>): Promise<CollectiveError> {
  try {
    await call;
  } catch (error) {
    if (CollectiveError.is(error)) return error;
    throw error;
  }
  throw new Error('the call has ended well');
}

/** Runs this program once more in a worker. */
function inWorker(): Worker {
  const tsx = import.meta.resolve('tsx/esm/api'); // workers of Node 20 do not inherit --import
  const code = `import('${tsx}').then(({ register }) => (register(), import('${import.meta.url}')))`;
  return new Worker(code, { eval: true, argv: process.argv.slice(2) });
}

/** Stops rank 1 when it has met rank 0 in the store and before it calls MPI. */
function stopBeforeConnecting(): void {
  const mpi: { MpiGroup: NativeMpi['MpiGroup'] } = loadMpi();
  const { MpiGroup } = mpi;
  mpi.MpiGroup = class extends MpiGroup {
    constructor(...args: ConstructorParameters<typeof MpiGroup>) {
      if (args[0] === 1) process.kill(process.pid, 'SIGSTOP');
      super(...args);
    }
  };
}

async function sumOfOnes(group: Group): Promise<number> {
  const ones = new Float32Array(1).fill(1);
  await group.allReduce(ones);
  return ones[0]!;
}

const programs = {
  async exit() {
    const group = await join();
    await group.close();
    if (group.rank === 1) process.exit(0);
    await sleep(1000);
    console.log('still here');
    process.exit(0);
  },

  async noClose() {
    const group = await join();
    await group.barrier();
    if (group.rank === 1) return;
    console.log((await failureOf(group.allReduce(new Float32Array(4)))).message);
    await group.close();
  },

  async exitPending() {
    const group = await join();
    await group.barrier();
    if (group.rank === 0) await sleep(60_000);
    void group.allReduce(new Float32Array(4));
    process.exit(0);
  },

  async exitCode() {
    const group = await join();
    await group.close();
    if (group.rank === 0) process.exitCode = 3;
    else await sleep(60_000);
  },

  async lastWords() {
    const world = await join();
    for (let round = 0; round < 50; round++) {
      const group = (await world.split(0))!;
      const words = new Uint8Array(8000).fill(group.rank === 0 ? round : 0);
      if (group.rank === 0) await group.send(words, 1);
      else await group.recv(words, 0);
      if (words.some((word) => word !== round)) throw new Error(`round ${round}: other words`);
      await group.close();
    }
    if (world.rank === 1) console.log('all taken');
    await world.close();
  },

  async stopsConnecting() {
    stopBeforeConnecting();
    const { code, message } = await failureOf(join('world', { timeoutMs: 2000 }));
    console.log(`${code}, ${message}`);
    process.exit(0);
  },

  async exitsConnecting() {
    stopBeforeConnecting();
    void join();
    await sleep(2000);
    process.exit(0);
  },

  async lent() {
    const group = await join();
    let memory: Float32Array | undefined = new Float32Array(1 << 26);
    const kept = new WeakRef(memory.buffer);
    await group.barrier();
    if (group.rank === 1) {
      const failed = failureOf(group.allReduce(memory));
      await sleep(50); // less than the reduction of 256 MiB takes
      group.abort('enough');
      await failed;
    } else {
      let code = '';
      try {
        group.allReduceSync(memory);
      } catch (error) {
        code = (error as CollectiveError).code;
      }
      memory = undefined;
      setFlagsFromString('--expose-gc');
      await sleep(0);
      runInNewContext('gc')();
      console.log(`${code}, ${kept.deref() === undefined ? 'freed' : 'kept'}`);
    }
    await group.close();
  },

  async bits() {
    const group = await join();
    const zerosAndNaNs = [
      [0, 0x80000000, 0x7fc00000, 0xffc00000],
      [0x80000000, 0, 0x7fc00001, 0x7fc00000],
    ];
    for (const op of ['min', 'max'] as const) {
      const bits = Uint32Array.from(zerosAndNaNs[group.rank]!);
      await group.allReduce(new Float32Array(bits.buffer), { op });
      const all = await group.allGatherObject([...bits].map((word) => word.toString(16)).join(' '));
      if (group.rank === 0) console.log(op, JSON.stringify(all));
    }
    await group.close();
  },

  async idle() {
    const world = await join();
    const groups = await Promise.all(Array.from({ length: 20 }, () => world.split(0)));
    await sleep(1000);
    const before = process.resourceUsage().voluntaryContextSwitches;
    await sleep(1000);
    const sleeps = process.resourceUsage().voluntaryContextSwitches - before;
    if (world.rank === 0) console.log(`${sleeps}`);
    await Promise.all(groups.map((group) => group!.close()));
    await world.close();
  },

  async lateThread() {
    if (!isMainThread) return (await join('worker')).close();
    await once(inWorker(), 'exit');
    const { message } = await failureOf(join());
    console.log(`${process.env.UCX_MEM_EVENTS}, ${message}`);
  },

  /** Scatters to a rank whose counts are more than MPI takes. Only that rank has them, so that no memory is needed. */
  async tooLong() {
    const group = await join();
    if (group.rank === 1) {
      const counts = [2 ** 31, 1];
      const { code, seq } = await failureOf(group.scatter(null, new Uint8Array(1), { counts }));
      console.log(`${code} ${seq} ${group.failure}`);
    }
    console.log(`${await sumOfOnes(group)}`);
    await group.close();
  },

  /** Makes groups on two threads at the same time. */
  async twoThreads() {
    const worker = isMainThread ? inWorker() : null;
    const ended = worker && once(worker, 'exit');
    const mine = isMainThread ? 1 : 100;
    const group = await join(isMainThread ? 'world' : 'worker');
    parentPort?.postMessage('ready');
    if (worker) await once(worker, 'message');
    for (let round = 0; round < 5; round++) {
      const parts = await Promise.all(Array.from({ length: 8 }, () => group.split(0)));
      for (const part of parts) {
        const sum = new Float32Array(1).fill(mine);
        await part!.allReduce(sum);
        if (sum[0] !== 2 * mine) throw new Error(`round ${round}: ${sum[0]}`);
        await part!.close();
      }
    }
    await group.close();
    await ended;
    if (worker && group.rank === 0) console.log('apart');
  },

  async threads() {
    if (!isMainThread) {
      const group = await join('worker');
      await sumOfOnes(group);
      await group.close();
      return;
    }
    const group = await join();
    await once(inWorker(), 'exit');
    console.log(`${await sumOfOnes(group)}`);
    await group.close();
  },
};

export type Program = keyof typeof programs;

await programs[program as Program]();
