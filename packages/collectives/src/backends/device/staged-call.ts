// One staged operation as a pipeline: piece k + 1 is copied down to a slot of host memory, while the ranks
// exchange piece k and piece k - 1 is copied up to the device.
import type { Backend, Operation, Running, Settle } from '../../backend.ts';
import type { CollectiveError } from '../../errors.ts';
import { countPieces, deviceViews, type Piece, packingOfPieces, pieceOf } from './pieces.ts';
import type { Slots } from './slots.ts';

/** The backend for host memory that exchanges the pieces. */
export interface Host {
  readonly rank: number;
  readonly size: number;
  readonly start: Backend['start'];
  /**
   * Converts an exception of the backend or the device into a CollectiveError for the operation, which has `pieces`
   * pieces.
   */
  readonly errorOf: (error: unknown, operation: Operation, pieces?: number) => CollectiveError;
}

export class StagedCall {
  readonly pieces: number;
  hasEnded = false;
  readonly #operation: Operation;
  readonly #host: Host;
  readonly #settle: Settle;
  readonly #streams: readonly bigint[];
  #slots: Slots | null = null;
  #seq = 0;
  /** Number of pieces whose copy to the host has started. */
  #down = 0;
  /** Number of pieces whose copy to the host has ended. */
  #landed = 0;
  /** Number of pieces that were passed to the host backend. */
  #started = 0;
  /** Number of pieces that the host backend has ended. */
  #ended = 0;
  readonly #inSlots: Piece[] = [];
  readonly #running = new Map<number, Running | null>();
  #error: CollectiveError | undefined;
  #source: number | undefined;

  readonly #mayStart: () => boolean;

  /**
   * `slotBytes` is the size of the slots that begin() will get. `mayStart` tells whether a piece that has been
   * copied down may go to the host backend. If it returns false, resume() asks again.
   */
  constructor(
    operation: Operation,
    host: Host,
    slotBytes: number,
    settle: Settle,
    mayStart: () => boolean = () => true,
  ) {
    this.#mayStart = mayStart;
    this.pieces = countPieces(operation, host.size, slotBytes);
    this.#operation = operation;
    this.#host = host;
    this.#settle = settle;
    this.#streams = [...new Set(deviceViews(operation).map(({ handle }) => handle!.stream ?? 0n))];
  }

  /** Starts the operation. Its pieces take sequence numbers from `seq` on. */
  begin(slots: Slots, seq: number): void {
    this.#seq = seq;
    this.#slots = slots;
    this.#attempt(() => {
      slots.take((landed) => this.#land(landed));
      for (const stream of this.#streams) slots.follow(stream);
      this.#advance();
    });
  }

  /** Continues after `mayStart` has refused a piece. */
  resume(): void {
    this.#attempt(() => this.#advance());
  }

  /** Waits for the oldest running piece, else for the next copy to the host. Returns at once if there is neither. */
  step(): void {
    const running = this.#running.entries().next().value;
    if (running !== undefined) running[1]?.wait();
    else if (this.#landed < this.#down) this.#land(this.#landed + 1);
  }

  /**
   * Waits until `landed` pieces have been copied to the host, and passes them on. The device's callback and step() both
   * call it; the later call for the same piece does nothing.
   */
  #land(landed: number): void {
    if (landed <= this.#landed) return;
    this.#landed = landed;
    this.#attempt(() => {
      // Throws if the device has failed. The slot's data is invalid then and must not be sent to other ranks.
      this.#slots!.awaitLanding((landed - 1) % this.#slots!.count);
      this.#advance();
    });
  }

  #attempt(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#fail(error);
    }
  }

  #advance(): void {
    const slots = this.#slots!;
    while (this.#error === undefined && this.#down < this.pieces && this.#down - this.#ended < slots.count) {
      const slot = this.#down % slots.count;
      const { rank, size } = this.#host;
      const piece = pieceOf(this.#operation, rank, size, slots.memoryOf(slot), this.#down);
      this.#inSlots[slot] = piece;
      slots.down(slot, piece.moves);
      this.#down++;
    }
    while (this.#error === undefined && this.#started < this.#landed && this.#mayStart())
      this.#start(this.#started++);
    this.#finishIfOver();
  }

  #start(index: number): void {
    const { operation } = this.#inSlots[index % this.#slots!.count]!;
    this.#running.set(index, null);
    const running = this.#host.start(this.#numbered(operation, index), (error, source) =>
      this.#end(index, error, source),
    );
    if (!this.#running.has(index)) return;
    this.#running.set(index, running);
    running?.requestProgress?.();
  }

  #numbered(piece: Operation, index: number): Operation {
    if (piece.verb === 'send' || piece.verb === 'recv') return piece;
    const packing = this.pieces === 1 ? piece.packing : packingOfPieces(this.#operation, this.#host.size);
    return { ...piece, seq: this.#seq + index, packing };
  }

  #end(index: number, error: CollectiveError | undefined, source: number | undefined): void {
    this.#running.delete(index);
    this.#ended++;
    this.#source = source;
    this.#attempt(() => {
      if (error !== undefined) throw error;
      const slot = index % this.#slots!.count;
      this.#slots!.up(slot, this.#inSlots[slot]!.moves);
      this.#advance();
    });
  }

  #fail(error: unknown): void {
    this.#error ??= this.#host.errorOf(error, this.#operation, this.pieces);
    this.#finishIfOver();
  }

  #finishIfOver(): void {
    if (this.hasEnded || this.#running.size > 0) return;
    const isOver = this.#error !== undefined ? this.#landed === this.#down : this.#ended === this.pieces;
    if (!isOver) return;
    this.hasEnded = true;
    this.#slots!.leave(); // first, because lead() throws on a failed device
    try {
      for (const stream of this.#streams) this.#slots!.lead(stream);
    } catch (error) {
      this.#error ??= this.#host.errorOf(error, this.#operation);
    }
    if (this.#error === undefined) this.#settle(undefined, this.#source);
    else this.#settle(this.#error);
  }
}
