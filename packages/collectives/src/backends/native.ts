// The types of the native addons, and the functions that find and load them. No other file loads the addons.
import { CollectiveError } from '../errors.ts';
import { nativeMpiMissing } from '../init/errors.ts';
import { findAddon, platformOf, thisHost } from './find-addon.ts';
import { nativeFacts, whyNoNative } from './why-no-native.ts';

/** Why an operation failed. `code` is an index into `codes` of backends/native-lane.ts. */
export interface NativeFailure {
  readonly code: number;
  /** The rank that noticed the failure first. */
  readonly origin: number;
  readonly peers: number[];
  readonly text: string;
  /**
   * Set if the transport (MPI, or a device) may go on using the operation's memory after the failure, for as long as
   * the process lives.
   */
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
  /**
   * 32 bytes each: the token that this rank shows to the peer, and the token that it expects from the peer.
   */
  readonly mine: Uint8Array;
  readonly theirs: Uint8Array;
}

/**
 * Index of each number of an operation in the array that carries it to the native group. The numbers are the
 * members of Op in native/coll/op.h; the indices are those of Field in native/node/lane_object.h.
 */
export const NativeField = {
  verb: 0,
  dtype: 1,
  reduce: 2,
  /** Root of broadcast, reduce, gather and scatter. For send and recv the peer; -1 receives from any rank. */
  root: 3,
  /** Tag of send and recv. For collectives their `packing` (see backend.ts). */
  tag: 4,
  seq: 5,
  count: 6,
  timeoutMs: 7,
  factor: 8,
  /** 1 if the output is the input. */
  inPlace: 9,
  /** Wire of an allReduce: index into `wires` of backends/native-lane.ts. */
  wire: 10,
  /** For device memory: the CUstream that orders the operation. */
  stream: 11,
  /** Label of a collective: a number from labelOf(); 0 for none. */
  label: 12,
  /** 1 for a reduction whose bits do not depend on the order of the additions. */
  reproducible: 13,
} as const;
export const nativeFields = 14;

/** Host memory as a typed array, device memory as its address. */
type Memory = NodeJS.TypedArray | number | null;

/** Memory arguments of an operation. The native group copies the counts during the call, not the buffers. */
export type NativeMemory = [
  input: Memory,
  /** Null for operations in place. */
  output?: Memory,
  /** Elements of each rank's part if parts differ. allToAll: elements that this rank sends to each rank. */
  counts?: Float64Array | null,
  /** allToAll with counts: elements that this rank receives from each rank. */
  recvCounts?: Float64Array | null,
  /** allReduce with wire int8: the residual, if the operation has one. */
  residual?: Memory,
];

/**
 * One rank's end of a native group, including its lane (progress thread). All methods belong to the
 * JavaScript thread.
 */
export interface NativeLane {
  /**
   * Queues the operation that `call` describes and returns its id. The caller keeps the memory alive until it
   * settles.
   */
  readonly start: (...memory: NativeMemory) => number;
  /**
   * Runs the operation that `call` describes and blocks until it has ended. Returns the failure, the sender's
   * rank for a recv, or null. Does not call `settle` for this operation.
   */
  readonly run: (...memory: NativeMemory) => NativeFailure | number | null;
  /**
   * Returns the number that stands for a label in `call`. Absent if the backend does not compare operations.
   */
  readonly labelOf?: (label: string) => number;
  /** Blocks until the operation has ended, then calls `settle` for all operations that have ended. */
  readonly wait: (id: number) => void;
  /** Makes all started operations progress without wait(). If absent, they always do. */
  readonly requestProgress?: () => void;
  /**
   * Works on a started operation on this thread for less than 50 µs, then calls `settle` for all operations that have
   * ended. If it has not ended, it makes progress without wait() from then on.
   */
  readonly attempt?: (id: number) => void;
  /**
   * Makes the stream of the operation's memory wait for it; then calls `settle` for all operations that have
   * ended.
   */
  readonly fence?: (id: number) => void;
  /**
   * Fails everything pending and later on all ranks; the nccl group does on this rank only. `code` as in NativeFailure.
   */
  readonly abort: (code: number, peers: readonly number[], text: string) => void;
  /**
   * Tells the peers that this rank leaves, once everything pending has ended. Returns an id that `settle` is
   * called with.
   */
  readonly close: () => number;
  /** Frees threads, sockets and memory. Pending operations never settle. */
  readonly destroy: () => void;
}

