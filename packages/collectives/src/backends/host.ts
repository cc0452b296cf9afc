// The host backend: shared memory between the ranks of a host, TCP between hosts, run by a native progress thread.
// This file is the glue: it exchanges addresses, hands operations over as numbers, and turns native failures into
// errors. The design is at the top of native/coll/host_group.h.
import { createHmac, randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { allVerbs } from '../all-verbs.ts';
import type { Backend, Operation, ReduceOp, Running, Settle, Verb, Wire } from '../backend.ts';
import { allocHost, asBuffer, type BufferView } from '../buffer.ts';
import { callSite } from '../call-site.ts';
import { dtypes } from '../dtype.ts';
import {
  type CollectiveCode,
  CollectiveError,
  flightFolderNotUsable,
  hostFailure,
  withFlightRecords,
} from '../errors.ts';
import type { FlightEntry } from '../flight-recorder.ts';
import {
  loadNative,
  type NativeFailure,
  NativeField,
  type NativeGroup,
  type NativeMemory,
  type NativePeer,
  nativeFields,
} from '../native.ts';
import { isReducible, reduceOps } from '../reduce-ops.ts';
import type { BackendContext, BackendFactory } from '../registry.ts';
import { exchange } from '../rendezvous.ts';
import { addressTowards, clockId, hostId } from './host-address.ts';

// In the order of the enum in native/coll/failure.h. The lists of verbs, ops, dtypes and wires have that of their enums, too.
const codes: readonly CollectiveCode[] = [
  'ERR_COLL_TIMEOUT',
  'ERR_COLL_PEER_LOST',
  'ERR_COLL_MISMATCH',
  'ERR_COLL_ABORTED',
  'ERR_COLL_CLOSED',
  'ERR_COLL_SYSTEM',
];
const verbIndex = indexOf(allVerbs);
const opIndex = indexOf(reduceOps);
const dtypeIndex = indexOf(dtypes);
const wires: readonly Wire[] = ['full', 'bfloat16', 'int8'];
const wireIndex = indexOf(wires);

function indexOf<T extends string>(names: readonly T[]): Record<T, number> {
  return Object.fromEntries(names.map((name, index) => [name, index])) as Record<T, number>;
}

/** What a barrier moves. */
const nothing = asBuffer(new Uint8Array(0));

/** The names of a verb's algorithms between hosts; the first fits everywhere. */
export function algorithmsOf(verb: Verb): readonly string[] {
  return loadNative().algorithms(verbIndex[verb]);
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
  const call = new Float64Array(nativeFields);
  const pending = new Map<number, Pending>();
  const { group, rank, size } = context;
  const flightFolder = process.env.RINGWISE_FLIGHT_DIR || null;
  const errorOf = (failure: NativeFailure, { verb, seq }: Pending['operation']) => {
    const told = hostFailure(codes[failure.code]!, verb, seq, failure);
    const known = flightFolder === null ? told : withFlightRecords(told, flightFolder);
    return new CollectiveError(known, { group, rank, size });
  };
  const onEnd = (id: number, failure: NativeFailure | null, source: number) => {
    const { operation, settle } = pending.get(id)!;
    pending.delete(id);
    if (failure !== null) settle(errorOf(failure, operation));
    else settle(undefined, source < 0 ? undefined : source);
  };
  const native = new HostGroup(context.rank, context.size, host, call, onEnd, callSite);
  try {
    if (flightFolder !== null) dumpFlight(native, flightFolder, context);
    const peers = await meet(context, native, host);
    await ended(pending, native.connect(peers, context.timeoutMs), 'init');
  } catch (error) {
    native.destroy();
    throw error;
  }
  return hostBackendOf(context, native, call, pending, errorOf);
};

function hostBackendOf(
  context: BackendContext,
  native: NativeGroup,
  call: Float64Array,
  pending: Map<number, Pending>,
  errorOf: (failure: NativeFailure, operation: Pending['operation']) => CollectiveError,
): Backend {
  const startNative: Submit<number> = native.start.bind(native);
  const runNative: Submit<NativeFailure | number | null> = native.run.bind(native);
  const start = (operation: Operation, settle: Settle): Running => {
    const id = submit(operation, call, startNative, context);
    pending.set(id, { operation, settle });
    return { wait: () => native.wait(id), urge: native.urge.bind(native) };
  };
  const run = (operation: Operation): number | undefined => {
    const outcome = submit(operation, call, runNative, context);
    if (outcome === null) return undefined;
    if (typeof outcome === 'number') return outcome;
    throw errorOf(outcome, operation);
  };
  let closing: Promise<void> | undefined;
  let lastRecord: string | undefined;
  const close = () => {
    closing ??= ended(pending, native.close(), 'close').finally(() => {
      lastRecord = native.flightRecord();
      native.destroy();
    });
    return closing;
  };
  return {
    contract: 1,
    name: 'host',
    rank: context.rank,
    size: context.size,
    supports: { devices: ['cpu'], verbs: allVerbs, sync: true, reduces: isReducible },
    start,
    run,
    // Less than a page is copied faster than it is shared.
    alloc: (count, dtype) => allocHost(count, dtype, (bytes) => (bytes < 4096 ? null : native.alloc(bytes))),
    flightRecord: () => JSON.parse(lastRecord ?? native.flightRecord()) as FlightEntry[],
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

/** The groups of this process that may write their record; a name for the files. */
let dumped = 0;

function dumpFlight(native: NativeGroup, folder: string, { group, rank, size }: BackendContext): void {
  const head = {
    ringwise: 'flight record',
    group,
    rank,
    size,
    host: hostname(),
    clock: clockId(),
    pid: process.pid,
    index: dumped,
  };
  const name = group.replace(/[^\w.-]+/g, '_');
  const file = join(folder, `ringwise-${name}-rank${rank}-${process.pid}-${dumped++}.json`);
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    native.dumpFlightTo(file, JSON.stringify(head));
  } catch (cause) {
    throw new CollectiveError(
      flightFolderNotUsable(folder, (cause as Error).message),
      { group, rank, size },
      { cause },
    );
  }
}

type Memory = NodeJS.TypedArray | null;
type Submit<R> = (...memory: NativeMemory) => R;

/** Hands an operation to `native`: its memory as arguments, the rest as numbers in `call`. */
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

/** Returns the memory of the view that `count` and `dtype` are of. */
function describe(call: Float64Array, view: BufferView, tag: number, root: number): Memory {
  call[NativeField.dtype] = dtypeIndex[view.dtype];
  call[NativeField.count] = view.count;
  call[NativeField.tag] = tag;
  call[NativeField.root] = root;
  call[NativeField.reduce] = 0;
  call[NativeField.factor] = 1;
  call[NativeField.inPlace] = 0;
  return memoryOf(view);
}

function reduceBy(call: Float64Array, { op, factor }: { readonly op: ReduceOp; readonly factor: number }) {
  call[NativeField.reduce] = opIndex[op];
  call[NativeField.factor] = factor;
}

function memoryOf(view: BufferView | null): Memory {
  return view && (view.host as Memory); // the group admits devices: ['cpu'] only, which have host memory
}

function countsOf(counts: readonly number[] | null): Float64Array | null {
  return counts && Float64Array.from(counts);
}
