// The typed surface of the native addon, and where it is found. Nothing else knows the addon.
import { createRequire } from 'node:module';
import { CollectiveError } from '../errors.ts';
import { nativeMissing, nativeMpiMissing } from '../init/errors.ts';

/** How an operation failed: `code` and the verb lists index the tables in backends/native-lane.ts. */
export interface NativeFailure {
  readonly code: number;
  /** The rank that noticed it first. */
  readonly origin: number;
  readonly peers: number[];
  readonly text: string;
  /** The memory of the operation is used all the same, for ever. */
  readonly isLent?: true;
}

export interface NativePeer {
  readonly rank: number;
  /** On this host: reached by unix socket and shared memory. */
  readonly local: boolean;
  readonly unixName: string;
  /** Numeric IP address, and the port that the peer listens on. */
  readonly host: string;
  readonly port: number;
  /** 32 bytes that this rank shows to the peer, and that it expects from it. */
  readonly mine: Uint8Array;
  readonly theirs: Uint8Array;
}

/** Where the numbers of an operation are in the array that it is handed over with. They are those of Op in native/coll/op.h; the order is that of Field in native/node/lane_object.h. */
export const NativeField = {
  verb: 0,
  dtype: 1,
  reduce: 2,
  /** Of broadcast, reduce, gather and scatter; send and recv: the peer, -1 for any sender. */
  root: 3,
  /** send and recv; collectives: a digest of what was packed into their buffers, 0 for nothing. */
  tag: 4,
  seq: 5,
  count: 6,
  timeoutMs: 7,
  factor: 8,
  /** 1: the output is the input. */
  inPlace: 9,
  /** allReduce: the index in wires of backends/native-lane.ts. */
  wire: 10,
  /** Of memory of a device: the CUstream that it is ordered on. */
  stream: 11,
  /** Of a collective: what labelOf() has given for its label; 0 for none. */
  label: 12,
} as const;
export const nativeFields = 13;

/** Of a device: the address. */
type Memory = NodeJS.TypedArray | number | null;

/** The memory of an operation. Counts are copied at the call. */
export type NativeMemory = [
  input: Memory,
  /** null for what works in place. */
  output?: Memory,
  /** Elements by rank where parts differ; allToAll: what this rank sends to each. */
  counts?: Float64Array | null,
  /** allToAll with counts: what this rank receives from each. */
  recvCounts?: Float64Array | null,
  /** allReduce by wire int8, where it has one. */
  residual?: Memory,
];

/** One rank's end of a group, and the thread that runs its operations. All methods belong to the JavaScript thread. */
export interface NativeLane {
  /** Queues the operation in `call`; returns its id. The caller keeps the memory alive until it has settled. */
  readonly start: (...memory: NativeMemory) => number;
  /** Runs the operation in `call` to its end; the sender's rank for a recv, else null. Does not call `settle` for it. */
  readonly run: (...memory: NativeMemory) => NativeFailure | number | null;
  /** The number of a label, for `call`. Absent where operations are not compared. */
  readonly labelOf?: (label: string) => number;
  /** Blocks until the operation has ended, then calls `settle` for all that have. */
  readonly wait: (id: number) => void;
  /** What has been started goes on by itself from now on, without wait(). Without it, it does so anyway. */
  readonly requestProgress?: () => void;
  /** The stream of the operation's memory waits for it; calls `settle` for all that have ended. */
  readonly fence?: (id: number) => void;
  readonly abort: (text: string) => void;
  /** Says goodbye once everything pending has ended; returns an id that `settle` will be called with. */
  readonly close: () => number;
  /** Frees threads, sockets and memory. What is pending never settles. */
  readonly destroy: () => void;
}

/**
 * `source`: the sender's rank for a recv that ended well, else -1. `isLent`: the operation failed, and its memory is
 * used all the same, for ever.
 */
type NativeSettle = (id: number, failure: NativeFailure | null, source: number, isLent: boolean) => void;

/** Of the host backend. Listens from construction on. */
export interface NativeGroup extends NativeLane {
  readonly unixName: string;
  readonly port: number;
  /** Meets all peers on the lane; returns an id that `settle` will be called with. */
  readonly connect: (peers: readonly NativePeer[], timeoutMs: number) => number;
  /** Zeroed memory that all ranks of the host reach; null where there is none. Freed with the last array on it. */
  readonly alloc: (bytes: number) => ArrayBuffer | null;
  /** FlightEntry[] as JSON. */
  readonly flightRecord: () => string;
  /**
   * Writes the record to the file when the group fails and when the process gets SIGUSR2. `head` is JSON, an object
   * that goes in front. To be called before connect().
   */
  readonly dumpFlightTo: (path: string, head: string) => void;
}