/**
 * Called on the JavaScript thread when the operation `id` has ended. `source` is the sender's rank for a recv
 * that succeeded, else -1. `isLent` is true if the operation failed and its memory stays in use for the rest
 * of the process.
 */
type NativeSettle = (id: number, failure: NativeFailure | null, source: number, isLent: boolean) => void;

/** Group of the host backend. Listens for connections once constructed. */
export interface NativeGroup extends NativeLane {
  readonly unixName: string;
  readonly port: number;
  /** Connects to all peers on the lane. Returns an id that `settle` is called with. */
  readonly connect: (peers: readonly NativePeer[], timeoutMs: number) => number;
  /**
   * Returns zeroed memory that all ranks of this host can reach, or null if there is none. It is freed with
   * the last array on it.
   */
  readonly alloc: (bytes: number) => ArrayBuffer | null;
  /** Returns whether the group runs reproducible reductions of this verb. Call it after connect() has ended. */
  readonly reproduces: (verb: number) => boolean;
  /**
   * Returns the root cause once the group has failed, or the loss of a rank whose connection has ended; null if there
   * is neither.
   */
  readonly failure: () => NativeFailure | null;
  /** Returns the loss of all ranks that are lost so far, also after another failure; null if none is. */
  readonly losses: () => NativeFailure | null;
  /** Returns the flight record, a FlightEntry[], as JSON. */
  readonly flightRecord: () => string;
  /**
   * Makes the group write its flight record to the file when it fails and when the process gets SIGUSR2.
   * `head` is a JSON object that is written before the record. Must be called before connect().
   */
  readonly dumpFlightTo: (path: string, head: string) => void;
}

/** Group of the mpi backend. */
export interface NativeMpiGroup extends NativeLane {
  /**
   * Makes a communicator of these ranks of MPI's world. This happens on the lane and waits for all members, at
   * most `timeoutMs`. Returns an id that `settle` is called with. `tag` distinguishes groups that one process
   * makes at the same time.
   */
  readonly connect: (members: readonly number[], tag: number, timeoutMs: number) => number;
}

/**
 * Two streams of a CUDA device: one copies down to slots of host memory, one copies up from them, each in
 * call order. The methods throw the driver's errors, with the `code` 'CUDA'; the constructor explains a missing device.
 */
export interface NativeDeviceLane {
  /** Whether the slots are page-locked with the driver, so that it copies them directly. */
  readonly isRegistered: boolean;
  /** Orders everything copied from now on after all work that this CUstream has been given. */
  readonly follow: (stream: bigint) => void;
  /** Orders everything that the CUstream is given from now on after all copies up. */
  readonly lead: (stream: bigint) => void;
  /** Starts a piece in the slot: its copies down are ordered after the slot's earlier copies up. */
  readonly begin: (slot: number) => void;
  /** Copies `bytes` from the device address to `offset` in the slot. */
  readonly down: (slot: number, offset: number, address: bigint, bytes: number) => void;
  /**
   * Calls onLanding(id) once the slot's copies down have finished or the device has failed; awaitLanding()
   * then throws the device's error. Keeps the event loop alive until rest().
   */
  readonly land: (slot: number, id: number) => void;
  /** Blocks until the slot's copies down have finished. Throws if the device has failed. */
  readonly awaitLanding: (slot: number) => void;
  readonly up: (slot: number, offset: number, address: bigint, bytes: number) => void;
  /** Ends a piece. Must follow the last up() from the slot. */
  readonly end: (slot: number) => void;
  /** Lets the event loop end again, after land() has kept it alive. */
  readonly rest: () => void;
  /**
   * Waits up to 5 s for both streams. If they are stuck, the memory is never freed. No method may be called
   * afterwards.
   */
  readonly close: () => void;
}

