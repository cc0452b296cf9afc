// Hands operations to a native group, their numbers in an array and their memory as arguments, and receives the
// end of each one through a callback. Shared by all backends in C++; the other side is native/node/lane_object.h.
import { allVerbs } from '../all-verbs.ts';
import type {
  AllReduce,
  Backend,
  Operation,
  Reduce,
  ReduceScatter,
  Running,
  Settle,
  Wire,
} from '../backend.ts';
import { dtypes } from '../dtype.ts';
import { type CollectiveCode, CollectiveError, type Failure, hostFailure } from '../errors.ts';
import { asBuffer, type BufferView } from '../group/buffer.ts';
import { reduceOps } from '../reduce-ops.ts';
import type { BackendContext } from './context.ts';
import {
  type NativeFailure,
  NativeField,
  type NativeLane,
  type NativeMemory,
  nativeFields,
} from './native.ts';

// In the order of the enum in native/coll/failure/failure.h. The lists of verbs, ops, dtypes and wires are
// also in the order of their C++ enums.
export const codes: readonly CollectiveCode[] = [
  'ERR_COLL_TIMEOUT',
  'ERR_COLL_PEER_LOST',
  'ERR_COLL_MISMATCH',
  'ERR_COLL_ABORTED',
  'ERR_COLL_CLOSED',
  'ERR_COLL_SYSTEM',
];
export const verbIndex = indexOf(allVerbs);
const opIndex = indexOf(reduceOps);
const dtypeIndex = indexOf(dtypes);
const wires: readonly Wire[] = ['full', 'bfloat16', 'int8'];
const wireIndex = indexOf(wires);

function indexOf<T extends string>(names: readonly T[]): Record<T, number> {
  return Object.fromEntries(names.map((name, index) => [name, index])) as Record<T, number>;
}

/** Empty buffer for barriers, which have none. */
const nothing = asBuffer(new Uint8Array(0));

/** An operation that has not settled. The reference to `operation` keeps its buffers alive. */
interface Pending {
  readonly operation: { readonly verb: string; readonly seq: number | null };
  readonly settle: Settle;
}

/**
 * Makes a native group report `cause` for everything pending and later. A code that only one rank can have becomes
 * ERR_COLL_ABORTED by the rank of `cause`.
 */
export function abortNative(native: Pick<NativeLane, 'abort'>, cause: CollectiveError): void {
  const { code, peers, what, rank } = cause;
  const index = codes.indexOf(code);
  if (index >= 0) native.abort(index, peers, what);
  else native.abort(codes.indexOf('ERR_COLL_ABORTED'), rank === null ? [] : [rank], what);
}

/**
 * Operations whose memory MPI or a device may go on using after they failed. Kept here so that the memory is never
 * freed.
 */
const lent: unknown[] = [];

/**
 * How long awaited operations may end without a turn of the event loop, in milliseconds. A loop that awaits nothing
 * else would otherwise keep timers, sockets and signals waiting.
 */
const mostMsBetweenTurns = 2;

/** Limit on the cache of label numbers. */
const mostLabels = 1024;

/**
 * The JavaScript end of one native group. Construct it before the group, which is given `call` and `onEnd`.
 */
export class Lane {
  readonly call = new Float64Array(nativeFields);
  readonly #labels = new Map<string, number>();
  #labelOf: ((label: string) => number) | undefined;
  readonly #context: BackendContext;
  readonly #embellish: (failure: Failure) => Failure;
  readonly #pending = new Map<number, Pending>();
  /** Whether a call of the native group runs, which may settle operations. */
  #isInCall = false;
  /** When the event loop last settled an operation, by performance.now(). */
  #turnedAtMs = Number.NEGATIVE_INFINITY;

  /** `embellish` may add details to a failure before it becomes an error. */
  constructor(context: BackendContext, embellish: (failure: Failure) => Failure = (failure) => failure) {
    this.#context = context;
    this.#embellish = embellish;
  }