/** Of the mpi backend. */
export interface NativeMpiGroup extends NativeLane {
  /**
   * Makes a communicator of these ranks of MPI's world, on the lane, which waits for all of them; returns an id that
   * `settle` will be called with. `tag` tells groups apart that a process makes at the same time.
   */
  readonly connect: (members: readonly number[], tag: number) => number;
}

/**
 * Two streams of a CUDA device, down to slots of host memory and up from them, in the order of the calls. Throws what the
 * driver reports, and for a device that is not there why.
 */
export interface NativeDeviceLane {
  /** Whether the driver copies the slots without a step of its own. */
  readonly isRegistered: boolean;
  /** What is copied from now on comes after all that this CUstream has been given. */
  readonly follow: (stream: bigint) => void;
  /** What the CUstream is given from now on comes after all that has been sent up. */
  readonly lead: (stream: bigint) => void;
  /** What is sent down to the slot comes after what was sent up from it. */
  readonly begin: (slot: number) => void;
  /** Offset in the slot and length in bytes. */
  readonly down: (slot: number, offset: number, address: bigint, bytes: number) => void;
  /**
   * Calls onLanding(id) once all that was sent down is there, or the device has failed, which awaitLanding() tells. Keeps the event
   * loop alive until rest().
   */
  readonly land: (slot: number, id: number) => void;
  /** Blocks until all that was sent down to the slot is there. */
  readonly awaitLanding: (slot: number) => void;
  readonly up: (slot: number, offset: number, address: bigint, bytes: number) => void;
  /** After the last up() from the slot. */
  readonly end: (slot: number) => void;
  readonly rest: () => void;
  /** Waits for both streams, up to 5 s; if they are stuck, the memory is never freed. Nothing may be called afterwards. */
  readonly close: () => void;
}

/** Of the nccl backend. */
export interface NativeNcclGroup extends NativeLane {
  /** Makes the communicator; returns an id that `settle` will be called with. What is started before waits for it. */
  readonly connect: (id: Uint8Array, timeoutMs: number) => number;
  /** What is started, or captured, until release() goes to NCCL as one group. Nothing may wait for it before. */
  readonly hold: () => void;
  /** Whether fence() of that operation would not block for other ranks. Gives NCCL a moment to take it. */
  readonly isTaken: (id: number) => boolean;
  readonly release: () => void;
  /** Registers memory for what is started from now on; returns its number. */
  readonly registerBuffer: (address: bigint, bytes: number) => number;
  /** Of a number; returns an id that `settle` will be called with when the memory is free. */
  readonly deregisterBuffer: (registration: number) => number;
  /**
   * Makes the operation in `call` part of the graph that the stream of its memory is being captured into; returns its id. Blocks
   * until NCCL has taken it; where it is held, release() does.
   */
  readonly capture: (...memory: NativeMemory) => number;
  /** What that stream is captured to do next comes after the operation; calls `settle` for all that have ended. */
  readonly join: (id: number) => void;
  /** The capture is given up; calls `settle` for all that have ended. */
  readonly forget: (id: number) => void;
  /** Ahead of a graph with such operations, which comes after all operations until now; why there must be none, or null. */
  readonly beginRun: (stream: bigint) => NativeFailure | null;
  /** The graph has been given to the stream; returns an id that `settle` will be called with when it has run. */
  readonly endRun: (stream: bigint, timeoutMs: number) => number;
  /** Ends everything on this rank; `code` as in NativeFailure. */
  readonly fail: (code: number, peers: readonly number[], text: string) => void;
}

export interface NativeNccl {
  readonly NcclGroup: new (
    rank: number,
    size: number,
    /** Index of the CUDA device. */
    device: number,
    /** The HostGroup of the same ranks: when it fails, so does this one. To be destroyed after it. */
    host: object,
    call: Float64Array,
    settle: NativeSettle,
  ) => NativeNcclGroup;
  /** What rank 0 gives to all for connect(): ncclUniqueId. Throws without the library. */
  readonly makeId: () => Uint8Array;
  /**
   * Opens the driver, and the library where there are devices. `driver` and `reason`: why there is no device, why the
   * library cannot be used; else empty.
   */
  readonly about: () => {
    readonly devices: number;
    readonly driver: string;
    readonly library: string;
    readonly version: string;
    /** Whether the library reduces floats of 8 bits on every device of this process. */
    readonly reducesFloat8: boolean;
    readonly reason: string;
  };
}