/** Group of the nccl backend. */
export interface NativeNcclGroup extends NativeLane {
  /**
   * Makes the communicator. Returns an id that `settle` is called with. Operations started earlier wait for
   * it.
   */
  readonly connect: (id: Uint8Array, timeoutMs: number) => number;
  /**
   * Batches everything started or captured until release() into one NCCL group. No caller may wait for these
   * operations before release().
   */
  readonly hold: () => void;
  /**
   * Returns whether fence() of that operation would return without waiting for other ranks. Gives NCCL a
   * moment to accept the operation.
   */
  readonly isTaken: (id: number) => boolean;
  readonly release: () => void;
  /**
   * Registers memory with NCCL for the operations started from now on. Returns the number of the
   * registration.
   */
  readonly registerBuffer: (address: bigint, bytes: number) => number;
  /** Ends a registration. Returns an id that `settle` is called with when the memory is free. */
  readonly deregisterBuffer: (registration: number) => number;
  /**
   * Captures the operation that `call` describes into the CUDA graph that its memory's stream is being
   * captured into. Returns its id. Blocks until NCCL has accepted the operation; between hold() and
   * release(), release() blocks instead.
   */
  readonly capture: (...memory: NativeMemory) => number;
  /**
   * Orders everything captured later on that stream after the operation; calls `settle` for all that have
   * ended.
   */
  readonly join: (id: number) => void;
  /**
   * Abandons a captured operation because its capture was abandoned; calls `settle` for all operations that
   * have ended.
   */
  readonly forget: (id: number) => void;
  /**
   * Prepares the launch of a graph that contains captured operations; it is ordered after all operations
   * started so far. Returns a failure if the graph must not be launched, else null.
   */
  readonly beginRun: (stream: bigint) => NativeFailure | null;
  /**
   * Tells the group that the graph was launched. Returns an id that `settle` is called with when the graph
   * has run.
   */
  readonly endRun: (stream: bigint, timeoutMs: number) => number;
}

export interface NativeNccl {
  readonly NcclGroup: new (
    rank: number,
    size: number,
    /** Index of the CUDA device. */
    device: number,
    /** The HostGroup of the same ranks. When it fails, this group fails too. Destroy it after this group. */
    host: object,
    call: Float64Array,
    settle: NativeSettle,
  ) => NativeNcclGroup;
  /**
   * Returns a new ncclUniqueId, which rank 0 sends to all ranks for connect(). Throws without the library.
   */
  readonly makeId: () => Uint8Array;
  /**
   * Opens the CUDA driver, and the NCCL library if there are devices. `driver` says why there is no device
   * and `reason` why the library cannot be used; each is empty otherwise.
   */
  readonly about: () => {
    readonly devices: number;
    readonly driver: string;
    readonly library: string;
    readonly version: string;
    /** Whether the library can reduce 8-bit floats on every device of this process. */
    readonly reducesFloat8: boolean;
    readonly reason: string;
  };
}

/** The kernels of reproducible/grid.ts. A dtype is passed as its index in `dtypes`. */
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
    /**
     * Numbers that describe the operation of the next start() or run(), indexed by NativeField and read
     * during that call.
     */
    call: Float64Array,
    settle: NativeSettle,
    /**
     * Returns the caller's place in the program. Called inside start() and run(), rarely. Must not call the
     * group.
     */
    where: () => string,
  ) => NativeGroup;
  /**
   * Makes the process write crash reports to this descriptor (native/base/crash_words.h). Once per process.
   */
  readonly reportCrashes: (fd: number) => void;
  /**
   * Maps this many bytes of memory for alloc() of the next group of this process, on another thread. Replaces what the
   * call before has mapped, if no group has taken it; 0 only frees that.
   */
  readonly prepareMemory: (bytes: number) => Promise<void>;
  /**
   * Sets an environment variable for native libraries unless it is set. In workers process.env is only a
   * copy.
   */
  readonly setVariable: (name: string, value: string) => void;
  /** Returns the names of a verb's algorithms between hosts. The first one works for every operation. */
  readonly algorithms: (verb: number) => string[];
  /**
   * Returns how long an operation takes on a simulated network, or null if the algorithm cannot run it. Blocks while it
   * simulates: about a second per million messages.
   */
  readonly simulate: (what: NativeSimulation) => NativeSimulated | null;
}

