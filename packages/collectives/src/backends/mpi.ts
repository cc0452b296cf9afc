// The mpi backend: runs collectives on the MPI library that started this process. native/mpi adds the features that MPI
// lacks: comparison of calls, deadlines, and one root cause for all ranks. native/mpi/group.h describes the design.
import { allVerbs } from '../all-verbs.ts';
import type { Operation } from '../backend.ts';
import { CollectiveError, type Failure, type Site, tooLongForMpi } from '../errors.ts';
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
import { abortNative, Lane } from './native-lane.ts';

/**
 * Data of one rank, sent to all ranks: its rank in MPI's world, the size of that world, and a tag. The new group
 * uses the tag of rank 0.
 */
type Card = readonly [rank: number, size: number, tag: number];

/** Loads the addon for the MPI that started this process. */
export function loadMpi(): NativeMpi {
  const { setVariable } = loadNative();
  // UCX, which MPICH uses, patches the process's brk and munmap to cache registered memory. V8 maps its code
  // directly behind malloc's heap, so that the heap cannot grow there. The patched brk then took away memory in
  // use, in about one process of thirty.
  setVariable('UCX_MEM_EVENTS', 'n');
  // When ranks share cores, Open MPI yields the core after every poll that finds nothing. native/mpi/group.cc
  // decides itself how to wait, and with this yield it would notice an oversubscribed machine too late.
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
    await lane.ended(native.connect(members, cards[0]![2], context.timeoutMs), 'init');
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
    refuses: (operation) => lengthFault(operation, size),
    start,
    run,
    alloc: allocHost,
    abort: (cause) => abortNative(native, cause),
    close: () => {
      closing ??= lane.ended(native.close(), 'close').finally(() => destroy(native));
      return closing;
    },
  };
};

/** Open groups of this thread. MPI can only be finalized after they are destroyed. */
const open = new Set<NativeMpiGroup>();

function destroy(native: NativeMpiGroup): void {
  open.delete(native);
  native.destroy();
}

let hasEntered = false;

/** Starts MPI if it is not running, and arranges for its end when the process exits. */
function enter(mpi: NativeMpi, site: Site): NativeWorld {
  let world: NativeWorld;
  try {
    world = mpi.world();
  } catch (error) {
    throw new CollectiveError(mpiNotUsable((error as Error).message), site);
  }
  if (hasEntered) return world;
  hasEntered = true;
  // Runs on process.exit(), too. A rank that has failed must not wait here for ranks that may wait for it.
  process.once('exit', (code) => {
    for (const native of open) destroy(native);
    // If a rank exits with code 0 without finalizing MPI, MPICH's mpiexec ends the other ranks silently and
    // reports success.
    if (!mpi.leave(code === 0)) process.exitCode ||= 1;
  });
  return world;
}

/**
 * Returns the MPI implementations to try, in order; only one if RINGWISE_MPI names it or its launcher has set
 * variables in `env`. Throws if RINGWISE_MPI names an unknown one, or if srun started this process without MPI.
 */
export function kindsOfMpi(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known = ['openmpi', 'mpich'];
  const has = (...names: readonly string[]) => names.some((name) => env[name] !== undefined);
  const chosen = env.RINGWISE_MPI;
  if (chosen && !known.includes(chosen)) throw new CollectiveError(unknownMpi(chosen), null);
  const isOpenMpi = has('OMPI_COMM_WORLD_SIZE', 'PMIX_RANK');
  const isMpich = has('PMI_SIZE', 'PMI_RANK');
  // Without an MPI from srun, Open MPI's MPI_Init would end the process, and MPICH's would make a world of one
  // rank. The body of an sbatch script also has SLURM_PROCID, but only srun's job steps have SLURM_STEP_ID.
  if (has('SLURM_PROCID') && has('SLURM_STEP_ID') && !isOpenMpi && !isMpich)
    throw new CollectiveError(srunWithoutMpi(), null);
  if (chosen) return [chosen];
  if (isOpenMpi) return ['openmpi'];
  return isMpich ? ['mpich'] : known;
}

async function meet(context: BackendContext, world: NativeWorld): Promise<readonly Card[]> {
  const { store, rank, size, group, timeoutMs } = context;
  // The tag distinguishes groups that are made at the same time: from this rank in MPI's world, and the number of
  // calls of world() by all threads of this process. MPI guarantees tags up to 32767.
  const mine: Card = [world.rank, world.size, (world.rank * 64 + (world.calls % 64)) % 32_768];
  const payloads = await exchange(store, rank, size, Buffer.from(JSON.stringify(mine)), timeoutMs);
  const cards = payloads.map((bytes) => JSON.parse(Buffer.from(bytes).toString()) as Card);
  const sizes = cards.map(([, worldSize]) => worldSize);
  const isOneWorld = new Set(cards.map(([member]) => member)).size === size && new Set(sizes).size === 1;
  if (isOneWorld) return cards;
  throw new CollectiveError(notOneWorld(sizes, world.version), { group, rank, size });
}

/**
 * Returns a failure if the parts of an operation exceed 2^31 - 1 elements in total: the MPI 3 functions use 32-bit
 * counts.
 */
function lengthFault(operation: Operation, size: number): Failure | null {
  const whole = wholeOf(operation, size);
  return whole > 0x7fffffff ? tooLongForMpi(operation.verb, whole) : null;
}

/**
 * Returns the number of elements of all parts together; 0 for verbs without parts. Equal on all ranks, except for
 * allToAll.
 */
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
