// Makes a backend for host memory accept CUDA memory: operations on it are staged, that is copied in pieces
// through slots of host memory. Operations on host memory go directly to the backend. Collectives keep their
// order: while a staged one runs, later ones wait in a queue. Each message has a slot of its own, because
// messages must not wait for other operations.
import type { Backend, Operation, Running, Settle } from '../../backend.ts';
import { CollectiveError, deviceFailed, mismatchOfPieces, type Site, unexpected } from '../../errors.ts';
import type { FlightEntry } from '../../flight/entry.ts';
import { signatureOf } from '../../group/signature.ts';
import { Numbering } from './numbering.ts';
import { deviceViews, isWhole, needsDevice, wholeBytes } from './pieces.ts';
import { Slots } from './slots.ts';
import { type Host, StagedCall } from './staged-call.ts';

const slotBytes = 2 ** 21;
const slotCount = 3;

/** A collective that is queued or running. */
interface Waiting {
  readonly begin: () => void;
  readonly step: () => void;
  hasEnded: boolean;
}

/** A send or recv that has not been passed to the host backend yet. */
interface Outgoing {
  readonly isReady: () => boolean;
  readonly start: () => void;
  /** Blocks until something has progressed towards `isReady`. */
  readonly step: () => void;
}

/** Slots of operations that stay whole have powers of two as sizes, so that similar later ones reuse them. */
const roundUp = (bytes: number): number => 2 ** Math.ceil(Math.log2(Math.max(bytes, 4096)));

export class Staging {
  readonly #backend: Backend;
  readonly #isMoved: (operation: Operation) => boolean;
  readonly #host: Host;
  readonly #queue: Waiting[] = [];
  /** Slots of collectives in pieces, by device; free slots of operations that stay whole, by device and size. */
  readonly #slots = new Map<string, Slots[]>();
  readonly #all: Slots[] = [];
  #messages = 0;
  /**
   * Messages that have not been passed to the host backend, in call order, which is also the order in which
   * they start.
   */
  readonly #outbox: Outgoing[] = [];
  readonly #numbering = new Numbering();
  #onIdle: (() => void) | null = null;

  /** `group` is the group's name, for error messages. `isMoved` tells whether an operation must be staged. */
  constructor(backend: Backend, group: string, isMoved = needsDevice) {
    this.#backend = backend;
    this.#isMoved = isMoved;
    const { rank, size, start } = backend;
    const site = { group, rank, size };
    const reported: Host['errorOf'] = (error, operation, pieces) => {
      const known = errorOf(error, operation, site, pieces);
      // The other ranks do not see this rank's device error.
      if (!CollectiveError.is(error)) backend.abort(known);
      return known;
    };
    this.#host = { rank, size, start, errorOf: reported };
  }

