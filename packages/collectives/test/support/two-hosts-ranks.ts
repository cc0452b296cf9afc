// The program of the ranks of two-hosts.test.ts: `two-hosts-ranks.ts <task> <arguments as JSON>`. It joins the group,
// does its task and leaves. It reports to the test by one JSON object per line on stdout.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostBackend } from '../../src/backends/host.ts';
import { CollectiveError, type Group, init, registerBackend } from '../../src/index.ts';
import { type CallName, calls } from './calls.ts';

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

type Call = (
  verb: 'allReduce' | 'broadcast' | 'allGather' | 'reduceScatter' | 'send' | 'recv' | 'barrier',
  ...args: unknown[]
) => unknown;

/** Returns an object that calls verbs in their Sync or their plain form. */
function caller(group: Group, sync: boolean): Call {
  return (verb, ...args) => {
    const method = group[sync ? (`${verb}Sync` as const) : verb] as (...args: unknown[]) => unknown;
    return method.apply(group, args);
  };
}

const small = (rank: number, index: number) => ((index * 7 + rank * 5) % 13) - 6;
const arrays = [Float32Array, Float64Array, Int16Array] as const;

/** Calls collectives, send and recv on inputs whose results are exact. Returns a line for each wrong result. */
async function verbs(group: Group, counts: number[], sync: boolean): Promise<string[]> {
  const { rank, size } = group;
  const call = caller(group, sync);
  const wrong: string[] = [];
  const ranks = Array.from({ length: size }, (_, r) => r);
  const compare = (what: string, got: ArrayLike<number>, expected: (index: number) => number) => {
    for (let i = 0; i < got.length; i++) {
      if (got[i] === expected(i)) continue;
      wrong.push(`${what}: element ${i} is ${got[i]} instead of ${expected(i)}`);
      return;
    }
  };
  for (const count of counts) {
    for (const Type of arrays) {
      const make = (length: number, value: (index: number) => number) => {
        const array = new Type(length);
        for (let i = 0; i < length; i++) array[i] = value(i);
        return array;
      };
      const sum = (i: number) => ranks.reduce((total, r) => total + small(r, i), 0);
      const name = `${count} × ${Type.name}`;

      const reduced = make(count, (i) => small(rank, i));
      await call('allReduce', reduced);
      compare(`allReduce ${name}`, reduced, sum);

      const largest = make(count, (i) => small(rank, i));
      await call('allReduce', largest, { op: 'max' });
      compare(`allReduce max ${name}`, largest, (i) => Math.max(...ranks.map((r) => small(r, i))));

      for (const root of ranks) {
        const shared = make(count, (i) => (rank === root ? small(root, i) : -100));
        await call('broadcast', shared, { root });
        compare(`broadcast from ${root} ${name}`, shared, (i) => small(root, i));
      }

      const gathered = new Type(count * size);
      await call(
        'allGather',
        make(count, (i) => small(rank, i)),
        gathered,
      );
      compare(`allGather ${name}`, gathered, (i) => small(Math.floor(i / count), i % count));

      const part = new Type(count);
      await call(
        'reduceScatter',
        make(count * size, (i) => small(rank, i)),
        part,
      );
      compare(`reduceScatter ${name}`, part, (i) => sum(rank * count + i));

      const next = (rank + 1) % size;
      const previous = (rank + size - 1) % size;
      const received = new Type(count);
      const send = () =>
        call(
          'send',
          make(count, (i) => small(rank, i)),
          next,
        );
      const receive = () => call('recv', received, previous);
      // Blocking calls need an order in the ring. Calls that do not block run side by side.
      if (!sync) await Promise.all([send(), receive()]);
      else for (const one of rank % 2 === 0 ? [send, receive] : [receive, send]) one();
      compare(`send and recv ${name}`, received, (i) => small(previous, i));
      await call('barrier');
    }
  }
  return wrong;
}

/** Reduces floats whose sum depends on the order; returns a digest of every result. */
async function floats(group: Group, counts: number[]): Promise<string[]> {
  const digests: string[] = [];
  for (const count of counts) {
    for (const dtype of ['float32', 'float64', 'bfloat16', 'float16'] as const) {
      const buffer = group.alloc(count, dtype);
      const data = 'data' in buffer ? buffer.data : buffer;
      // Values below 2^5 in magnitude; for the half types, bit patterns of values below 2.
      for (let i = 0; i < count; i++) {
        const value = (Math.random() - 0.5) * 2 ** Math.floor(Math.random() * 12 - 5);
        data[i] =
          dtype === 'float16' || dtype === 'bfloat16' ? 0x3c00 + Math.floor(Math.random() * 0x400) : value;
      }
      await group.allReduce(buffer);
      digests.push(
        createHash('sha256')
          .update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
          .digest('hex'),
      );
    }
  }
  return digests;
}

type Rounded = 'bfloat16' | 'int8';

/** Averages values that the wire cannot represent. Returns the largest error and the bits. */
async function wire(
  group: Group,
  wire: Rounded,
  count: number,
  sync: boolean,
): Promise<[error: number, digest: string]> {
  const value = (rank: number, i: number) => Math.sin(i * 0.37 + rank);
  const x = Float32Array.from({ length: count }, (_, i) => value(group.rank, i));
  const options = { op: 'avg', wire } as const;
  if (sync) group.allReduceSync(x, options);
  else await group.allReduce(x, options);
  let error = 0;
  for (let i = 0; i < count; i++) {
    let sum = 0;
    for (let rank = 0; rank < group.size; rank++) sum += value(rank, i);
    error = Math.max(error, Math.abs(x[i]! - sum / group.size));
  }
  return [error, createHash('sha256').update(new Uint8Array(x.buffer)).digest('hex')];
}