  /** Callback of the native group: an operation has ended. */
  readonly onEnd = (id: number, failure: NativeFailure | null, source: number, isLent: boolean): void => {
    const { operation, settle } = this.#pending.get(id)!;
    this.#pending.delete(id);
    if (isLent) lent.push(operation);
    if (!this.#isInCall) this.#turnedAtMs = performance.now();
    if (failure !== null) settle(this.errorOf(failure, operation));
    else settle(undefined, source < 0 ? undefined : source);
  };

  /** Registers `settle` to be called when the native group ends what it does under `id`. */
  expect(id: number, operation: Pending['operation'], settle: Settle): void {
    this.#pending.set(id, { operation, settle });
  }

  /**
   * Passes an operation to a function of the native group, which returns its id; `settle` is called when it
   * has ended.
   */
  hand(operation: Operation, native: (...memory: NativeMemory) => number, settle: Settle): number {
    this.#label(operation);
    const id = submit(operation, this.call, native, this.#context);
    this.expect(id, operation, settle);
    return id;
  }

  /**
   * Resolves when the native group has ended `id`, which is not an operation (connect, close, …); rejects
   * with its error.
   */
  ended(id: number, verb: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle: Settle = (error) => (error === undefined ? resolve() : reject(error));
      this.expect(id, { verb, seq: null }, settle);
    });
  }

