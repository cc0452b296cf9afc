// The nccl backend: collectives on CUDA memory by NVIDIA's library, all else by the host backend of the same ranks, in one
// sequence of operations. The design is at the top of native/coll/nccl/group.h.
//
// NCCL compares nothing. So the host group gathers what every rank has called beside each operation: it finds who calls
// something else, who is late and who has gone, and its failure ends the operation on the device. With RINGWISE_NCCL_CHECK=1
// the device begins only when all have agreed.
import { allVerbs } from '../all-verbs.ts';
import type { AllGather, Backend, Broadcast, Operation, ReduceOp, Running, Settle } from '../backend.ts';
import { allocHost, type BufferView, elementsOf } from '../buffer.ts';
import type { DType } from '../dtype.ts';
import { CollectiveError, deviceNotSupported, mismatch, systemFailure, verbNotSupported } from '../errors.ts';
import { loadNative, type NativeNcclGroup } from '../native.ts';
import { isReducible } from '../reduce-ops.ts';
import type { BackendContext, BackendFactory } from '../registry.ts';
import { signatureOf } from '../signature.ts';
import { hostBackend } from './host.ts';
import { codes, Lane } from './native-lane.ts';

/** Bytes of what a rank says it has called. */
const announced = 160;
/** Comparisons that may wait for the event loop. A program that blocks takes note of them itself. */
const mostUndecided = 64;

interface Comparison {
  readonly ended: Promise<void>;
  running: Running | null;
}

/** ERR_COLL_SYSTEM where there is no device or no libnccl. It connects at the first operation on a device, there. */
export const ncclBackend: BackendFactory = async (context) => {
  const { driver, reason } = loadNative().nccl.about();
  const { group, rank, size } = context;
  const missing = driver || reason;
  if (missing) throw new CollectiveError(systemFailure('init', null, missing), { group, rank, size });
  return new Nccl(context, await hostBackend(context), 'nccl');
};

/** The host backend where there is no device, or no NCCL and it can do without; else that, and NCCL for devices. */
export const autoBackend: BackendFactory = async (context) => {
  const host = await hostBackend(context);
  const { devices, reason } = loadNative().nccl.about();
  const canDoWithout = reason !== '' && host.supports.devices.includes('cuda');
  return devices === 0 || canDoWithout ? host : new Nccl(context, host, 'auto');
};

/** Whether NCCL does `op` on `dtype`: it knows no bits and no integers of 16. */
export function isReducibleByNccl(op: ReduceOp, dtype: DType): boolean {
  const isMissing = op === 'band' || op === 'bor' || op === 'bxor' || dtype === 'int16' || dtype === 'uint16';
  return !isMissing && isReducible(op, dtype);
}

class Nccl implements Backend {
  readonly contract = 1;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly supports: Backend['supports'];
  readonly alloc: Backend['alloc'];
  readonly #context: BackendContext;
  readonly #host: Backend;
  readonly #lane: Lane;
  readonly #checksAhead = process.env.RINGWISE_NCCL_CHECK === '1';
  /** Operations that the host group has not agreed about. */
  readonly #undecided = new Set<Comparison>();
  #native: NativeNcclGroup | null = null;
  #device = -1;
  #startNative: Pick<Backend, 'start'>['start'] | null = null;
  /** The host group's part in connecting: whoever blocks this thread has to see to it first. */
  #opening: Running | null = null;
  #closing: Promise<void> | undefined;
  /** Calls of together() that have not returned, and whether NCCL holds what they have started. */
  #together = 0;
  #isHolding = false;

  constructor(context: BackendContext, host: Backend, name: string) {
    this.name = name;
    this.rank = context.rank;
    this.size = context.size;
    this.supports = {
      devices: ['cuda', 'cpu'],
      verbs: allVerbs,
      sync: true,
      reduces: (op, dtype, device) =>
        device === 'cuda' ? isReducibleByNccl(op, dtype) : isReducible(op, dtype),
    };
    this.alloc = host.alloc;
    this.#context = context;
    this.#host = host;
    this.#lane = new Lane(context);
  }

