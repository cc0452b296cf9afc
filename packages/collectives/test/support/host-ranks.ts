// The functions that the ranks of tests of the host and tcp backends run, each in a process of its own.
import { readFileSync } from 'node:fs';
import { TcpStore } from '@ringwise/store';
import { openStore } from '@ringwise/testing';
import { CollectiveError, type InitOptions, init, prepareMemory } from '../../src/index.ts';
import { type CallName, calls } from './calls.ts';
import { serve } from './serve.ts';

/**
 * Serves a Pool on a backend. If `areApart`, each rank acts as if it were on a host of its own, so that all
 * links of the host backend are TCP.
 */
export async function serveScenarios(
  rank: number,
  port: number,
  backend: string,
  areApart: boolean,
): Promise<void> {
  if (areApart) process.env.RINGWISE_HOST_ID = `host of rank ${rank}`;
  await serve(rank, port, () => init({ backend }));
}

/** Joins, reports that it is ready, and calls `name` until the test interrupts it. */
export async function callForever(
  _rank: number,
  port: number,
  name: CallName,
  sync: boolean,
  timeoutMs: number,
): Promise<void> {
  const world = await init();
  const group = (await world.subgroup([0, 1, 2], { timeoutMs }))!;
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  for (let n = 0; ; n++) {
    await calls[name](group, sync);
    if (n === 2) await control.add('ready', 1);
  }
}

/**
 * Sums in memory of groups of which the first had it prepared, in part. Returns the sums, and how many bytes of memory
 * files this process had more when the memory was prepared.
 */
export async function sumInPreparedMemory(rank: number): Promise<{ sums: number[]; bytes: number }> {
  const before = sharedBytes();
  await prepareMemory(8 << 20);
  const bytes = sharedBytes() - before;
  const sums: number[] = [];
  for (let n = 0; n < 2; n++) {
    await using group = await init();
    for (const count of [1 << 20, 1 << 20, 1 << 20]) {
      const memory = group.alloc(count, 'float32');
      const isZero = memory.every((value) => value === 0);
      memory.fill(isZero ? rank + 1 : Number.NaN);
      await group.allReduce(memory);
      sums.push(memory[count - 1]!);
    }
  }
  return { sums, bytes };
}

/** Returns the bytes of shared memory that this process has mapped. */
function sharedBytes(): number {
  const [, kilobytes] = /^RssShmem:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))!;
  return Number(kilobytes) * 1024;
}

/**
 * Awaits small operations and nothing else until the event loops of all ranks have made 20 turns, or for 60 s. Returns
 * how many turns the event loop of this rank made meanwhile.
 */
export async function awaitInStep(_rank: number): Promise<number> {
  await using group = await init();
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const goesOn = Int32Array.of(1);
  for (const end = performance.now() + 60_000; goesOn[0] === 1; ) {
    goesOn[0] = turns < 20 && performance.now() < end ? 1 : 0;
    await group.allReduce(goesOn, { op: 'max' });
  }
  clearInterval(timer);
  return turns;
}

/**
 * Makes rank 1 come to a barrier once the event loop of rank 0 has made 20 turns since its own call, or after 60 s.
 * Returns how many turns the event loop of rank 0 made meanwhile.
 */
export async function idleInBarrier(rank: number): Promise<number> {
  await using group = await init();
  const store = await openStore();
  let turns = 0;
  let told: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (++turns === 20 && rank === 0) told = store.set('turned', '');
  }, 5);
  if (rank === 1) await store.wait(['turned'], { timeoutMs: 60_000 }).catch(() => {});
  await group.barrier();
  clearInterval(timer);
  await told;
  await store.close();
  return turns;
}

/**
 * Rank 0 sends `count` elements to rank 1, which dies when it has made its call (broadcast), or when it has got the
 * first elements (send). Returns how this call and the next one end on rank 0.
 */
export async function receiverDies(rank: number, verb: string, count: number): Promise<string[]> {
  const group = await init();
  const data = new Float32Array(count).fill(1 - rank);
  const sending =
    verb === 'broadcast' ? group.broadcast(data) : rank === 0 ? group.send(data, 1) : group.recv(data, 0);
  if (rank === 1) {
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    // The call leaves this process at the end of a turn.
    for (let turns = 0; turns < 2 || (verb === 'send' && data[0] === 0); turns++) await turn();
    process.kill(process.pid, 'SIGKILL');
  }
  const outcomes = [];
  for (const call of [() => sending, () => group.barrier()]) {
    const outcome = await call().then(
      () => 'ended',
      ({ code, peers }: CollectiveError) => `${code} ${peers.join()}`,
    );
    outcomes.push(outcome);
  }
  return outcomes;
}

/** Waits in a barrier that alone keeps this process alive. */
export async function onlyTheBarrier(rank: number): Promise<string> {
  await using group = await init();
  if (rank === 1) await new Promise((resolve) => setTimeout(resolve, 300));
  await group.barrier();
  return 'passed';
}

/** Ends the process of rank 0 in the middle of an operation that can never end; rank 1 waits for it. */
export async function exitWhilePending(rank: number, code: number): Promise<void> {
  const group = await init();
  if (rank === 0) {
    void group.recv(new Float32Array(1), 1);
    process.exit(code);
  }
  await group.recv(new Float32Array(1), 0);
}

/** Returns without close(); the process must end by itself all the same. */
export async function endWithoutClose(_rank: number): Promise<string> {
  const group = await init();
  const x = new Float32Array([1]);
  await group.allReduce(x);
  return `sum ${x[0]}`;
}

