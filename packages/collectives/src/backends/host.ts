// The host backend: shared memory between the ranks of a host, TCP between hosts, run by a native progress thread.
// This file is the glue: it exchanges addresses, hands operations over as numbers, and turns native failures into
// errors. The design is at the top of native/coll/host_group.h.
import { createHmac, randomBytes } from 'node:crypto';
import type { Backend, Operation, ReduceOp, Running, Settle, Verb } from '../backend.ts';
import { allocHost, type BufferView } from '../buffer.ts';
import { dtypes } from '../dtype.ts';
import { type CollectiveCode, CollectiveError, hostFailure } from '../errors.ts';
import {
  loadNative,
  type NativeFailure,
  type NativeGroup,
  type NativeOperation,
  type NativePeer,
} from '../native.ts';
import { isReducible } from '../reduce-ops.ts';
import type { BackendContext, BackendFactory } from '../registry.ts';
import { exchange } from '../rendezvous.ts';
import { addressTowards, hostId } from './host-address.ts';

// The orders are those of the enums in native/coll/op.h and failure.h.
const verbs: readonly Verb[] = [
  'allReduce',
  'broadcast',
  'allGather',
  'reduceScatter',
  'send',
  'recv',
  'barrier',
  'reduce',
  'gather',
  'scatter',
  'allToAll',
];
const ops: readonly ReduceOp[] = ['sum', 'avg', 'prod', 'min', 'max', 'band', 'bor', 'bxor', 'premulSum'];
const codes: readonly CollectiveCode[] = [
  'ERR_COLL_TIMEOUT',
  'ERR_COLL_PEER_LOST',
  'ERR_COLL_MISMATCH',
  'ERR_COLL_ABORTED',
  'ERR_COLL_CLOSED',
  'ERR_COLL_SYSTEM',
];
const verbIndex = indexOf(verbs);
const opIndex = indexOf(ops);
const dtypeIndex = indexOf(dtypes);

function indexOf<T extends string>(names: readonly T[]): Record<T, number> {
  return Object.fromEntries(names.map((name, index) => [name, index])) as Record<T, number>;
}

/** What a rank tells the others about itself. */
interface Card {
  readonly hostId: string;
  readonly unixName: string;
  readonly host: string;
  readonly port: number;
  /** Makes the proofs of this meeting worthless for any other. */
  readonly nonce: string;
}

/** An operation that has not settled. Holding `operation` keeps its buffers alive. */
interface Pending {
  readonly operation: { readonly verb: string; readonly seq: number | null };
  readonly settle: Settle;
}

export const hostBackend: BackendFactory = async (context) => {
  const isOneHost = context.localSize === context.size;
  const host = isOneHost ? '127.0.0.1' : await addressTowards(context.masterHost);
  const { HostGroup } = loadNative();
  const pending = new Map<number, Pending>();
  const errorOf = (failure: NativeFailure, { verb, seq }: Pending['operation']) =>
    new CollectiveError(hostFailure(codes[failure.code]!, verb, seq, failure), {
      group: context.group,
      rank: context.rank,
      size: context.size,
    });
  const native = new HostGroup(context.rank, context.size, host, (id, failure, source) => {
    const { operation, settle } = pending.get(id)!;
    pending.delete(id);
    if (failure !== null) settle(errorOf(failure, operation));
    else settle(undefined, source < 0 ? undefined : source);
  });
  try {
    const peers = await meet(context, native, host);
    await ended(pending, native.connect(peers, context.timeoutMs), 'init');
  } catch (error) {
    native.destroy();
    throw error;
  }
  return hostBackendOf(context, native, pending, errorOf);
};

function hostBackendOf(
  context: BackendContext,
  native: NativeGroup,
  pending: Map<number, Pending>,
  errorOf: (failure: NativeFailure, operation: Pending['operation']) => CollectiveError,
): Backend {
  const startNative: Submit<number> = native.start.bind(native);
  const runNative: Submit<NativeFailure | number | null> = native.run.bind(native);
  const start = (operation: Operation, settle: Settle): Running => {
    const id = submit(operation, context, startNative);
    pending.set(id, { operation, settle });
    return { wait: () => native.wait(id), urge: native.urge.bind(native) };
  };
  const run = (operation: Operation): number | undefined => {
    const outcome = submit(operation, context, runNative);
    if (outcome === null) return undefined;
    if (typeof outcome === 'number') return outcome;
    throw errorOf(outcome, operation);
  };
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= ended(pending, native.close(), 'close').finally(() => native.destroy());
    return closing;
  };
  return {
    contract: 1,
    name: 'host',
    rank: context.rank,
    size: context.size,
    supports: { devices: ['cpu'], verbs, sync: true, reduces: isReducible },
    start,
    run,
    // Less than a page is copied faster than it is shared.
    alloc: (count, dtype) => allocHost(count, dtype, (bytes) => (bytes < 4096 ? null : native.alloc(bytes))),
    abort: (cause) => native.abort(cause.what),
    close,
  };
}

/** Resolves when the native operation `id` has ended, rejects with its error. */
function ended(pending: Map<number, Pending>, id: number, verb: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle: Settle = (error) => (error === undefined ? resolve() : reject(error));
    pending.set(id, { operation: { verb, seq: null }, settle });
  });
}