  readonly start = (operation: Operation, settle: Settle): Running | null => {
    const isMessage = operation.verb === 'send' || operation.verb === 'recv';
    if (!this.#isMoved(operation)) {
      if (isMessage && this.#outbox.length === 0) return this.#backend.start(operation, settle);
      if (isMessage) return this.#messageOfHost(operation, settle);
      if (this.#queue.length === 0)
        return this.#backend.start(this.#numbering.numbered(operation), this.#renamed(operation, settle));
      return this.#enqueue(this.#plain(operation, settle));
    }
    const { index } = deviceViews(operation)[0]!.device;
    if (isMessage) return this.#message(operation, index, settle);
    const bytes = isWhole(operation) ? roundUp(wholeBytes(operation, this.#backend.size)) : slotBytes;
    return this.#enqueue(this.#staged(operation, index, bytes, this.#renamed(operation, settle)));
  };

  readonly run = (operation: Operation): number | undefined => {
    const isMessage = operation.verb === 'send' || operation.verb === 'recv';
    if (!this.#isMoved(operation) && (isMessage ? this.#outbox : this.#queue).length === 0) {
      if (isMessage || this.#numbering.isSame) return this.#backend.run(operation);
      try {
        return this.#backend.run(this.#numbering.numbered(operation));
      } catch (error) {
        throw this.#host.errorOf(error, operation);
      }
    }
    let outcome:
      | { readonly error: CollectiveError | undefined; readonly source: number | undefined }
      | undefined;
    const running = this.start(operation, (error, source) => {
      outcome = { error, source };
    });
    while (outcome === undefined) running?.wait();
    if (outcome.error !== undefined) throw outcome.error;
    return outcome.source;
  };

  /** Returns the host backend's flight record with one entry for each operation of the group. */
  readonly flightRecord = (): readonly FlightEntry[] =>
    this.#numbering.byOperation(this.#backend.flightRecord!());

  /** Waits for pending operations, then frees the slots. */
  async close(): Promise<void> {
    if (this.#queue.length > 0 || this.#messages > 0)
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    for (const slots of this.#all.splice(0)) slots.close();
  }

  /** Wraps `settle` so that an error of a piece names the operation. */
  #renamed(operation: Operation, settle: Settle): Settle {
    if (this.#numbering.isSame) return settle;
    return (error, source) => settle(error && this.#host.errorOf(error, operation), source);
  }

  #plain(operation: Operation, settle: Settle): Waiting {
    let running: Running | null = null;
    const waiting: Waiting = {
      hasEnded: false,
      begin: () => {
        const end: Settle = (error, source) => {
          waiting.hasEnded = true;
          settle(error && this.#host.errorOf(error, operation), source);
          this.#next();
        };
        try {
          running = this.#backend.start(this.#numbering.numbered(operation), end);
          running?.requestProgress?.();
        } catch (error) {
          end(this.#host.errorOf(error, operation));
        }
      },
      step: () => running?.wait(),
    };
    return waiting;
  }

  #staged(operation: Operation, device: number, bytes: number, settle: Settle): Waiting {
    let slots: Slots | null = null;
    let failed = () => {};
    const end: Settle = (error, source) => {
      waiting.hasEnded = true;
      if (error !== undefined) failed();
      if (slots !== null && isWhole(operation)) this.#giveBack(device, slots);
      settle(error && this.#host.errorOf(error, operation), source);
      this.#next();
    };
    const call = new StagedCall(operation, this.#host, bytes, end);
    const waiting: Waiting = {
      hasEnded: false,
      begin: () => {
        const numbers = this.#numbering.take(operation, call.pieces);
        failed = numbers.failed;
        try {
          slots = isWhole(operation) ? this.#take(device, bytes, 1) : this.#shared(device);
          call.begin(slots, numbers.first);
        } catch (error) {
          end(this.#host.errorOf(error, operation));
        }
      },
      step: () => call.step(),
    };
    return waiting;
  }

  #enqueue(waiting: Waiting): Running {
    this.#queue.push(waiting);
    if (this.#queue.length === 1) waiting.begin();
    return {
      wait: () => {
        while (!waiting.hasEnded) this.#queue[0]!.step();
      },
    };
  }

  #next(): void {
    this.#queue.shift();
    this.#queue[0]?.begin();
    this.#rest();
  }

  #rest(): void {
    if (this.#queue.length === 0 && this.#messages === 0) this.#onIdle?.();
  }

  #message(operation: Operation, device: number, settle: Settle): Running {
    const slots = this.#slotsOf(operation, device);
    this.#messages++;
    let isReady = false;
    let isOpen = false;
    const end: Settle = (error, source) => {
      this.#messages--;
      const at = this.#outbox.indexOf(outgoing);
      if (at >= 0) this.#outbox.splice(at, 1); // still there if it failed on the device
      this.#giveBack(device, slots);
      settle(error, source);
      this.#send();
      this.#rest();
    };
    const call = new StagedCall(operation, this.#host, slots.bytes, end, () => {
      isReady = true;
      if (!isOpen) queueMicrotask(() => this.#send());
      return isOpen;
    });
    const outgoing: Outgoing = {
      isReady: () => isReady,
      start: () => {
        isOpen = true;
        call.resume();
      },
      step: () => call.step(),
    };
    this.#outbox.push(outgoing);
    call.begin(slots, operation.seq);
    return {
      wait: () => {
        this.#sendUpTo(outgoing);
        while (!call.hasEnded) call.step();
      },
    };
  }

  /** Returns the slots of a message. Throws a CollectiveError if there is no memory or no device. */
  #slotsOf(operation: Operation, device: number): Slots {
    try {
      return this.#take(device, roundUp(wholeBytes(operation, this.#backend.size)), 1);
    } catch (error) {
      throw this.#host.errorOf(error, operation);
    }
  }

  /** Queues a host-memory message behind earlier messages that are not ready yet. */
  #messageOfHost(operation: Operation, settle: Settle): Running {
    let running: Running | null = null;
    this.#messages++;
    const end: Settle = (error, source) => {
      this.#messages--;
      settle(error, source);
      this.#rest();
    };
    const outgoing: Outgoing = {
      isReady: () => true,
      start: () => {
        try {
          running = this.#backend.start(operation, end);
          running?.requestProgress?.();
        } catch (error) {
          end(this.#host.errorOf(error, operation));
        }
      },
      step: () => {},
    };
    this.#outbox.push(outgoing);
    return {
      wait: () => {
        this.#sendUpTo(outgoing);
        running?.wait();
      },
    };
  }

  /** Starts the leading messages of the outbox that are ready. */
  #send(): void {
    while (this.#outbox[0]?.isReady()) this.#outbox.shift()!.start();
  }

  #sendUpTo(outgoing: Outgoing): void {
    while (this.#outbox.includes(outgoing)) {
      this.#outbox[0]!.step();
      this.#send();
    }
  }

  /** Returns the device's slots that all collectives in pieces share, one collective at a time. */
  #shared(device: number): Slots {
    const key = `${device}`;
    const known = this.#slots.get(key)?.[0];
    if (known !== undefined) return known;
    const slots = this.#make(device, slotBytes * slotCount, slotCount);
    this.#slots.set(key, [slots]);
    return slots;
  }

  #take(device: number, bytes: number, count: number): Slots {
    return this.#slots.get(`${device} ${bytes}`)?.pop() ?? this.#make(device, bytes, count);
  }

  #giveBack(device: number, slots: Slots): void {
    const key = `${device} ${slots.bytes}`;
    const spare = this.#slots.get(key) ?? [];
    spare.push(slots);
    this.#slots.set(key, spare);
  }

  #make(device: number, bytes: number, count: number): Slots {
    const memory = this.#backend.alloc(bytes, 'uint8').host as Uint8Array;
    const slots = new Slots(device, memory, count);
    this.#all.push(slots);
    return slots;
  }
}

/** Returns an error of a piece, or an exception of the device or the backend, as an error that names the operation. */
function errorOf(error: unknown, operation: Operation, site: Site, pieces = 1): CollectiveError {
  const { verb, seq } = operation;
  if (!CollectiveError.is(error)) {
    const { code, message } = error as Error & { readonly code?: unknown };
    const failure =
      code === 'CUDA'
        ? deviceFailed(verb, seq, site.rank, message)
        : unexpected(site.rank, String(error), verb, seq);
    return new CollectiveError(failure, site, { cause: error });
  }
  if (pieces > 1 && error.code === 'ERR_COLL_MISMATCH') {
    const failure = mismatchOfPieces({ ...plain(error), verb, seq }, signatureOf(operation), pieces);
    return new CollectiveError(failure, site, { cause: error });
  }
  if (error.verb === verb && error.seq === seq) return error;
  return new CollectiveError({ ...plain(error), verb, seq }, site, { cause: error });
}

function plain({ code, peers, what, next }: CollectiveError) {
  return { code, peers, what, ...(next !== undefined && { next }) };
}