/** Makes rank 3 use another wire than the others. */
async function wires(group: Group): Promise<void> {
  await group.allReduce(new Float32Array(1000), { wire: group.rank === 3 ? 'int8' : 'bfloat16' });
}

/** Reduces `inputs[step][rank]` with wire int8, step by step. Returns the results and the last residual. */
async function feedback(
  group: Group,
  inputs: number[][][],
  sync: boolean,
): Promise<{ results: number[][]; residual: number[] }> {
  const residual = new Float32Array(inputs[0]![0]!.length);
  const results: number[][] = [];
  for (const input of inputs) {
    const x = Float32Array.from(input[group.rank]!);
    if (sync) group.allReduceSync(x, { wire: 'int8', residual });
    else await group.allReduce(x, { wire: 'int8', residual });
    results.push([...x]);
  }
  return { results, residual: [...residual] };
}

/**
 * Runs gradient descent towards ones with the average of both ranks' gradients. The gradient of the first weight
 * has noise two hundred times as large as the other gradients. Returns the largest distance of another weight
 * from 1 at the end.
 */
async function descent(group: Group, hasResidual: boolean): Promise<number> {
  const [weights, gradient, residual] = [new Float32Array(32), new Float32Array(32), new Float32Array(32)];
  const options = { op: 'avg', wire: 'int8', ...(hasResidual ? { residual } : {}) } as const;
  for (let step = 0; step < 1000; step++) {
    for (let i = 0; i < 32; i++) gradient[i] = 0.1 * (weights[i]! - 1);
    gradient[0]! += step % 2 === 0 ? 20 : -20;
    await group.allReduce(gradient, options);
    for (let i = 0; i < 32; i++) weights[i]! -= 0.1 * gradient[i]!;
  }
  return weights.slice(1).reduce((most, weight) => Math.max(most, Math.abs(weight - 1)), 0);
}

/** Makes rank 3 reduce another number of elements than the others. */
async function disagree(group: Group): Promise<void> {
  await group.allReduce(new Float32Array(group.rank === 3 ? 1001 : 1000));
}

/** Works until the test interrupts it. */
async function forever(group: Group, name: CallName, sync: boolean, timeoutMs: number): Promise<void> {
  const everybody = Array.from({ length: group.size }, (_, rank) => rank);
  const work = (await group.subgroup(everybody, { timeoutMs }))!;
  for (let n = 0; ; n++) {
    await calls[name](work, sync);
    if (n === 1) say({ event: 'working' });
  }
}

async function sum(group: Group): Promise<number> {
  const x = Float64Array.of(group.rank);
  await group.allReduce(x);
  return x[0]!;
}

const tasks: Record<string, (group: Group, ...args: never[]) => Promise<unknown>> = {
  verbs,
  floats,
  wire,
  wires,
  feedback,
  descent,
  disagree,
  forever,
  sum,
};

/** Connects to every listening port of this host and sends garbage, as a port scanner would; keeps the connections. */
async function harass(listeners: number): Promise<void> {
  const ports = async () => {
    for (;;) {
      const rows = readFileSync('/proc/self/net/tcp', 'utf8')
        .split('\n')
        .slice(1)
        .map((row) => row.trim().split(/\s+/));
      const listening = rows
        .filter((row) => row[3] === '0A')
        .map((row) => Number.parseInt(row[1]!.split(':')[1]!, 16));
      if (listening.length >= listeners) return listening;
      await sleep(5);
    }
  };
  const magic = Buffer.from('RWGH').reverse();
  const openings = [
    Buffer.alloc(0),
    magic,
    Buffer.concat([magic, Buffer.alloc(44, 1)]),
    Buffer.alloc(100_000, 'GET / HTTP/1.1\r\n'),
  ];
  for (const port of await ports()) {
    for (const opening of openings) {
      const socket = connect(port, process.env.ADDRESS!);
      socket.on('error', () => {}); // a later connection may be refused
      await once(socket, 'connect');
      socket.write(opening);
    }
  }
  say({ event: 'harassed' });
  await sleep(60_000);
}

// Rank 3 delays the other ranks, which have opened their sockets, until the test sends it a signal.
registerBackend('on-signal', async (context) => {
  if (context.rank === 3) {
    const signal = once(process, 'SIGUSR2');
    const alive = setInterval(() => {}, 1_000);
    say({ event: 'waiting' });
    await signal;
    clearInterval(alive);
  }
  return await hostBackend(context);
});

function told(error: unknown): object {
  if (!CollectiveError.is(error)) return { code: 'none', message: String((error as Error)?.stack ?? error) };
  const { code, peers, what, secondary, message } = error;
  return { code, peers, what, secondary, message };
}

const [name, ...args] = process.argv.slice(2) as [string, ...string[]];
if (name === 'harass') {
  await harass(JSON.parse(args[0]!));
} else {
  try {
    const group = await init({ backend: process.env.BACKEND ?? 'auto' });
    try {
      say({ value: await tasks[name]!(group, ...(args.map((arg) => JSON.parse(arg)) as never[])) });
    } catch (error) {
      say({ error: told(error) });
    }
    await group.close();
  } catch (error) {
    say({ error: told(error) });
  }
}
