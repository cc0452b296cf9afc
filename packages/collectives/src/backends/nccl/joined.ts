// The backend of joinNccl(): NCCL without a host group of the same ranks. The native NCCL group needs a host
// group that can fail it; here that host group contains only this rank and does not fail by itself, so errors
// come only from deadlines and from NCCL's asynchronous errors. There is no `register`: NCCL needs registered memory on
// all ranks or on none, and this rank does not know what the others do.
import { MemoryStore, type Store } from '@ringwise/store';
import type { Verb } from '../../all-verbs.ts';
import type { Backend, Operation, Running, Settle } from '../../backend.ts';
import {
  CollectiveError,
  deviceNotSupported,
  type Failure,
  systemFailure,
  unusableNccl,
} from '../../errors.ts';
import { allocHost } from '../../group/buffer.ts';
import { memoryOf } from '../../group/operation-memory.ts';
import { hostBackend } from '../host.ts';
import { loadNative, type NativeNcclGroup } from '../native.ts';
import { abortNative, Lane } from '../native-lane.ts';
import { isReducibleByNccl } from './nccl.ts';

interface Joining {
  readonly store: Store;
  readonly key: string;
  readonly rank: number;
  readonly size: number;
  readonly timeoutMs: number;
  readonly group: string;
}

/**
 * All ranks must make the same NCCL calls, and the other ranks may run other programs. So there are only the verbs that
 * are a single NCCL call in ringwise and in those programs.
 */
const verbs: readonly Verb[] = ['allReduce', 'reduce', 'broadcast', 'allGather', 'reduceScatter'];

export async function joinedBackend(joining: Joining): Promise<Backend> {
  const { store, key, rank, size, timeoutMs, group } = joining;
  const { nccl } = loadNative();
  const fail = (failure: Failure) => new CollectiveError(failure, { group, rank, size });
  const { driver, reason } = nccl.about();
  if (driver) throw fail(systemFailure('joinNccl', null, driver));
  if (reason) throw fail(unusableNccl('joinNccl', null, reason));
  const id = rank === 0 ? nccl.makeId() : await store.get(key, { timeoutMs });
  if (rank === 0) await store.set(key, id);
  if (id.length !== 128)
    throw fail(
      systemFailure('joinNccl', null, `'${key}' has ${id.length} bytes; a unique id of NCCL has 128`),
    );

  const context = { ...joining, localRank: rank, localSize: size, masterHost: '127.0.0.1', secret: null };
  const only = { rank: 0, size: 1, localRank: 0, localSize: 1, store: new MemoryStore() };
  const host = await hostBackend({ ...context, ...only });
  const lane = new Lane(context);
  let native: NativeNcclGroup | null = null;
  let device = -1;
  let lanes: Pick<Backend, 'start' | 'run'> | null = null;

  /**
   * Returns the lane of the operation's device. The first operation opens its device; all later ones must use
   * the same.
   */
  const laneFor = (operation: Operation) => {
    const { index } = memoryOf(operation)!.device; // every supported verb has a buffer
    if (lanes === null) {
      native = new nccl.NcclGroup(rank, size, index, host.native as object, lane.call, lane.onEnd);
      device = index;
      lanes = lane.operate(native);
      // A failure to connect is reported by the operations that wait for the connection.
      lane.ended(native.connect(id, timeoutMs), 'joinNccl').catch(() => {});
    }
    if (index === device) return lanes;
    throw fail(deviceFault(operation)!); // refuses() finds it, unless both devices are in one call
  };
  const deviceFault = (operation: Operation) => {
    const { index } = memoryOf(operation)!.device;
    if (lanes === null || index === device) return null;
    return deviceNotSupported(operation.verb, 'joined nccl', `cuda:${index}`, `cuda:${device}`);
  };

  let closing: Promise<void> | undefined;
  const leave = async () => {
    if (native !== null) await lane.ended(native.close(), 'close').finally(() => native?.destroy());
    await host.close();
  };
  return {
    contract: 1,
    name: 'joined nccl',
    rank,
    size,
    supports: {
      devices: ['cuda'],
      verbs,
      sync: true,
      reduces: (op, dtype) => isReducibleByNccl(op, dtype, size),
    },
    refuses: deviceFault,
    start: (operation: Operation, settle: Settle): Running | null =>
      laneFor(operation).start(operation, settle),
    run: (operation) => laneFor(operation).run(operation),
    alloc: allocHost,
    // The other ranks do not learn of the abort.
    abort: (cause) => {
      if (native !== null) abortNative(native, cause);
      host.abort(cause);
    },
    close: () => {
      closing ??= leave();
      return closing;
    },
  };
}
