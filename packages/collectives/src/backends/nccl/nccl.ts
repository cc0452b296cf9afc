// The nccl backend: collectives on CUDA memory by NVIDIA's library, all else by the host backend of the same ranks, in one
// sequence of operations. The design is at the top of native/coll/nccl/group.h.
//
// NCCL compares nothing. So the host group gathers what every rank has called beside each call (agreement/): it finds who
// calls something else, who is late and who has gone, and its failure ends the operations on the device. With
// RINGWISE_NCCL_CHECK=1 the device begins only when all have agreed.
import { allVerbs } from '../../all-verbs.ts';
import type { Backend, Broadcast, Operation, Running, Settle, StepCaptures } from '../../backend.ts';
import { byteSize, type DType } from '../../dtype.ts';
import { CollectiveError, deviceNotSupported, systemFailure, verbNotSupported } from '../../errors.ts';
import { allocHost, type BufferView, elementsOf } from '../../group/buffer.ts';
import { memoryOf } from '../../group/operation-memory.ts';
import { signatureOf } from '../../group/signature.ts';
import type { ReduceOp } from '../../reduce-ops.ts';
import { isReducible } from '../../reduce-ops.ts';
import { Agreement } from '../agreement/agreement.ts';
import type { Decide } from '../agreement/comparison.ts';
import type { BackendContext, BackendFactory } from '../context.ts';
import { hostBackend } from '../host.ts';
import { loadNative, type NativeNcclGroup } from '../native.ts';
import { codes, Lane } from '../native-lane.ts';
import { capturedOnNccl } from './captured.ts';

/** What together() has started on the device and not announced. */
interface Call {
  readonly operations: Operation[];
  readonly decide: Decide[];
  /** Null until it is announced. */
  agreeing: Running | null;
}

interface Registered {
  readonly buffer: BufferView;
  /** The native group's; null where that does not know it. */
  id: number | null;
}

/** Throws ERR_COLL_SYSTEM where there is no device or no libnccl. */
export function requireNccl(): void {
  const { driver, reason } = loadNative().nccl.about();
  const missing = driver || reason;
  if (missing) throw new CollectiveError(systemFailure('init', null, missing), null);
}

/** It connects at the first operation on a device, there. */
export const ncclBackend: BackendFactory = async (context) =>
  new Nccl(context, await hostBackend(context), 'nccl');

/** The host backend where there is no device, or no NCCL and it can do without; else that, and NCCL for devices. */
export const autoBackend: BackendFactory = async (context) => {
  const host = await hostBackend(context);
  const { devices, reason } = loadNative().nccl.about();
  const canDoWithout = reason !== '' && host.supports.devices.includes('cuda');
  return devices === 0 || canDoWithout ? host : new Nccl(context, host, 'auto');
};

/**
 * Whether the NCCL of this process does `op` on `dtype`: it knows no bits, no integers of 16, and floats of 8 from 2.24 on
 * devices of compute capability 9.0 and more. Of bools, which are 0 or 1, band is the minimum and bor the maximum.
 */
export function isReducibleByNccl(op: ReduceOp, dtype: DType): boolean {
  if (dtype.startsWith('float8') && !loadNative().nccl.about().reducesFloat8) return false;
  if (dtype === 'int16' || dtype === 'uint16' || op === 'bxor') return false;
  return isReducible(op, dtype) && (dtype === 'bool' || (op !== 'band' && op !== 'bor'));
}

