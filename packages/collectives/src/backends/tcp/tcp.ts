// The tcp backend: Node's sockets between all ranks, in TypeScript. It works wherever Node does, without a binary. It
// may not block the JavaScript thread, so there are no Sync verbs, and its communication and arithmetic take time from
// that thread.
//
//   connect.ts       connects to the other ranks and authenticates both sides
//   group.ts         connections, failures and closing of one rank
//   collectives.ts   the handshake before each collective; plan.ts plans the transfers, execution.ts makes them
//   messages.ts      send and recv
import { constants } from 'node:buffer';
import { allVerbs } from '../../all-verbs.ts';
import type { Operation } from '../../backend.ts';
import { bufferTooLarge, type Failure } from '../../errors.ts';
import { allocHost } from '../../group/buffer.ts';
import { buffersOf } from '../../group/operation-memory.ts';
import { isReducible } from '../../reduce-ops.ts';
import type { BackendFactory } from '../context.ts';
import { withSystemErrors } from '../system-errors.ts';
import { connectAll } from './connect.ts';
import { TcpGroup } from './group.ts';

export const tcpBackend: BackendFactory = async (context) => {
  const { group: name, rank, size } = context;
  const connections = await withSystemErrors(context, () => connectAll(context));
  const group = new TcpGroup({ group: name, rank, size }, connections);
  return {
    contract: 1,
    name: 'tcp',
    rank,
    size,
    supports: { devices: ['cpu'], verbs: allVerbs, sync: false, reduces: isReducible },
    refuses: tooLarge,
    start: (operation, settle) => {
      group.start(operation, settle);
      return null;
    },
    run: () => {
      throw new Error('bug: the tcp backend has no Sync verbs; please report it.');
    },
    alloc: allocHost,
    failure: () => group.failure,
    losses: () => group.losses,
    abort: (cause) => group.abort(cause),
    close: () => group.close(),
  };
};

/** Returns why an operation cannot be run: all memory is sent as a Uint8Array, whose length is limited. */
function tooLarge(operation: Operation): Failure | null {
  for (const { host } of buffersOf(operation)) {
    const bytes = host?.byteLength ?? 0;
    if (bytes > constants.MAX_LENGTH)
      return bufferTooLarge(operation.verb, 'tcp', bytes, constants.MAX_LENGTH);
  }
  return null;
}
