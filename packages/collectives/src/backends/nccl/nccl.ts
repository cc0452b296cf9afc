// The nccl backend: NVIDIA's library runs collectives on CUDA memory, and the host backend of the same ranks
// runs everything else, in one sequence of operations. The design is described in native/coll/nccl/group.h.
//
// NCCL does not compare what ranks call. The host group therefore gathers each rank's calls in parallel with
// the device's work (agreement/). It finds mismatched calls, late ranks and lost ranks, and its failure ends
// the operations on the device. With RINGWISE_NCCL_CHECK=1 the device starts only after all ranks have
// agreed.
import { allVerbs } from '../../all-verbs.ts';
import type { Backend, Broadcast, Operation, Running, Settle, StepCaptures } from '../../backend.ts';
import { byteSize, type DType } from '../../dtype.ts';
import {
  CollectiveError,
  deviceNotSupported,
  type Failure,
  systemFailure,
  unusableNccl,
} from '../../errors.ts';
import { allocHost, type BufferView, elementsOf } from '../../group/buffer.ts';
import { memoryOf } from '../../group/operation-memory.ts';
import { signatureOf } from '../../group/signature.ts';
import { isMessage } from '../../group/steps.ts';
import type { ReduceOp } from '../../reduce-ops.ts';
import { isReducible } from '../../reduce-ops.ts';
import { Agreement } from '../agreement/agreement.ts';
import type { Decide } from '../agreement/comparison.ts';
import type { BackendContext, BackendFactory } from '../context.ts';
import { hostBackend } from '../host.ts';
import { loadNative, type NativeNcclGroup } from '../native.ts';
import { abortNative, Lane } from '../native-lane.ts';
import { capturedOnNccl } from './captured.ts';

/** Operations of one call, or of one together(), which this rank announces to the other ranks as one. */
interface Call {
  readonly operations: Operation[];
  readonly decide: Decide[];
  /** The comparison with the other ranks; null until it is announced. */
  agreeing: Running | null;
}

interface Registered {
  readonly buffer: BufferView;
  /** Number of the registration in the native group; null if it is not registered there. */
  id: number | null;
}

/** Throws ERR_COLL_SYSTEM if there is no device, or no libnccl that can be used. */
export function requireNccl(): void {
  const { driver, reason } = loadNative().nccl.about();
  if (driver) throw new CollectiveError(systemFailure('init', null, driver), null);
  if (reason) throw new CollectiveError(unusableNccl('init', null, reason), null);
}

/** Makes the nccl backend. NCCL connects at the first operation on device memory. */
export const ncclBackend: BackendFactory = async (context) =>
  new Nccl(context, await hostBackend(context), 'nccl');

/**
 * Makes the host backend alone if there is no device, or if NCCL is missing and the host backend accepts CUDA
 * memory; else the host backend with NCCL for device memory.
 */
export const autoBackend: BackendFactory = async (context) => {
  const host = await hostBackend(context);
  const { devices, reason } = loadNative().nccl.about();
  const canDoWithout = reason !== '' && host.supports.devices.includes('cuda');
  return devices === 0 || canDoWithout ? host : new Nccl(context, host, 'auto');
};

/**
 * Returns whether this process's NCCL reduces `dtype` by `op` among `size` ranks. NCCL has no bitwise operations and no
 * 16-bit integers; it has 8-bit floats on devices of compute capability 9.0 or higher, and cannot multiply those of a
 * single rank. For bools, which are 0 or 1, band is computed as the minimum and bor as the maximum.
 */