class Nccl implements Backend {
  readonly contract = 1;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly supports: Backend['supports'];
  readonly alloc: Backend['alloc'];
  readonly captures: StepCaptures;
  readonly #context: BackendContext;
  readonly #host: Backend;
  readonly #lane: Lane;
  readonly #checksAhead = process.env.RINGWISE_NCCL_CHECK === '1';
  readonly #agreement: Agreement;
  #native: NativeNcclGroup | null = null;
  #submit: NativeNcclGroup['start'] | null = null;
  #device = -1;
  /** The host group's part in connecting: whoever blocks this thread has to see to it first. */
  #opening: Running | null = null;
  #closing: Promise<void> | undefined;
  /** Ranks disagree, and no call of this one has said so: close() does. */
  #untold: CollectiveError | null = null;
  /** A call has failed. */
  #hasFailed = false;
  /** Calls of together() that have not returned, and whether NCCL holds what they have started. */
  #together = 0;
  #isHolding = false;
  #call: Call | null = null;
  /** Holds the memory. */
  readonly #registered = new Set<Registered>();

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
    this.#agreement = new Agreement(context, host);
    this.captures = capturedOnNccl({
      lane: this.#lane,
      agreement: this.#agreement,
      checksAhead: this.#checksAhead,
      open: (operation) => {
        this.#use(memoryOf(operation)!, operation);
        this.#opening?.wait();
        return this.#native!;
      },
      native: () => this.#native!,
      hold: () => this.#hold(),
      told: this.#told,
      telling: this.#telling,
      failIf: this.#failIf,
    });
  }

  readonly start = (operation: Operation, settle: Settle): Running | null => {
    if (this.#isOfHost(operation)) {
      this.#announce(); // in the order of the calls
      return this.#startOnHost(operation, settle);
    }
    const buffer = memoryOf(operation);
    if (buffer !== null) {
      if (operation.verb === 'send' || operation.verb === 'recv') return this.#message(operation, settle);
      this.#use(buffer, operation);
    }
    return this.#checksAhead ? this.#afterAll(operation, settle) : this.#beside(operation, settle);
  };

  readonly run = (operation: Operation): number | undefined => {
    if (this.#isOfHost(operation)) return this.#runOnHost(operation);
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
      if (--this.#together === 0) {
        if (this.#isHolding) this.#native?.release();
        this.#isHolding = false;
        this.#announce();
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
    await this.#agreement.decided();
    const native = this.#native;
    if (native !== null) await this.#lane.ended(native.close(), 'close').finally(() => native.destroy());
    this.#registered.clear();
    await this.#host.close();
    if (this.#untold !== null && !this.#hasFailed) throw this.#untold;
  }

  /** Before the device is open, what is registered waits for it. */
  readonly register = (buffer: BufferView): (() => void) => {
    if (buffer.device.kind !== 'cuda' || buffer.count === 0) return () => {};
    const registered: Registered = { buffer, id: null };
    this.#registered.add(registered);
    if (this.#native !== null) this.#register(this.#native, registered);
    return () => this.#deregister(registered);
  };

  #register(native: NativeNcclGroup, registered: Registered): void {
    const { handle, count, dtype, device } = registered.buffer;
    if (device.index !== this.#device) return;
    registered.id = native.registerBuffer(handle!.address, count * byteSize(dtype));
  }

  /** What is under way may use the memory still. */
  #deregister(registered: Registered): void {
    const { id } = registered;
    registered.id = null;
    const forget = () => void this.#registered.delete(registered);
    // A group that closes lets go of everything.
    if (id === null || this.#closing !== undefined) forget();
    else this.#lane.ended(this.#native!.deregisterBuffer(id), 'register').then(forget, forget);
  }

  /** A barrier waits for devices too, once there is one. */
  #isOfHost(operation: Operation): boolean {
    const buffer = memoryOf(operation);
    return buffer === null ? this.#native === null : buffer.device.kind === 'cpu';
  }

  #startOnHost(operation: Operation, settle: Settle): Running | null {
    return this.#host.start(operation, (error, source) => {
      if (error !== undefined) this.#hasFailed = true;
      settle(error && this.#agreement.knownCauseOf(error), source);
    });
  }

  #runOnHost(operation: Operation): number | undefined {
    try {
      return this.#host.run(operation);
    } catch (error) {
      this.#hasFailed = true;
      throw this.#agreement.causeOf(error as CollectiveError);
    }
  }

  /** Messages on a device are the host backend's, where it takes such memory. */
  #message(operation: Operation, settle: Settle): Running | null {
    if (this.#host.supports.devices.includes('cuda')) return this.#startOnHost(operation, settle);
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
    this.#submit = native.start.bind(native);
    this.#device = device;
    for (const registered of this.#registered) this.#register(native, registered);
    const id = allocHost(128, 'uint8');
    if (this.rank === 0) elementsOf(id).set(nccl.makeId());
    const share: Broadcast = { verb: 'broadcast', seq, timeoutMs, packing: 0, buffer: id, root: 0 };
    this.#opening = this.#host.start(share, (error) => {
      this.#opening = null;
      if (error !== undefined) return; // the native group knows, and says so
      // Whoever waits for an operation hears of it; there is nobody else to tell.
      lane.ended(native.connect(elementsOf(id), this.#context.timeoutMs), 'init').catch(this.#told);
    });
  }

  #startNative(operation: Operation, settle: Settle) {
    const native = this.#native!;
    const id = this.#lane.hand(operation, this.#submit!, this.#telling(settle));
    const opened = () => {
      this.#opening?.wait();
      return native;
    };
    return {
      wait: () => opened().wait(id),
      fence: () => opened().fence!(id),
      requestProgress: () => native.requestProgress?.(),
      isTaken: () => opened().isTaken(id),
    };
  }

  /** What only the NCCL or the device of this rank reports, the others have to learn. They may know more than this one. */
  readonly #told = (error: CollectiveError): CollectiveError => {
    if (error.code === 'ERR_COLL_SYSTEM') this.#host.abort(error);
    return this.#agreement.causeOf(error);
  };

  readonly #telling =
    (settle: Settle): Settle =>
    (error, source) => {
      if (error !== undefined) this.#hasFailed = true;
      settle(error && this.#told(error), source);
    };

  #beside(operation: Operation, settle: Settle): Running {
    this.#hold();
    const running = this.#startNative(operation, settle);
    const call = this.#agree(operation, this.#failIf);
    return {
      // Ranks that disagree wait for each other on the device, or already in NCCL while that connects them, and a thread that is
      // blocked there would not hear why.
      wait: () => {
        this.#agreement.catchUp();
        call.agreeing?.wait();
        running.wait();
      },
      fence: () => {
        this.#agreement.catchUp();
        if (!running.isTaken()) call.agreeing?.wait();
        running.fence();
      },
      requestProgress: running.requestProgress,
    };
  }

  /** NCCL holds what together() starts from now on. */
  #hold(): void {
    if (this.#together === 0 || this.#isHolding) return;
    this.#isHolding = true;
    this.#native?.hold();
  }

  /** Ranks have called different things, or not all of them have called. */
  readonly #failIf: Decide = (error) => {
    if (error === undefined) return;
    if (error.code === 'ERR_COLL_MISMATCH') this.#untold ??= error;
    this.#native?.fail(codes.indexOf(error.code), error.peers, error.what);
  };

  #afterAll(operation: Operation, settle: Settle): Running {
    let running: Running | null = null;
    let isRefused = false;
    let isProgressRequested = false;
    const call = this.#agree(operation, (error) => {
      isRefused = error !== undefined;
      if (error !== undefined) settle(error);
      else running = this.#startNative(operation, settle);
      if (isProgressRequested) running?.requestProgress?.();
    });
    const agreed = () => {
      if (running === null && !isRefused) call.agreeing?.wait();
      return running;
    };
    return {
      wait: () => agreed()?.wait(),
      fence: () => agreed()?.fence?.(),
      requestProgress: () => {
        isProgressRequested = true;
        call.agreeing?.requestProgress?.();
        running?.requestProgress?.();
      },
    };
  }

  /** Asks whether all ranks have called it, together with the rest of its call. */
  #agree(operation: Operation, decide: Decide): Call {
    this.#call ??= { operations: [], decide: [], agreeing: null };
    const call = this.#call;
    call.operations.push(operation);
    call.decide.push(decide);
    if (this.#together === 0) this.#announce();
    return call;
  }

  #announce(): void {
    const call = this.#call;
    if (call === null) return;
    this.#call = null;
    const { verb, seq, timeoutMs } = call.operations[0]!;
    const asked = { verb, seq, timeoutMs, signatures: call.operations.map(signatureOf) };
    call.agreeing = this.#agreement.ask(asked, (error) => {
      const begin = () => {
        for (const decide of call.decide) decide(error);
      };
      if (this.#checksAhead && error === undefined) this.#asOne(begin);
      else begin();
    });
  }

  /** What `begin` starts goes to NCCL as one group. */
  #asOne(begin: () => void): void {
    this.#native?.hold();
    try {
      begin();
    } finally {
      this.#native?.release();
    }
  }

  #error(failure: ConstructorParameters<typeof CollectiveError>[0]): CollectiveError {
    const { group, rank, size } = this.#context;
    return new CollectiveError(failure, { group, rank, size });
  }
}