  readonly start = (operation: Operation, settle: Settle): Running | null => {
    if (this.#isOfHost(operation)) return this.#host.start(operation, settle);
    const buffer = bufferOf(operation);
    if (buffer !== null) {
      if (operation.verb === 'send' || operation.verb === 'recv') return this.#message(operation, settle);
      this.#use(buffer, operation);
    }
    return this.#checksAhead ? this.#afterAll(operation, settle) : this.#beside(operation, settle);
  };

  readonly run = (operation: Operation): number | undefined => {
    if (this.#isOfHost(operation)) return this.#host.run(operation);
    let failure: CollectiveError | undefined;
    let source: number | undefined;
    const running = this.start(operation, (error, from) => {
      failure = error;
      source = from;
    });
    running?.wait();
    if (failure !== undefined) throw failure;
    return source;
  };

  readonly together = (begin: () => void): void => {
    this.#together++;
    try {
      begin();
    } finally {
      if (--this.#together === 0 && this.#isHolding) {
        this.#isHolding = false;
        this.#native?.release();
      }
    }
  };

  readonly abort = (cause: CollectiveError): void => {
    this.#native?.abort(cause.what);
    this.#host.abort(cause);
  };

  readonly close = (): Promise<void> => {
    this.#closing ??= this.#leave();
    return this.#closing;
  };

  async #leave(): Promise<void> {
    while (this.#undecided.size > 0) await Promise.all([...this.#undecided].map(({ ended }) => ended));
    const native = this.#native;
    if (native !== null) await this.#lane.ended(native.close(), 'close').finally(() => native.destroy());
    await this.#host.close();
  }

  /** A barrier waits for devices too, once there is one. */
  #isOfHost(operation: Operation): boolean {
    const buffer = bufferOf(operation);
    return buffer === null ? this.#native === null : buffer.device.kind === 'cpu';
  }

  /** Messages on a device are the host backend's, where it takes such memory. */
  #message(operation: Operation, settle: Settle): Running | null {
    if (this.#host.supports.devices.includes('cuda')) return this.#host.start(operation, settle);
    const others = allVerbs.filter((verb) => verb !== 'send' && verb !== 'recv');
    throw this.#error(verbNotSupported(operation.verb, `${this.name} (on cuda memory)`, others));
  }

  /** Opens the device of the first buffer; all others must lie there. */
  #use({ device }: BufferView, operation: Operation): void {
    if (this.#native === null) this.#open(device.index, operation);
    if (device.index === this.#device) return;
    const got = `cuda:${device.index}`;
    throw this.#error(deviceNotSupported(operation.verb, this.name, got, `cuda:${this.#device}`));
  }

  /** All ranks come here at the same operation. What is started until they are connected waits for it. */
  #open(device: number, { verb, seq, timeoutMs }: Operation): void {
    const { nccl } = loadNative();
    const { reason } = nccl.about();
    if (reason) throw this.#error(systemFailure(verb, seq, reason));
    const lane = this.#lane;
    const native = new nccl.NcclGroup(
      this.rank,
      this.size,
      device,
      this.#host.native as object,
      lane.call,
      lane.onEnd,
    );
    this.#native = native;
    this.#device = device;
    this.#startNative = lane.operate(native).start;
    const id = allocHost(128, 'uint8');
    if (this.rank === 0) elementsOf(id).set(nccl.makeId());
    const share: Broadcast = { verb: 'broadcast', seq, timeoutMs, packing: 0, buffer: id, root: 0 };
    this.#opening = this.#host.start(share, (error) => {
      this.#opening = null;
      if (error !== undefined) return; // the native group knows, and says so
      // Whoever waits for an operation hears of it; there is nobody else to tell.
      lane.ended(native.connect(elementsOf(id), this.#context.timeoutMs), 'init').catch(() => {});
    });
  }

  #beside(operation: Operation, settle: Settle): Running {
    if (this.#together > 0 && !this.#isHolding) {
      this.#isHolding = true;
      this.#native?.hold();
    }
    const running = this.#startNative!(operation, settle) as Running;
    this.#agree(operation, (error) => {
      if (error !== undefined) this.#native?.fail(codes.indexOf(error.code), error.peers, error.what);
    });
    const opened = () => {
      this.#opening?.wait();
      this.#catchUp();
      return running;
    };
    return {
      wait: () => opened().wait(),
      fence: () => opened().fence?.(),
      urge: () => running.urge?.(),
    };
  }

  #afterAll(operation: Operation, settle: Settle): Running {
    let running: Running | null = null;
    let isRefused = false;
    let isUrged = false;
    const agreeing = this.#agree(operation, (error) => {
      isRefused = error !== undefined;
      if (error !== undefined) settle(error);
      else running = this.#startNative!(operation, settle);
      if (isUrged) running?.urge?.();
    });
    const agreed = () => {
      if (running === null && !isRefused) agreeing?.wait();
      return running;
    };
    return {
      wait: () => agreed()?.wait(),
      fence: () => agreed()?.fence?.(),
      urge: () => {
        isUrged = true;
        agreeing?.urge?.();
        running?.urge?.();
      },
    };
  }

  /** Gathers what the ranks have called. `decide` gets the failure in the words of this operation. */
  #agree(operation: Operation, decide: (error?: CollectiveError) => void): Running | null {
    const { verb, seq, timeoutMs } = operation;
    const input = allocHost(announced, 'uint8');
    const output = allocHost(announced * this.size, 'uint8');
    elementsOf(input).set(Buffer.from(brief(signatureOf(operation))));
    const gather: AllGather = { verb: 'allGather', seq, timeoutMs, packing: 0, input, output, counts: null };
    let resolve = () => {};
    const ended = new Promise<void>((done) => {
      resolve = done;
    });
    const comparison: Comparison = { ended, running: null };
    this.#undecided.add(comparison);
    comparison.running = this.#host.start(gather, (error) => {
      this.#undecided.delete(comparison);
      resolve();
      if (error === undefined) return decide(this.#disagreement(operation, elementsOf(output)));
      decide(this.#error({ ...error, code: error.code, what: error.what, peers: error.peers, verb, seq }));
    });
    return comparison.running;
  }

  /** A loop that never returns to the event loop would hear of no comparison, and keep the memory of all. */
  #catchUp(): void {
    if (this.#undecided.size < mostUndecided) return;
    const [oldest] = this.#undecided;
    oldest!.running?.wait(); // which settles all that have ended
  }

  /** The first rank that has called something else than rank 0: the same two on all ranks. */
  #disagreement({ verb, seq }: Operation, texts: Uint8Array): CollectiveError | undefined {
    const textOf = (rank: number) => texts.subarray(rank * announced, (rank + 1) * announced);
    const sentence = (rank: number) => Buffer.from(textOf(rank)).toString().replace(/\0+$/, '');
    for (let rank = 1; rank < this.size; rank++) {
      if (Buffer.compare(textOf(0), textOf(rank)) === 0) continue;
      const one = { rank: 0, signature: sentence(0) };
      return this.#error(mismatch(verb, seq, one, { rank, signature: sentence(rank) }));
    }
    return undefined;
  }

  #error(failure: ConstructorParameters<typeof CollectiveError>[0]): CollectiveError {
    const { group, rank, size } = this.#context;
    return new CollectiveError(failure, { group, rank, size });
  }
}

/** The memory of an operation that is on all ranks; null for a barrier. */
function bufferOf(operation: Operation): BufferView | null {
  switch (operation.verb) {
    case 'barrier':
      return null;
    case 'allGather':
    case 'gather':
    case 'allToAll':
      return operation.input;
    case 'scatter':
    case 'reduceScatter':
      return operation.output;
    default:
      return operation.buffer;
  }
}

/** At most as long as what is announced; of longer ones a digest tells the rest apart. */
function brief(text: string): string {
  if (Buffer.byteLength(text) <= announced) return text;
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return `${text.slice(0, 120)}… ${(hash >>> 0).toString(16)}`;
}