export function isReducibleByNccl(op: ReduceOp, dtype: DType, size: number): boolean {
  if (dtype.startsWith('float8')) {
    if (!loadNative().nccl.about().reducesFloat8 || (size === 1 && op === 'premulSum')) return false;
  }
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
  /**
   * The broadcast of the unique id, while it runs. Wait for it before this thread blocks on a device
   * operation.
   */
  #opening: Running | null = null;
  #closing: Promise<void> | undefined;
  /** A mismatch that was found. If no call of this rank has failed, close() rejects with it. */
  #unreported: CollectiveError | null = null;
  /** Whether any call of this rank has failed. */
  #hasFailed = false;
  /** Nesting depth of together(), and whether NCCL batches what is started now. */
  #together = 0;
  #isHolding = false;
  #call: Call | null = null;
  /** The registrations. They keep the memory alive. */
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
        device === 'cuda' ? isReducibleByNccl(op, dtype, this.size) : isReducible(op, dtype),
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
      rootCauseOf: this.#rootCauseOf,
      withRootCause: this.#withRootCause,
      failIf: this.#failIf,
    });
  }

  readonly start = (operation: Operation, settle: Settle): Running | null => {
    if (this.#isOfHost(operation)) {
      this.#announce(); // keeps announcements in call order
      return this.#startOnHost(operation, settle);
    }
    const buffer = memoryOf(operation);
    if (buffer !== null) {
      if (isMessage(operation.verb)) return this.#startOnHost(operation, settle);
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

  /** Operations on the host, and messages, are left to the host backend. */
  readonly refuses = (operation: Operation): Failure | null => {
    const buffer = memoryOf(operation);
    if (buffer === null || buffer.device.kind === 'cpu' || isMessage(operation.verb)) return null;
    return this.#deviceFault(operation, buffer);
  };

  /** The first buffer opens its device; all later buffers must be on the same device. */
  #deviceFault({ verb }: Operation, { device: { index } }: BufferView): Failure | null {
    if (this.#native === null || index === this.#device) return null;
    return deviceNotSupported(verb, this.name, `cuda:${index}`, `cuda:${this.#device}`);
  }

  readonly failure = (): Failure | null => this.#host.failure?.() ?? null;
  readonly losses = (): Failure | null => this.#host.losses?.() ?? null;

  readonly abort = (cause: CollectiveError): void => {
    if (this.#native !== null) abortNative(this.#native, cause);
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
    this.#agreement.tellMismatch();
    const closed = await this.#host.close().then(
      () => null,
      (error: CollectiveError) => error,
    );
    if (closed !== null && closed.code !== 'ERR_COLL_MISMATCH') throw closed;
    const unreported = this.#unreported ?? closed;
    if (unreported !== null && !this.#hasFailed) throw unreported;
  }

  /** Registers a buffer with NCCL now, or when the device is opened. */
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

  /** Running operations may still use the memory, so it is released only when the native group says so. */
  #deregister(registered: Registered): void {
    const { id } = registered;
    registered.id = null;
    const forget = () => void this.#registered.delete(registered);
    // A closing group releases all registrations.
    if (id === null || this.#closing !== undefined) forget();
    else this.#lane.ended(this.#native!.deregisterBuffer(id), 'register').then(forget, forget);
  }

  /**
   * Returns whether the host backend runs the operation. Once a device is open, a barrier also waits for the
   * device.
   */
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

  /** Throws for another device than that of the first operation, which refuses() finds unless both are in one call. */
  #use(buffer: BufferView, operation: Operation): void {
    if (this.#native === null) this.#open(buffer.device.index, operation);
    const fault = this.#deviceFault(operation, buffer);
    if (fault !== null) throw this.#error(fault);
  }

  /**
   * Opens the device and starts to connect. All ranks get here at the same operation. Operations started
   * before the ranks are connected wait for the connection.
   */
  #open(device: number, { verb, seq, timeoutMs }: Operation): void {
    const { nccl } = loadNative();
    const { reason } = nccl.about();
    if (reason) throw this.#error(unusableNccl(verb, seq, reason));
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
      if (error !== undefined) return; // the native group observes the host group and reports the error
      // Operations that wait for the connection report its failure, so the rejection itself is not
      // propagated.
      lane.ended(native.connect(elementsOf(id), this.#context.timeoutMs), 'init').catch(this.#rootCauseOf);
    });
  }

  #startNative(operation: Operation, settle: Settle) {
    const native = this.#native!;
    const id = this.#lane.hand(operation, this.#submit!, this.#withRootCause(settle));
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

  /**
   * Reports an error that only this rank's NCCL or device saw to the other ranks. Returns the root cause,
   * which the other ranks may have found first.
   */
  readonly #rootCauseOf = (error: CollectiveError): CollectiveError => {
    if (error.code === 'ERR_COLL_SYSTEM') this.#host.abort(error);
    return this.#agreement.causeOf(error);
  };

  readonly #withRootCause =
    (settle: Settle): Settle =>
    (error, source) => {
      if (error !== undefined) this.#hasFailed = true;
      settle(error && this.#rootCauseOf(error), source);
    };

  #beside(operation: Operation, settle: Settle): Running {
    this.#hold();
    const running = this.#startNative(operation, settle);
    const call = this.#agree(operation, this.#failIf);
    return {
      // Ranks that disagree block each other on the device, or in NCCL while it connects them. A thread that
      // is blocked there would not see the mismatch, so it waits for the comparison first.
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

  /** Makes NCCL batch what together() starts from now on. */
  #hold(): void {
    if (this.#together === 0 || this.#isHolding) return;
    this.#isHolding = true;
    this.#native?.hold();
  }

  /** Fails the native group after a mismatch, or when not all ranks have made the call. */
  readonly #failIf: Decide = (error) => {
    if (error === undefined) return;
    if (error.code === 'ERR_COLL_MISMATCH') this.#unreported ??= error;
    if (this.#native !== null) abortNative(this.#native, error);
  };

  #afterAll(operation: Operation, settle: Settle): Running {
    let running: Running | null = null;
    let isRefused = false;
    let isProgressRequested = false;
    const call = this.#agree(operation, (error) => {
      isRefused = error !== undefined;
      if (error !== undefined) {
        this.#hasFailed = true;
        settle(error);
      } else running = this.#startNative(operation, settle);
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

  /**
   * Starts to compare the operation with the other ranks' calls, together with the other operations of its
   * call.
   */
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

  /** Makes NCCL batch everything that `begin` starts into one group. */
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
