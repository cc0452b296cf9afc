// The tcp backend: Node's sockets between all ranks, in TypeScript. It works wherever Node does, without a binary. It
// may not block the JavaScript thread, so there are no Sync verbs, and its communication and arithmetic take time from
// that thread.
//
//   connect.ts       connects to the other ranks and authenticates both sides
//   group.ts         connections, failures and closing of one rank
//   collectives.ts   the handshake before each collective; plan.ts plans the transfers, execution.ts makes them
//   messages.ts      send and recv
import { allVerbs } from '../../all-verbs.ts';
import { allocHost } from '../../group/buffer.ts';
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
