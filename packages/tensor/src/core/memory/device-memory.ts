// The memory of a device that storages hold. Reports its use to the garbage collector and, when the device is full,
// finds the memory that the program no longer refers to, and the largest holders.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { deviceControl } from '../../backends/index.ts';
import type { Memory } from '../../backends/operands.ts';
import { cudaIndex, type Device } from '../../device/device.ts';
import type { HeldMemory } from '../../errors.ts';
import type { DType } from '../dtype.ts';
import { locationOf } from './leaks.ts';
import { Survivor, taken } from './survivors.ts';

/** All that is needed to free memory. It does not refer to the memory, which may be collected meanwhile. */
export interface Claim {
  readonly dtype: DType;
  readonly count: number;
  readonly bytes: number;
  readonly device: Device;
  readonly handle: number;
}

/**
 * The claim on a piece of memory, as a value of a weak map. Its key is the Memory object, which lives as long as
 * anything can still use the memory, the operands of a call included.
 */
class Held extends Survivor {
  readonly claim: Claim;

  constructor(claim: Claim) {
    super();
    this.claim = claim;
  }
}

/** Maximum number of bytes reported to V8, for a full device. V8 begins a collection for each 64 MiB of growth. */
const fullDevice = 2 ** 32;
/** Change of the use, in bytes reported to V8, after which the use is reported again. */
const stepBytes = 2 ** 25;

/** Maximum number of entries that `largest` returns. */
const mostGroups = 3;

let collectGarbage: (() => void) | undefined;

export class DeviceMemory {
  /** Bytes in use at which `tell` must be called. */
  tellAt = 0;
  readonly #device: Device;
  readonly #held = new Map<Claim, Held>();
  readonly #living = new WeakMap<Memory, Held>();
  /** Bytes in use of which the collector knows. */
  #told = 0;
  /** Bytes reported to V8 for each byte in use, and the change of the use that is reported; 0 until the first call. */
  #weight = 0;
  #step = 0;

  constructor(device: Device) {
    this.#device = device;
  }

  add(memory: Memory, claim: Claim): void {
    const held = new Held(claim);
    this.#held.set(claim, held);
    this.#living.set(memory, held);
  }

  /** Forgets memory. Returns whether it was known: both `lost` and a FinalizationRegistry may find the same memory. */
  delete(claim: Claim): boolean {
    return this.#held.delete(claim);
  }

  /** Collects garbage, and returns the claims on memory that is no longer reachable. Takes tens of milliseconds. */
  lost(): Claim[] {
    collectGarbage ??= collector();
    collectGarbage();
    return taken(this.#living, this.#held.values()).map(({ claim }) => claim);
  }

  /**
   * Reports the use to the garbage collector. Called for growth beyond the last report, and after a collection has
   * freed memory, but not when the program releases memory: a program that does so itself needs no collections.
   */
  tell(liveBytes: number): void {
    const control = deviceControl();
    if (this.#weight === 0) {
      this.#weight = Math.min(1, fullDevice / control.totalBytes(cudaIndex(this.#device)));
      this.#step = stepBytes / this.#weight;
    }
    if (Math.abs(liveBytes - this.#told) >= this.#step) {
      control.countForCollector(Math.round((liveBytes - this.#told) * this.#weight));
      this.#told = liveBytes;
    }
    this.tellAt = this.#told + this.#step;
  }

  /** Returns the memory held by dtype and number of elements, most bytes first; at most `mostGroups` entries. */
  largest(): HeldMemory[] {
    const groups = new Map<string, { -readonly [Name in keyof HeldMemory]: HeldMemory[Name] }>();
    for (const claim of this.#held.keys()) {
      const { dtype, count, bytes } = claim;
      const key = `${dtype} ${count}`;
      const group = groups.get(key) ?? { dtype, count, tensors: 0, bytes: 0, location: null };
      group.tensors++;
      group.bytes += bytes;
      group.location ??= locationOf(claim);
      groups.set(key, group);
    }
    return [...groups.values()].sort((a, b) => b.bytes - a.bytes).slice(0, mostGroups);
  }
}

/** Returns a function that runs a full garbage collection, also without --expose-gc. */
function collector(): () => void {
  if (globalThis.gc !== undefined) return globalThis.gc as () => void;
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
