// The typed surface of the native addon, and where it is found. Nothing else knows the addon.
import { createRequire } from 'node:module';
import { CollectiveError, nativeMissing } from './errors.ts';

/** How an operation failed: `code` and the verb lists index the tables in backends/host.ts. */
export interface NativeFailure {
  readonly code: number;
  /** The rank that noticed it first. */
  readonly origin: number;
  readonly peers: number[];
  readonly text: string;
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

/** Where the numbers of an operation are in the array that it is handed over with. They are those of Op in native/coll/op.h; the order is that of Field in native/node/coll_addon.cc. */
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
  /** allReduce: the index in wires of backends/host.ts. */
  wire: 10,
} as const;
export const nativeFields = 11;

type Memory = NodeJS.TypedArray | null;

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

/** One rank's end of a group. Listens from construction on. All methods belong to the JavaScript thread. */
export interface NativeGroup {
  readonly unixName: string;
  readonly port: number;
  /** Meets all peers on the lane; returns an id that `settle` will be called with. */
  readonly connect: (peers: readonly NativePeer[], timeoutMs: number) => number;
  /** Queues the operation in `call`; returns its id. The caller keeps the memory alive until it has settled. */
  readonly start: (...memory: NativeMemory) => number;
  /** Runs the operation in `call` to its end; the sender's rank for a recv, else null. Does not call `settle` for it. */
  readonly run: (...memory: NativeMemory) => NativeFailure | number | null;
  /** Blocks until the operation has ended, then calls `settle` for all that have. */
  readonly wait: (id: number) => void;
  /** What has been started goes on by itself from now on, without wait(). */
  readonly urge: () => void;
  /** Zeroed memory that all ranks of the host reach; null where there is none. Freed with the last array on it. */
  readonly alloc: (bytes: number) => ArrayBuffer | null;
  /** FlightEntry[] as JSON. */
  readonly flightRecord: () => string;
  /**
   * Writes the record to the file when the group fails and when the process gets SIGUSR2. `head` is JSON, an object
   * that goes in front. To be called before connect().
   */
  readonly dumpFlightTo: (path: string, head: string) => void;
  readonly abort: (text: string) => void;
  /** Says goodbye once everything pending has ended; returns an id that `settle` will be called with. */
  readonly close: () => number;
  /** Frees threads, sockets and memory. What is pending never settles. */
  readonly destroy: () => void;
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
  readonly HostGroup: new (
    rank: number,
    size: number,
    host: string,
    /** The numbers of the operation that the next start() or run() is about, by NativeField. Read at that call. */
    call: Float64Array,
    /** `source`: the sender's rank for a recv that ended well, else -1. */
    settle: (id: number, failure: NativeFailure | null, source: number) => void,
    /** Where in the program this thread is: called inside start() and run(), seldom. Must not touch the group. */
    where: () => string,
  ) => NativeGroup;
  /** The names of a verb's algorithms between hosts; the first fits everywhere. */
  readonly algorithms: (verb: number) => string[];
}

export const loadNative = (): NativeAddon => findNative().addon;

/** Loads coll.node: from the folder RINGWISE_NATIVE_PATH, or from this platform's package. `path` is where it was. */
export function findNative(): { readonly addon: NativeAddon; readonly path: string } {
  const platform = `${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  const folder = process.env.RINGWISE_NATIVE_PATH;
  const tried: string[] = [];
  for (const path of [folder && `${folder}/coll.node`, `@ringwise/native-${platform}/coll.node`]) {
    if (!path) continue;
    try {
      return { addon: require(path) as NativeAddon, path: require.resolve(path) };
    } catch (error) {
      tried.push(`${path} (${(error as Error).message.split('\n')[0]})`);
    }
  }
  throw new CollectiveError(nativeMissing(platform, tried), null);
}
