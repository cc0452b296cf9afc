// The mpi backend: the collectives of the MPI that has started this process. What MPI does not do, agreeing about each
// call, deadlines and one root cause for all, is added in native/mpi; its design is at the top of native/mpi/group.h.
import { allVerbs } from '../all-verbs.ts';
import type { Operation } from '../backend.ts';
import { CollectiveError, type Site, tooLongForMpi } from '../errors.ts';
import { allocHost } from '../group/buffer.ts';
import { mpiNotUsable, notOneWorld, srunWithoutMpi, unknownMpi } from '../init/errors.ts';
import { exchange } from '../init/exchange.ts';
import { isReducible } from '../reduce-ops.ts';
import type { BackendContext, BackendFactory } from './context.ts';
import {
  loadNative,
  loadNativeMpi,
  type NativeMpi,
  type NativeMpiGroup,
  type NativeWorld,
} from './native.ts';
import { Lane } from './native-lane.ts';

/** What a rank tells the others: its rank in MPI's world, how large that is, and rank 0 the tag of the new group. */
type Card = readonly [rank: number, size: number, tag: number];

/** The addon for the MPI that has started this process. */
export function loadMpi(): NativeMpi {
  const { setVariable } = loadNative();
  // UCX, on which MPICH stands, patches brk and munmap of the process to keep a cache of registered memory. V8 maps its
  // code right behind the heap of malloc, where the heap cannot grow; there the patched brk took memory away that was in
  // use, in about one process of thirty.
  setVariable('UCX_MEM_EVENTS', 'n');
  // Where ranks share cores, Open MPI gives the core away in every look that finds nothing. How to wait is decided in
  // native/mpi/group.cc, which would find out about an oversubscribed machine too late.
  setVariable('OMPI_MCA_mpi_yield_when_idle', '0');
  return loadNativeMpi(kindsOfMpi(process.env));
}

export const mpiBackend: BackendFactory = async (context) => {
  const { rank, size, group } = context;
  const mpi = loadMpi();
  const site = { group, rank, size };
  const cards = await meet(context, enter(mpi, site));
  const lane = new Lane(context);
  const native = new mpi.MpiGroup(rank, size, lane.call, lane.onEnd);
  open.add(native);
  const members = cards.map(([member]) => member);
  try {
    await lane.ended(native.connect(members, cards[0]![2]), 'init');
  } catch (error) {
    destroy(native);
    throw error;
  }
  const { start, run } = lane.operate(native);
  let closing: Promise<void> | undefined;
  return {
    contract: 1,
    name: 'mpi',
    rank,
    size,
    supports: { devices: ['cpu'], verbs: allVerbs, sync: true, reduces: isReducible },
    start: (operation, settle) => {
      refuseLong(operation, site);
      return start(operation, settle);
    },
    run: (operation) => {
      refuseLong(operation, site);
      return run(operation);
    },
    alloc: allocHost,
    abort: (cause) => native.abort(cause.what),
    close: () => {
      closing ??= lane.ended(native.close(), 'close').finally(() => destroy(native));
      return closing;
    },
  };
};

/** Groups of this thread. MPI can only end without them. */
const open = new Set<NativeMpiGroup>();

function destroy(native: NativeMpiGroup): void {
  open.delete(native);
  native.destroy();
}

let hasEntered = false;

/** Starts MPI where it does not run, and sees to its end. */
function enter(mpi: NativeMpi, site: Site): NativeWorld {
  let world: NativeWorld;
  try {
    world = mpi.world();
  } catch (error) {
    throw new CollectiveError(mpiNotUsable((error as Error).message), site);
  }
  if (hasEntered) return world;
  hasEntered = true;
  // Also by process.exit(). A rank that has failed must not wait there for ranks that may be waiting for it.
  process.once('exit', (code) => {
    for (const native of open) destroy(native);
    // MPICH's mpiexec ends the others without a word, and well, where a rank ends well without ending MPI.
    if (!mpi.leave(code === 0)) process.exitCode ||= 1;
  });
  return world;
}

/** The implementations of MPI to try, in order: the one whose launcher has started this process, if it tells. */
export function kindsOfMpi(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known = ['openmpi', 'mpich'];
  const has = (...names: readonly string[]) => names.some((name) => env[name] !== undefined);
  const chosen = env.RINGWISE_MPI;
  if (chosen && !known.includes(chosen)) throw new CollectiveError(unknownMpi(chosen), null);
  const isOpenMpi = has('OMPI_COMM_WORLD_SIZE', 'PMIX_RANK');
  const isMpich = has('PMI_SIZE', 'PMI_RANK');
  // MPI_Init of Open MPI would end the process, and MPICH would take it for a world of one.
  if (has('SLURM_PROCID') && !isOpenMpi && !isMpich) throw new CollectiveError(srunWithoutMpi(), null);
  if (chosen) return [chosen];
  if (isOpenMpi) return ['openmpi'];
  return isMpich ? ['mpich'] : known;
}

async function meet(context: BackendContext, world: NativeWorld): Promise<readonly Card[]> {
  const { store, rank, size, group, timeoutMs } = context;
  // Groups that are made at the same time are told apart by their tags: by their leader, and by its call, in whatever thread.
  // MPI promises tags up to 32767.
  const mine: Card = [world.rank, world.size, (world.rank * 64 + (world.calls % 64)) % 32_768];
  const payloads = await exchange(store, rank, size, Buffer.from(JSON.stringify(mine)), timeoutMs);
  const cards = payloads.map((bytes) => JSON.parse(Buffer.from(bytes).toString()) as Card);
  const sizes = cards.map(([, worldSize]) => worldSize);
  const isOneWorld = new Set(cards.map(([member]) => member)).size === size && new Set(sizes).size === 1;
  if (isOneWorld) return cards;
  throw new CollectiveError(notOneWorld(sizes, world.version), { group, rank, size });
}

/** The functions of MPI 3 that move parts count them in 32 bits. */
function refuseLong(operation: Operation, site: Site): void {
  const whole = wholeOf(operation, site.size);
  if (whole > 0x7fffffff) throw new CollectiveError(tooLongForMpi(operation.verb, whole), site);
}

/** Elements of all parts together; the same on all ranks, but for allToAll. */
function wholeOf(operation: Operation, size: number): number {
  switch (operation.verb) {
    case 'allGather':
      return operation.output.count;
    case 'gather':
      return operation.counts?.reduce((sum, count) => sum + count) ?? operation.input.count * size;
    case 'scatter':
      return operation.counts?.reduce((sum, count) => sum + count) ?? operation.output.count * size;
    case 'reduceScatter':
      return operation.input.count;
    case 'allToAll':
      return Math.max(operation.input.count, operation.output.count);
    default:
      return 0;
  }
}
