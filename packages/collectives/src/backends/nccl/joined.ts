// The backend of joinNccl(): NCCL without a host group of the same ranks beside it. The group that ends what NCCL cannot is one
// of this rank alone, which never fails: NCCL's own deadline and its asynchronous errors are all that is left. It has no
// `register`: nobody knows whether the others pass registered memory, and NCCL wants that from all ranks or from none.
import { MemoryStore, type Store } from '@ringwise/store';
import type { Verb } from '../../all-verbs.ts';
import type { Backend, Operation, Running, Settle } from '../../backend.ts';
import { CollectiveError, deviceNotSupported, type Failure, systemFailure } from '../../errors.ts';
import { allocHost } from '../../group/buffer.ts';
import { memoryOf } from '../../group/operation-memory.ts';
import { hostBackend } from '../host.ts';
import { loadNative, type NativeNcclGroup } from '../native.ts';
import { Lane } from '../native-lane.ts';
import { isReducibleByNccl } from './nccl.ts';

interface Joining {
  readonly store: Store;
  readonly key: string;
  readonly rank: number;
  readonly size: number;
  readonly timeoutMs: number;
  readonly group: string;
}

/** Those for which other programs, too, call one function of NCCL. */
const verbs: readonly Verb[] = ['allReduce', 'reduce', 'broadcast', 'allGather', 'reduceScatter'];

export async function joinedBackend(joining: Joining): Promise<Backend> {
  const { store, key, rank, size, timeoutMs, group } = joining;
  const { nccl } = loadNative();
  const fail = (failure: Failure) => new CollectiveError(failure, { group, rank, size });
  const { driver, reason } = nccl.about();
  if (driver || reason) throw fail(systemFailure('joinNccl', null, driver || reason));
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

  /** Opens the device of the first buffer; all others must lie there. */
  const laneFor = (operation: Operation) => {
    const { index } = memoryOf(operation)!.device; // none of the verbs is without
    if (lanes === null) {
      native = new nccl.NcclGroup(rank, size, index, host.native as object, lane.call, lane.onEnd);
      device = index;
      lanes = lane.operate(native);
      // Whoever waits for an operation hears of it; there is nobody else to tell.
      lane.ended(native.connect(id, timeoutMs), 'joinNccl').catch(() => {});
    }
    if (index === device) return lanes;
    throw fail(deviceNotSupported(operation.verb, 'joined nccl', `cuda:${index}`, `cuda:${device}`));
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
    supports: { devices: ['cuda'], verbs, sync: true, reduces: isReducibleByNccl },
    start: (operation: Operation, settle: Settle): Running | null =>
      laneFor(operation).start(operation, settle),
    run: (operation) => laneFor(operation).run(operation),
    alloc: allocHost,
    // The others are not told.
    abort: (cause) => {
      native?.abort(cause.what);
      host.abort(cause);
    },
    close: () => {
      closing ??= leave();
      return closing;
    },
  };
}