/** The kernels of reproducible/grid.ts; a dtype is its index in dtypes. */
export interface NativeGrid {
  readonly raise: (dtype: number, input: Memory, exponents: Memory) => void;
  readonly add: (dtype: number, input: Memory, exponents: Memory, words: Memory) => void;
  readonly finish: (
    dtype: number,
    words: Memory,
    exponents: Memory,
    addends: number,
    divisor: number,
    output: Memory,
  ) => void;
}

export interface NativeAddon {
  readonly grid: NativeGrid;
  readonly DeviceLane: new (
    device: number,
    memory: Uint8Array,
    slots: number,
    onLanding: (id: number) => void,
  ) => NativeDeviceLane;
  readonly nccl: NativeNccl;
  readonly HostGroup: new (
    rank: number,
    size: number,
    host: string,
    /** The numbers of the operation that the next start() or run() is about, by NativeField. Read at that call. */
    call: Float64Array,
    settle: NativeSettle,
    /** Where in the program this thread is: called inside start() and run(), seldom. Must not touch the group. */
    where: () => string,
  ) => NativeGroup;
  /** From now on a crash of this process is told on this descriptor (native/base/crash_words.h). Once per process. */
  readonly reportCrashes: (fd: number) => void;
  /** Sets an environment variable for the libraries of this process, unless it is set; in workers process.env is a copy. */
  readonly setVariable: (name: string, value: string) => void;
  /** The names of a verb's algorithms between hosts; the first fits everywhere. */
  readonly algorithms: (verb: number) => string[];
}

export interface NativeWorld {
  readonly rank: number;
  readonly size: number;
  readonly version: string;
  readonly calls: number;
}

/** mpi-openmpi.node and mpi-mpich.node. */
export interface NativeMpi {
  readonly MpiGroup: new (
    rank: number,
    size: number,
    /** As for HostGroup. */
    call: Float64Array,
    settle: NativeSettle,
  ) => NativeMpiGroup;
  /**
   * This process among all that were started together. Starts MPI, which waits until all of them do so. Throws where
   * MPI cannot be used from several threads, or has ended. `calls` counts those of all threads.
   */
  readonly world: () => NativeWorld;
  /**
   * This thread ends, and its groups are destroyed. With the last thread MPI ends, which waits until all processes of the
   * job have come so far; not in a process that is out of order: its launcher then ends the others. Returns whether it is
   * in order, which no process is where a group ended in the middle of an operation.
   */
  readonly leave: (isInOrder: boolean) => boolean;
}

export const loadNative = (): NativeAddon => findNative().addon;

/** Loads coll.node: from the folder RINGWISE_NATIVE_PATH, or from this platform's package. `path` is where it was. */
export function findNative(): { readonly addon: NativeAddon; readonly path: string } {
  const { addon, path, tried } = findAddon<NativeAddon>('coll', '');
  if (addon === undefined) throw new CollectiveError(nativeMissing(platform, tried), null);
  if (crashFd !== undefined) addon.reportCrashes(crashFd);
  return { addon, path };
}

/** Loads the first of the addons for these implementations of MPI that can be loaded. */
export function loadNativeMpi(kinds: readonly string[]): NativeMpi {
  const tried: string[] = [];
  for (const kind of kinds) {
    const found = findAddon<NativeMpi>(`mpi-${kind}`, 'mpi-');
    if (found.addon !== undefined) return found.addon;
    tried.push(...found.tried);
  }
  throw new CollectiveError(nativeMpiMissing(platform, tried), null);
}

/** Where the launcher of this process wants to hear of crashes. */
const crashFd = (globalThis as { [crashSymbol: symbol]: number | undefined })[Symbol.for('ringwise.crashFd')];

const platform = `${process.platform}-${process.arch}`;

type Found<T> =
  | { readonly addon: T; readonly path: string; readonly tried: readonly string[] }
  | { readonly addon?: undefined; readonly path?: undefined; readonly tried: readonly string[] };

function findAddon<T>(name: string, packagePrefix: string): Found<T> {
  const require = createRequire(import.meta.url);
  const folder = process.env.RINGWISE_NATIVE_PATH;
  const tried: string[] = [];
  for (const path of [
    folder && `${folder}/${name}.node`,
    `@ringwise/native-${packagePrefix}${platform}/${name}.node`,
  ]) {
    if (!path) continue;
    try {
      return { addon: require(path) as T, path: require.resolve(path), tried };
    } catch (error) {
      tried.push(`${path} (${(error as Error).message.split('\n')[0]})`);
    }
  }
  return { tried };
}