/** Costs of a kind of link in the model of native/sim/network.h. */
interface NativeLinkCosts {
  readonly latencyUs: number;
  readonly overheadUs: number;
  readonly nsPerByte: number;
}

/** One operation among ranks on hosts with `perHost` ranks each. Handshakes are included. */
export interface NativeSimulation {
  /** Indices into `allVerbs`, `dtypes`, and the wires of backends/native-lane.ts. */
  readonly verb: number;
  readonly dtype: number;
  readonly wire: number;
  /** Elements, as in Op of native/coll/op.h. */
  readonly count: number;
  readonly ranks: number;
  readonly perHost: number;
  readonly between: NativeLinkCosts;
  readonly inside: NativeLinkCosts;
  /** Empty for the library's choice by its built-in rules. */
  readonly algorithm: string;
  /** An operation that takes more messages is not simulated. */
  readonly maxMessages: number;
}

export interface NativeSimulated {
  readonly algorithm: string;
  /** Number of messages; an estimate if the operation was not simulated. */
  readonly messages: number;
  /** Until the last rank has finished. Absent if the operation was not simulated. */
  readonly timeUs?: number;
  /** Bytes in one direction through the busiest port between a host and the network. */
  readonly linkBytesMax?: number;
}

export interface NativeWorld {
  readonly rank: number;
  readonly size: number;
  readonly version: string;
  readonly calls: number;
}

/** The addons mpi-openmpi.node and mpi-mpich.node. */
export interface NativeMpi {
  readonly MpiGroup: new (
    rank: number,
    size: number,
    /** See HostGroup. */
    call: Float64Array,
    settle: NativeSettle,
  ) => NativeMpiGroup;
  /**
   * Returns this process's rank among all processes that the MPI launcher started together. Starts MPI, which
   * blocks until all of them start it. Throws if MPI does not support threads or has ended. `calls` counts
   * the calls of all threads.
   */
  readonly world: () => NativeWorld;
  /**
   * Ends MPI for this thread, after its groups have been destroyed. The last thread finalizes MPI, which
   * blocks until all processes of the job do so. A process that cannot finalize leaves it: its launcher then ends
   * the other processes. Returns whether the process can finalize; it cannot if `canFinalize` is false, or if a
   * group ended in the middle of an operation or while it connected.
   */
  readonly leave: (canFinalize: boolean) => boolean;
}

export const loadNative = (): NativeAddon => findNative().addon;

/**
 * Loads coll.node from the folder RINGWISE_NATIVE_PATH or from this platform's package. `path` is the file
 * that was loaded. Throws if there is none; the error says why and lists the paths that were tried.
 */
export function findNative(): { readonly addon: NativeAddon; readonly path: string } {
  const { addon, path, tried } = findAddon<NativeAddon>('coll', '@ringwise/collectives');
  if (addon === undefined) throw new CollectiveError(whyNoNative(nativeFacts(tried)), null);
  if (crashFd !== undefined) addon.reportCrashes(crashFd);
  return { addon, path };
}

/** Loads the first addon that can be loaded, for these MPI implementations in order. Throws if none can. */
export function loadNativeMpi(kinds: readonly string[]): NativeMpi {
  const tried: string[] = [];
  for (const kind of kinds) {
    const found = findAddon<NativeMpi>(`mpi-${kind}`, '@ringwise/collectives-mpi');
    if (found.addon !== undefined) return found.addon;
    tried.push(...found.tried);
  }
  throw new CollectiveError(nativeMpiMissing(platformOf(thisHost()), tried), null);
}

/** Descriptor on which the launcher of this process reads crash reports; undefined without a launcher. */
const crashFd = (globalThis as { [crashSymbol: symbol]: number | undefined })[Symbol.for('ringwise.crashFd')];