  /** Returns the `start` and `run` of a backend on this native group. */
  operate(native: NativeLane): Pick<Backend, 'start' | 'run'> {
    const { call } = this;
    const context = this.#context;
    this.#labelOf = native.labelOf?.bind(native);
    const startNative: Submit<number> = native.start.bind(native);
    const runNative: Submit<NativeFailure | number | null> = native.run.bind(native);
    const requestProgress = native.requestProgress?.bind(native);
    const { attempt, fence } = native;
    return {
      start: (operation, settle): Running => {
        const id = this.hand(operation, startNative, settle);
        return {
          wait: () => this.#calling(native.wait, native, id),
          ...(requestProgress && { requestProgress }),
          ...(attempt && {
            attempt: () => {
              if (performance.now() - this.#turnedAtMs > mostMsBetweenTurns) requestProgress?.();
              else this.#calling(attempt, native, id);
            },
          }),
          ...(fence && { fence: () => this.#calling(fence, native, id) }),
        };
      },
      run: (operation) => {
        this.#label(operation);
        const outcome = submit(operation, call, runNative, context);
        if (outcome === null) return undefined;
        if (typeof outcome === 'number') return outcome;
        if (outcome.isLent) lent.push(operation);
        throw this.errorOf(outcome, operation);
      },
    };
  }

  /** Calls a function of the native group that may settle operations. */
  #calling(call: (id: number) => void, native: NativeLane, id: number): void {
    const wasInCall = this.#isInCall;
    this.#isInCall = true;
    try {
      call.call(native, id);
    } finally {
      this.#isInCall = wasInCall;
    }
  }

  /** Writes the number of the operation's label into `call`. */
  #label(operation: Operation): void {
    const { label } = operation as { readonly label?: string };
    this.call[NativeField.label] = label === undefined ? 0 : this.#numberOf(label);
  }

  #numberOf(label: string): number {
    let number = this.#labels.get(label);
    if (number === undefined) {
      number = this.#labelOf?.(label) ?? 0;
      // The program may use a new label for each call, so the cache must not grow without limit.
      if (this.#labels.size === mostLabels) this.#labels.clear();
      this.#labels.set(label, number);
    }
    return number;
  }

  /** Returns the error for a failure that the native group has reported for an operation. */
  errorOf(failure: NativeFailure, { verb, seq }: Pending['operation']): CollectiveError {
    const { group, rank, size } = this.#context;
    const told = failureOf(failure, verb, seq);
    return new CollectiveError(this.#embellish(told), { group, rank, size });
  }
}

/** Returns a failure that a native group has reported, as that of a call of `verb`. */
export function failureOf(failure: NativeFailure, verb: string, seq: number | null): Failure {
  return hostFailure(codes[failure.code]!, verb, seq, failure);
}

type Memory = NodeJS.TypedArray | number | null;
type Submit<R> = (...memory: NativeMemory) => R;

/** Passes an operation to `native`: its memory as arguments, everything else as numbers in `call`. */
function submit<R>(operation: Operation, call: Float64Array, native: Submit<R>, context: BackendContext): R {
  const { verb } = operation;
  call[NativeField.verb] = verbIndex[verb];
  call[NativeField.seq] = operation.seq;
  call[NativeField.timeoutMs] = operation.timeoutMs;
  switch (operation.verb) {
    case 'allReduce': {
      const memory = describe(call, operation.buffer, operation.packing, 0);
      reduceBy(call, operation);
      call[NativeField.inPlace] = 1;
      call[NativeField.wire] = wireIndex[operation.wire];
      if (operation.residual === null) return native(memory);
      return native(memory, null, null, null, memoryOf(operation.residual));
    }
    case 'reduce': {
      const memory = describe(call, operation.buffer, operation.packing, operation.root);
      reduceBy(call, operation);
      if (context.rank === operation.root) call[NativeField.inPlace] = 1;
      return native(memory);
    }
    case 'broadcast': {
      const memory = describe(call, operation.buffer, operation.packing, operation.root);
      call[NativeField.inPlace] = 1;
      return native(memory);
    }
    case 'allGather': {
      const from = describe(call, operation.input, operation.packing, 0);
      return native(from, memoryOf(operation.output), countsOf(operation.counts), null);
    }
    case 'gather': {
      const from = describe(call, operation.input, operation.packing, operation.root);
      return native(from, memoryOf(operation.output), countsOf(operation.counts), null);
    }
    case 'scatter': {
      const to = describe(call, operation.output, operation.packing, operation.root);
      return native(memoryOf(operation.input), to, countsOf(operation.counts), null);
    }
    case 'reduceScatter': {
      const to = describe(call, operation.output, operation.packing, 0);
      reduceBy(call, operation);
      return native(memoryOf(operation.input), to, countsOf(operation.counts), null);
    }
    case 'allToAll': {
      const { input, output, packing, sendCounts, recvCounts } = operation;
      const from = describe(call, input, packing, 0);
      call[NativeField.count] = sendCounts === null ? input.count / context.size : 0;
      return native(from, memoryOf(output), countsOf(sendCounts), countsOf(recvCounts));
    }
    case 'send':
    case 'recv': {
      const memory = describe(call, operation.buffer, operation.tag, operation.peer);
      call[NativeField.inPlace] = 1;
      return native(memory);
    }
    case 'barrier':
      describe(call, nothing, operation.packing, 0);
      return native(null);
  }
}

/**
 * Writes the view's dtype, count and stream and the other common numbers into `call`. Returns the view's
 * memory.
 */
function describe(call: Float64Array, view: BufferView, tag: number, root: number): Memory {
  call[NativeField.dtype] = dtypeIndex[view.dtype];
  call[NativeField.count] = view.count;
  call[NativeField.tag] = tag;
  call[NativeField.root] = root;
  call[NativeField.reduce] = 0;
  call[NativeField.factor] = 1;
  call[NativeField.reproducible] = 0;
  call[NativeField.inPlace] = 0;
  call[NativeField.stream] = view.handle?.stream === undefined ? 0 : Number(view.handle.stream);
  return memoryOf(view);
}

function reduceBy(
  call: Float64Array,
  { op, factor, reproducible }: AllReduce | Reduce | ReduceScatter,
): void {
  call[NativeField.reduce] = opIndex[op];
  call[NativeField.factor] = factor;
  if (reproducible === true) call[NativeField.reproducible] = 1;
}

function memoryOf(view: BufferView | null): Memory {
  if (view === null || view.handle === null) return view && (view.host as NodeJS.TypedArray);
  return Number(view.handle.address); // below 2^53, as all addresses
}

function countsOf(counts: readonly number[] | null): Float64Array | null {
  return counts && Float64Array.from(counts);
}