async function meet(context: BackendContext, native: NativeGroup, host: string): Promise<NativePeer[]> {
  const { rank, size, store, timeoutMs } = context;
  const nonce = randomBytes(32).toString('hex');
  const mine: Card = { hostId: hostId(), unixName: native.unixName, host, port: native.port, nonce };
  const payloads = await exchange(store, rank, size, Buffer.from(JSON.stringify(mine)), timeoutMs);
  const cards = payloads.map((bytes) => JSON.parse(Buffer.from(bytes).toString()) as Card);
  const prove = (from: number, to: number) =>
    createHmac('sha256', context.secret ?? '')
      .update(`ringwise ${from} to ${to}: ${cards[from]!.nonce} ${cards[to]!.nonce}`)
      .digest();
  return cards.flatMap((card, peer) =>
    peer === rank
      ? []
      : [
          {
            ...card,
            rank: peer,
            local: card.hostId === mine.hostId,
            mine: prove(rank, peer),
            theirs: prove(peer, rank),
          },
        ],
  );
}

type Submit<R> = (...operation: NativeOperation) => R;

/** Calls `native` with the operation as numbers and memory. */
function submit<R>(operation: Operation, { rank, size }: BackendContext, native: Submit<R>): R {
  const { seq, timeoutMs } = operation;
  const verb = verbIndex[operation.verb];
  switch (operation.verb) {
    case 'allReduce': {
      const { buffer, op, factor, packing } = operation;
      const [dtype, reduce, memory] = [dtypeIndex[buffer.dtype], opIndex[op], memoryOf(buffer)];
      return native(
        verb,
        dtype,
        reduce,
        0,
        packing,
        seq,
        buffer.count,
        timeoutMs,
        factor,
        memory,
        memory,
        null,
        null,
      );
    }
    case 'reduce': {
      const { buffer, op, factor, packing, root } = operation;
      const [dtype, reduce, input] = [dtypeIndex[buffer.dtype], opIndex[op], memoryOf(buffer)];
      const output = rank === root ? input : null;
      return native(
        verb,
        dtype,
        reduce,
        root,
        packing,
        seq,
        buffer.count,
        timeoutMs,
        factor,
        input,
        output,
        null,
        null,
      );
    }
    case 'broadcast': {
      const { buffer, packing, root } = operation;
      const [dtype, memory] = [dtypeIndex[buffer.dtype], memoryOf(buffer)];
      return native(
        verb,
        dtype,
        0,
        root,
        packing,
        seq,
        buffer.count,
        timeoutMs,
        1,
        memory,
        memory,
        null,
        null,
      );
    }
    case 'allGather':
    case 'gather': {
      const { input, output, packing } = operation;
      const root = operation.verb === 'gather' ? operation.root : 0;
      const [dtype, counts] = [dtypeIndex[input.dtype], countsOf(operation.counts)];
      const [from, to] = [memoryOf(input), memoryOf(output)];
      return native(verb, dtype, 0, root, packing, seq, input.count, timeoutMs, 1, from, to, counts, null);
    }
    case 'scatter': {
      const { input, output, packing, root } = operation;
      const [dtype, counts] = [dtypeIndex[output.dtype], countsOf(operation.counts)];
      const [from, to] = [memoryOf(input), memoryOf(output)];
      return native(verb, dtype, 0, root, packing, seq, output.count, timeoutMs, 1, from, to, counts, null);
    }
    case 'reduceScatter': {
      const { input, output, op, factor, packing } = operation;
      const [dtype, reduce, counts] = [dtypeIndex[input.dtype], opIndex[op], countsOf(operation.counts)];
      const [from, to] = [memoryOf(input), memoryOf(output)];
      return native(
        verb,
        dtype,
        reduce,
        0,
        packing,
        seq,
        output.count,
        timeoutMs,
        factor,
        from,
        to,
        counts,
        null,
      );
    }
    case 'allToAll': {
      const { input, output, packing } = operation;
      const [counts, recvCounts] = [countsOf(operation.sendCounts), countsOf(operation.recvCounts)];
      const [dtype, count] = [dtypeIndex[input.dtype], counts === null ? input.count / size : 0];
      const [from, to] = [memoryOf(input), memoryOf(output)];
      return native(verb, dtype, 0, 0, packing, seq, count, timeoutMs, 1, from, to, counts, recvCounts);
    }
    case 'send':
    case 'recv': {
      const { buffer, peer, tag } = operation;
      const [dtype, memory] = [dtypeIndex[buffer.dtype], memoryOf(buffer)];
      return native(verb, dtype, 0, peer, tag, seq, buffer.count, timeoutMs, 1, memory, memory, null, null);
    }
    case 'barrier':
      return native(verb, 0, 0, 0, operation.packing, seq, 0, timeoutMs, 1, null, null, null, null);
  }
}

function memoryOf(view: BufferView | null): NodeJS.TypedArray | null {
  return view && (view.host as NodeJS.TypedArray); // the group admits devices: ['cpu'] only, which have host memory
}

function countsOf(counts: readonly number[] | null): Float64Array | null {
  return counts && Float64Array.from(counts);
}
