// The memory of a device that storages hold: what the garbage collector is told about it, and what to do if the device
// is full.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { deviceControl } from '../backends/index.ts';
import type { Memory } from '../backends/operands.ts';
import { cudaIndex, type Device } from '../device/device.ts';
import type { HeldMemory } from '../errors.ts';
import type { DType } from './dtype.ts';
import { placeOf } from './leaks.ts';
import { Survivor, taken } from './survivors.ts';

/** All that is needed to free memory. It does not refer to the memory, which may be collected meanwhile. */
export interface Claim {
  readonly dtype: DType;
  readonly count: number;
  readonly bytes: number;
  readonly device: Device;
  readonly handle: number;
}

/** The memory is a key of a weak map as long as anything can still use it, operands of a call included. */
class Held extends Survivor {
  readonly claim: Claim;

  constructor(claim: Claim) {
    super();
    this.claim = claim;
  }
}

/** A full device counts as so many bytes of the JavaScript heap. V8 begins a collection every 64 MiB. */
const fullDevice = 2 ** 32;
/** Growth, as counted, of which the collector is told. */
const stepBytes = 2 ** 25;

/** The number of entries that `largest` returns. */
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

  /** Forgets memory. Returns whether it was known: memory that was lost is found in two ways. */
  delete(claim: Claim): boolean {
    return this.#held.delete(claim);
  }

  /** Collects garbage, and returns the claims on memory that nothing uses any more. Takes tens of milliseconds. */
  lost(): Claim[] {
    collectGarbage ??= collector();
    collectGarbage();
    return taken(this.#living, this.#held.values()).map(({ claim }) => claim);
  }

  /**
   * Tells the collector how much is in use. Only more than ever before is told, and what collections have freed: a
   * program that releases its memory itself needs no collections.
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

  /** Returns the memory in use by dtype and size, most bytes first. */
  largest(): HeldMemory[] {
    const groups = new Map<string, { -readonly [Name in keyof HeldMemory]: HeldMemory[Name] }>();
    for (const claim of this.#held.keys()) {
      const { dtype, count, bytes } = claim;
      const key = `${dtype} ${count}`;
      const group = groups.get(key) ?? { dtype, count, tensors: 0, bytes: 0, place: null };
      group.tensors++;
      group.bytes += bytes;
      group.place ??= placeOf(claim);
      groups.set(key, group);
    }
    return [...groups.values()].sort((a, b) => b.bytes - a.bytes).slice(0, mostGroups);
  }
}

function collector(): () => void {
  if (globalThis.gc !== undefined) return globalThis.gc as () => void;
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
