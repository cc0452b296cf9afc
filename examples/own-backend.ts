// A complete backend: each rank sends its operations through a socket to rank 0, which runs them on the reference
// backend of @ringwise/collectives and answers with the bytes that they wrote. Slow, but it works between processes.
//
//   npx ringwise run --nproc-per-node 3 examples/own-backend.ts
//
// Claim: it serves a group under its own name, and passes the contract suite (test/full/examples/own-backend.test.ts).
import { EventEmitter, once, setMaxListeners } from 'node:events';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import * as rw from '@ringwise/collectives';
import { readOptions } from './options.ts';

/** A request has an operation or an abort. One with neither means that the rank leaves. The reply has the same id. */
type Request = { id?: string; operation?: rw.Operation; abort?: rw.Failure };
type Reply = { id?: string; error?: rw.Failure; source?: number; wrote?: Uint8Array };

export const viaRank0: rw.BackendFactory = async ({ rank, size, store, group }) => {
  const reference = rw.loopback(size, group);
  if (rank === 0) await store.set('folder', await serve(reference));
  const socket = connect(`${Buffer.from(await store.get('folder'))}/${rank}`);
  const [replies, lost] = [new EventEmitter(), new AbortController()];
  setMaxListeners(0, replies, lost.signal); // no limit: each pending operation adds a listener
  const send = talk(socket, 0, (reply: Reply) => replies.emit(`${reply.id}`, reply), lost.abort.bind(lost));
  let calls = 0;
  const ask = async (request: Request): Promise<Reply> => {
    send({ ...request, id: `${++calls}` });
    return (await once(replies, `${calls}`, lost).catch(() => [{ error: lost.signal.reason }]))[0];
  };
  const start = (operation: rw.Operation, settle: rw.Settle) => {
    void ask({ operation }).then(({ error, source, wrote }) => {
      if (wrote) rw.bytesWritten(operation).set(wrote);
      settle(error && new rw.CollectiveError(error, { group, rank, size }), source);
    });
    return null;
  };
  const abort = (cause: rw.CollectiveError) => void ask({ abort: { ...cause } });
  const close = () => ask({}).then(() => void socket.end());
  return { ...(reference[rank] as rw.Backend), name: 'via-rank-0', start, abort, close };
};

/** Serves each rank, also rank 0, through its own socket. Returns the sockets' folder, open to this user only. */
async function serve(ranks: readonly rw.Backend[]): Promise<string> {
  const folder = await mkdtemp(`${tmpdir()}/via-rank-0-`);
  for (const own of ranks) {
    const server = createServer((socket) => {
      server.close();
      rmdir(folder).catch(() => {}); // fails until the last rank has connected and the folder is empty
      const fail = (failure: rw.Failure) => own.abort(new rw.CollectiveError(failure, null));
      const take = ({ id, operation, abort }: Request) => {
        const answer: rw.Settle = (error, source) =>
          send({ id, error: error && { ...error }, source, wrote: operation && rw.bytesWritten(operation) });
        if (operation) own.start(operation, answer);
        else if (abort) fail(abort);
        else void own.close().then(() => answer());
      };
      const send = talk(socket, own.rank, take, fail); // after the rank has left, the abort in `fail` has no effect
    }).listen(`${folder}/${own.rank}`);
  }
  return folder;
}

/** Exchanges messages with rank `peer`, one per line: calls `take` for each. Returns the function that sends one. */
function talk<M>(socket: Socket, peer: number, take: (message: M) => void, lose: (why: rw.Failure) => void) {
  const lines = createInterface(socket).on('error', () => {}); // 'close' follows, and is handled below
  lines.on('line', (line) => line.endsWith('.') && take(deserialize(Buffer.from(line, 'base64')))); // no '.': cut off
  socket.once('close', () => lose(rw.peerLost('via-rank-0', null, peer, 'its connection was closed')));
  return (message: object) => void socket.write(`${serialize(message).toString('base64')}.\n`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  readOptions(import.meta.url, {});
  rw.registerBackend('via-rank-0', viaRank0);
  await using group = await rw.init({ backend: 'via-rank-0' });
  const x = new Float32Array([group.rank + 1]);
  await group.allReduce(x);
  console.log(`rank ${group.rank} of ${group.size}: ${x[0]} by ${group.backend}`);
  if (x[0] !== (group.size * (group.size + 1)) / 2) throw new Error('expected the sum of 1 … size');
}
