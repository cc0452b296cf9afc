// A backend of your own, complete: operations travel to rank 0 over TCP, which runs them on the reference backend of
// @ringwise/collectives and sends back what they wrote. Slow, but it works between processes and hosts.
//
//   npx ringwise run --nproc-per-node 3 examples/own-backend.ts
//
// Claim: it serves a group under its own name, and it passes the contract suite (test/own-backend.test.ts).
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import * as rw from '@ringwise/collectives';

/** An operation, an abort, or neither: the rank leaves. The reply has the same id. */
type Request = { id: string; operation?: rw.Operation; abort?: rw.Failure };
type Reply = { id: string; error?: rw.Failure | undefined; source?: number | undefined; wrote?: Uint8Array };

export const viaRank0: rw.BackendFactory = async ({ rank, size, store, masterHost, localSize, group }) => {
  const host = localSize === size ? '127.0.0.1' : masterHost;
  const reference = rw.loopback(size, group);
  if (rank === 0) await store.set('hub', await openHub(reference, host));
  const [port, token] = Buffer.from(await store.get('hub'))
    .toString()
    .split(' ');
  const socket = connect(Number(port), host);
  socket.write(`${token} ${rank}\n`); // whoever can read the store belongs to the job
  const waiting = new Map<string, (reply: Reply) => void>();
  let lost: rw.Failure | undefined;
  const ask = (request: Omit<Request, 'id'>, done: (reply: Reply) => void) => {
    const id = randomUUID();
    if (lost !== undefined) return queueMicrotask(() => done({ id, error: lost }));
    waiting.set(id, done);
    write(socket, { id, ...request });
  };
  void forEachLine(socket, (line) => {
    const reply: Reply = deserialize(Buffer.from(line, 'base64'));
    waiting.get(reply.id)?.(reply);
    waiting.delete(reply.id);
  }).then(() => {
    lost = rw.peerLost('via-rank-0', null, 0, 'its connection was closed');
    for (const [id, done] of waiting) done({ id, error: lost });
  });
  const start = (operation: rw.Operation, settle: rw.Settle) => {
    ask({ operation }, ({ error, source, wrote }) => {
      if (wrote !== undefined) bytesOf(operation).set(wrote);
      settle(error && new rw.CollectiveError(error, { group, rank, size }), source);
    });
    return null;
  };
  const abort = (cause: rw.CollectiveError) => ask({ abort: { ...cause } }, () => {});
  const close = () => new Promise<void>((left) => ask({}, () => socket.end(left)));
  return { ...(reference[rank] as rw.Backend), name: 'via-rank-0', start, abort, close };
};

/** Rank 0 serves all ranks, itself too. Gives the port, and what a rank has to show. */
async function openHub(ranks: readonly rw.Backend[], host: string): Promise<string> {
  const token = randomUUID();
  let met = 0;
  const server = createServer((socket) => {
    let own: rw.Backend | undefined;
    void forEachLine(socket, (line) => {
      if (own === undefined) {
        if (!line.startsWith(`${token} `)) return void socket.destroy();
        own = ranks[Number(line.slice(token.length))] as rw.Backend;
        return ++met < ranks.length ? undefined : void server.close(); // nobody else will come
      }
      const { id, operation, abort }: Request = deserialize(Buffer.from(line, 'base64'));
      if (operation !== undefined) {
        own.start(operation, (error, source) =>
          write(socket, { id, error: error && { ...error }, source, wrote: bytesOf(operation) }),
        );
      } else if (abort !== undefined) own.abort(new rw.CollectiveError(abort, null));
      else void own.close().then(() => write(socket, { id }));
    }).then(() => {
      const lost = rw.peerLost('via-rank-0', null, own?.rank ?? -1, 'its connection was closed');
      own?.abort(new rw.CollectiveError(lost, null)); // without effect if it has left
    });
  }).listen(0, host);
  await once(server, 'listening');
  return `${(server.address() as AddressInfo).port} ${token}`;
}

function forEachLine(socket: Socket, take: (line: string) => void): Promise<void> {
  createInterface(socket)
    .on('line', take)
    .on('error', () => {}); // 'close' follows
  return new Promise((ended) => socket.once('close', () => ended()));
}

function write(socket: Socket, message: Request | Reply): void {
  socket.write(`${serialize(message).toString('base64')}\n`);
}

/** The memory that an operation writes. */
function bytesOf(operation: rw.Operation): Uint8Array {
  const view = 'output' in operation ? operation.output : 'buffer' in operation ? operation.buffer : null;
  const { buffer, byteOffset, byteLength } = view?.host ?? new Uint8Array(0);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  rw.registerBackend('via-rank-0', viaRank0);
  await using group = await rw.init({ backend: 'via-rank-0' });
  const x = new Float32Array([group.rank + 1]);
  await group.allReduce(x);
  console.log(`rank ${group.rank} of ${group.size}: ${x[0]} by ${group.backend}`);
  if (x[0] !== (group.size * (group.size + 1)) / 2) throw new Error('expected the sum of 1 … size');
}
