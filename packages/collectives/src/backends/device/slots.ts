// Slots of host memory that one device copies to and from. Used by one call at a time.
import { loadNative, type NativeDeviceLane } from '../native.ts';
import type { Move } from './pieces.ts';

export class Slots {
  readonly count: number;
  /** Bytes of each slot. */
  readonly bytes: number;
  readonly #memory: Uint8Array;
  readonly #native: NativeDeviceLane;
  #landed: ((pieces: number) => void) | null = null;
  /** The next id for copies down. Ids below `#first` belong to earlier calls, whose callbacks are ignored. */
  #id = 0;
  #first = 0;

  constructor(device: number, memory: Uint8Array, count: number) {
    const { DeviceLane } = loadNative();
    this.count = count;
    this.bytes = memory.length / count;
    this.#memory = memory;
    this.#native = new DeviceLane(device, memory, count, (id) => {
      if (id >= this.#first) this.#landed?.(id - this.#first + 1);
    });
  }

  /**
   * Begins a call. `landed` is called with the number of the call's pieces whose copies down have finished.
   */
  take(landed: (pieces: number) => void): void {
    this.#first = this.#id;
    this.#landed = landed;
  }

  /** Ends the call. */
  leave(): void {
    this.#landed = null;
    this.#native.rest();
  }

  memoryOf(slot: number): Uint8Array {
    return this.#memory.subarray(slot * this.bytes, (slot + 1) * this.bytes);
  }

  /** Orders the copies from now on after all work that the CUstream has been given. */
  follow(stream: bigint): void {
    this.#native.follow(stream);
  }

  /** Orders the later work of the CUstream after all copies up. */
  lead(stream: bigint): void {
    this.#native.lead(stream);
  }

  /** Starts a piece's copies from the device to the slot. They run after earlier copies from the same slot. */
  down(slot: number, moves: readonly Move[]): void {
    this.#native.begin(slot);
    for (const { offset, address, bytes, isDown } of moves)
      if (isDown) this.#native.down(slot, offset, address, bytes);
    this.#native.land(slot, this.#id++);
  }

  /** Blocks until the slot's copies down have finished. Throws if the device has failed. */
  awaitLanding(slot: number): void {
    this.#native.awaitLanding(slot);
  }

  /** Starts a piece's copies from the slot to the device. */
  up(slot: number, moves: readonly Move[]): void {
    for (const { offset, address, bytes, isUp } of moves)
      if (isUp) this.#native.up(slot, offset, address, bytes);
    this.#native.end(slot);
  }

  close(): void {
    this.#native.close();
  }
}