/** Uses two groups side by side, then one after the other. */
export async function severalGroups(rank: number): Promise<number[]> {
  const first = await init({ name: 'first' });
  const second = await init({ name: 'second' });
  const x = new Float32Array([rank + 1]);
  const y = new Float32Array([10 * (rank + 1)]);
  await Promise.all([second.allReduce(y), first.allReduce(x)]);
  await first.close();
  await second.allReduce(y);
  await second.close();
  return [x[0]!, y[0]!];
}

/**
 * Works until some ranks are killed, then goes on with the rest; rank `late` only when the test tells it.
 * Returns their group and their sum.
 */
export async function shrinkAfterLoss(rank: number, port: number, waitMs: number, late: number | null) {
  const group = await init();
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  const x = new Float32Array(1);
  try {
    for (let n = 0; ; n++) {
      x[0] = 1;
      await group.allReduce(x);
      if (n === 2) await control.add('ready', 1);
    }
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
  }
  if (rank === late) await control.wait(['others have gone on']);
  const left = await group.shrink({ waitMs });
  x[0] = rank + 1;
  await left.allReduce(x);
  const pair = await left.subgroup([0, 1]);
  if (pair !== null) await pair.barrier();
  const { name, ranks, rank: place } = left;
  await group.close();
  await control.close();
  return { name, ranks, place, sum: x[0] };
}

/**
 * Meets the others once for each element of `launches`, which holds the environment variables of each rank. Two
 * ranks are on each of two hosts, by the name of the host. Returns the placement of this rank in the group and
 * in a subgroup of ranks 3 and 1.
 */
export async function placements(rank: number, launches: readonly Record<string, string>[][]) {
  const ours = /^(RANK|WORLD_SIZE|LOCAL_|GROUP_|MASTER_|TORCHELASTIC_|RINGWISE_RUN_ID|OMPI_|PMI|SLURM_)/;
  const found: unknown[] = [];
  for (const launch of launches) {
    for (const name of Object.keys(process.env)) if (ours.test(name)) delete process.env[name];
    Object.assign(process.env, { RINGWISE_HOST_ID: rank < 2 ? 'a' : 'b', ...launch[rank] });
    await using group = await init({ timeoutMs: 60_000 });
    const pair = await group.subgroup([3, 1]);
    found.push([
      group.via,
      ...[group, pair].map((each) => each && [each.localRank, each.localSize, each.hosts]),
    ]);
  }
  return found;
}

/**
 * Joins with `variables[process_]` on top of the environment, where null removes a variable, and with
 * `options[process_]`. Returns the error of init(), or null.
 */
export async function initWith(
  process_: number,
  variables: readonly Readonly<Record<string, string | null>>[],
  options: readonly InitOptions[] = [],
) {
  for (const [name, value] of Object.entries(variables[process_]!)) {
    if (value === null) delete process.env[name];
    else process.env[name] = value;
  }
  try {
    const group = await init(options[process_]);
    await group.close();
    return null;
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    const { code, message, what, peers, secondary } = error;
    return { code, message, what, peers, secondary, pid: process.pid };
  }
}

/**
 * Rank 1 aborts and closes at once. Rank 2 waits for it, and rank 0, which others ask for the root cause, computes.
 * Returns the error's text on ranks 0 and 2.
 */
export async function abortAndClose(rank: number): Promise<string> {
  const store = await openStore();
  const group = await init();
  await group.barrier();
  await store.set(`past ${rank}`, 'yes'); // a rank may leave the barrier while another one is in it
  if (rank === 1) await store.wait(['past 0', 'past 2']);
  await store.close();
  if (rank === 1) {
    group.abort('enough');
    await group.close();
    return 'closed';
  }
  const waiting = group.barrier().then(
    () => 'no error',
    (error: CollectiveError) => error.what,
  );
  if (rank === 0) {
    const endMs = performance.now() + 1_000;
    while (performance.now() < endMs);
  }
  return await waiting;
}

/** Rank 0 transfers a buffer while its call waits for an earlier one. Returns the code and the text of the error. */
export async function transferWhileQueued(rank: number): Promise<[code: string, what: string]> {
  const group = await init({ backend: 'host' });
  const earlier = group.broadcastObject('of several steps');
  const buffer = new Float32Array(1000);
  const later = group.allReduce(buffer);
  if (rank === 0) structuredClone(buffer, { transfer: [buffer.buffer] });
  await earlier.catch(() => {}); // of rank 1, if it is behind
  const error = await later.then(
    () => new Error('it has not failed'),
    (reason: CollectiveError) => reason,
  );
  await group.close();
  return CollectiveError.is(error) ? [error.code, error.what] : ['none', error.message];
}

/**
 * Rank 0 stops rank 1 in the middle of an allReduce, which then passes its deadline. Rank 0 uses the memory for other
 * values, and lets rank 1 go on. Returns how many of these values rank 1 has changed.
 */
export async function stopInAllReduce(rank: number): Promise<number> {
  const group = await init({ backend: 'host' });
  const store = await openStore();
  const [, other] = (await group.allGatherObject(process.pid)) as [number, number];
  const memory = group.alloc(1 << 24).fill(1);
  await group.barrier();
  const stop = setTimeout(() => rank === 0 && process.kill(other, 'SIGSTOP'), 5);
  await group.allReduce(memory, { timeoutMs: rank === 0 ? 1_000 : 60_000 }).catch(() => {});
  clearTimeout(stop); // if the operation took less time, nothing is shown
  if (rank === 1) {
    await store.set('has gone on', '');
  } else {
    memory.fill(7);
    process.kill(other, 'SIGCONT');
    await store.wait(['has gone on']);
  }
  await store.close();
  await group.close().catch(() => {});
  return memory.filter((value) => value !== 7).length;
}
