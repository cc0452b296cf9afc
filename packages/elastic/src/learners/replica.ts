// The replica of the state on a learner. Several members send it: a copy of the state before one step, in chunks, and
// the gradients of that step and all later ones. The learner applies these steps with its own optimizer, so that it has
// the members' state after each of them. Checksums verify this after some steps and, for every array, when the learner
// becomes a member.
import { setImmediate } from 'node:timers/promises';
import {
  gradParamsSymbol,
  type PackedState,
  packState,
  type UnpackedState,
  unpackState,
} from '@ringwise/ddp';
import { statesDiffer, stateUnfit } from '../errors.ts';
import type { Trained } from '../job/trained.ts';
import { type Chunk, chunksBySource, chunksOf } from '../transfer/chunks.ts';
import { firstDifference } from '../transfer/headers.ts';
import { sharesOf, sumOf } from '../transfer/shares.ts';
import type { FromSource, StepFrame } from './channel.ts';
import { paramsBySource, setGradients } from './gradients.ts';
import { setOptimizerValues } from './optimizer-values.ts';
import type { Pool } from './pool.ts';

/** Bytes of a chunk: small enough that a member copies and hashes one in a few milliseconds. */
export const chunkBytes = 4 << 20;

interface Part {
  readonly frame: StepFrame;
  readonly bytes: Uint8Array;
}

/** The copy while it is received. */
interface Copy {
  readonly header: string;
  readonly incoming: UnpackedState;
  readonly memory: readonly Uint8Array[];
  /** The chunks of each member. */
  readonly shares: readonly (readonly Chunk[])[];
  missingChunks: number;
}

export class Replica {
  readonly #trained: Trained;
  /** Number of members that send the state. */
  readonly #count: number;
  /** The step before which the members copy the state. */
  readonly at: number;
  #copy: Copy | null = null;
  #isLoaded = false;
  #isStopped = false;
  /** Resolves one turn of the event loop after the present step has been applied; null if none is being applied. */
  #turn: Promise<void> | null = null;
  readonly #steps = new Map<number, (Part | undefined)[]>();
  #step: number;
  #isCompared = false;
  /** Bytes received. */
  bytes = 0;
  /** Bytes of arrays that differed from the members' when they were last compared; 0 before. */
  differingBytes = 0;

  readonly #pool: Pool;

  /** `pool` receives the memory of messages that have been processed. */
  constructor(trained: Trained, count: number, at: number, pool: Pool) {
    this.#trained = trained;
    this.#pool = pool;
    this.#count = count;
    this.at = at;
    this.#step = at;
  }

  /** Number of steps that this state includes. */
  get step(): number {
    return this.#step;
  }

  /** Whether the state has been compared with the members' after a step. */
  get isCompared(): boolean {
    return this.#isCompared;
  }

  /** Makes take() return and applies no more steps. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Handles a message of member `source`, and applies the steps that it completes, with a turn of the event loop
   * between two steps. Rejects if the copies of the members differ, or do not fit this process.
   */
  async take(source: number, frame: FromSource, bytes: Uint8Array): Promise<void> {
    if (this.#isStopped) return;
    this.bytes += bytes.length;
    if (frame.kind === 'snapshot') this.#begin(source, frame.header);
    else if (frame.kind === 'chunk') this.#fill(source, frame.index, bytes);
    else if (frame.kind === 'step') {
      const parts = this.#steps.get(frame.step) ?? new Array<undefined>(this.#count).fill(undefined);
      parts[source] = { frame, bytes };
      this.#steps.set(frame.step, parts);
    }
    this.#load();
    await this.#follow();
  }

  #begin(source: number, header: string): void {
    if (this.#copy !== null) {
      const { header: first } = this.#copy;
      if (first !== header)
        throw statesDiffer(firstDifference(JSON.parse(first), JSON.parse(header)), source);
      return;
    }
    const incoming = unpackState(header, this.#trained.parts.revive);
    const memory = incoming.arrays.map(({ bytes }) => new Uint8Array(bytes));
    const shares = chunksBySource(chunksOf(incoming.arrays, chunkBytes), this.#count);
    const missingChunks = shares.reduce((sum, { length }) => sum + length, 0);
    this.#copy = { header, incoming, memory, shares, missingChunks };
  }

  #fill(source: number, index: number, bytes: Uint8Array): void {
    const copy = this.#copy!;
    let from = 0;
    for (const { array, from: start, to } of copy.shares[source]![index]!.pieces) {
      copy.memory[array]!.set(bytes.subarray(from, from + to - start), start);
      from += to - start;
    }
    copy.missingChunks--;
    this.#pool.give(bytes);
  }

  #load(): void {
    const copy = this.#copy;
    if (this.#isLoaded || copy === null || copy.missingChunks > 0) return;
    try {
      for (const [index, { fill }] of copy.incoming.arrays.entries()) fill(copy.memory[index]!);
      this.#trained.load(copy.incoming.value());
    } catch (error) {
      throw stateUnfit(error);
    }
    this.#isLoaded = true;
    // The memory of the copy is no longer needed; only the header of a late member is still compared.
    this.#copy = { ...copy, memory: [] };
  }

  /** Applies the steps whose gradients have all arrived, one at a time. */
  async #follow(): Promise<void> {
    for (let parts = this.#complete(); parts !== null; parts = this.#complete()) {
      this.#turn ??= this.#takeNext(parts).finally(() => {
        this.#turn = null;
      });
      await this.#turn;
    }
  }

  /** Returns the gradients of the next step, or null while some of them have not arrived. */
  #complete(): readonly Part[] | null {
    if (!this.#isLoaded || this.#isStopped) return null;
    const parts = this.#steps.get(this.#step);
    return parts === undefined || parts.includes(undefined) ? null : (parts as Part[]);
  }

  async #takeNext(parts: readonly Part[]): Promise<void> {
    this.#steps.delete(this.#step);
    this.#take(parts);
    this.#step++;
    await setImmediate();
  }

  #take(parts: readonly Part[]): void {
    const { source } = this.#trained.parts;
    const optimizer = this.#trained.wholeOptimizer!; // the training canBeFollowed
    this.#compare(parts);
    const { isTaken, optimizer: values } = parts[0]!.frame;
    if (values !== null) setOptimizerValues(optimizer, values);
    if (isTaken) {
      const shares = paramsBySource([...source[gradParamsSymbol]()], this.#count);
      for (const [index, { frame, bytes }] of parts.entries())
        setGradients(shares[index]!, { hasGrad: frame.hasGrad, bytes });
      optimizer.step();
    }
    for (const { bytes } of parts) this.#pool.give(bytes);
  }

  /**
   * Compares the state before a step with the members' checksums, if they have sent them. Arrays differ if something
   * other than the optimizer changes them; members send such arrays again when the learner becomes a member.
   */
  #compare(parts: readonly Part[]): void {
    const sums = parts.map(({ frame }) => frame.sums);
    if (sums.includes(null)) return;
    const state = packState(this.#trained.save());
    const sizes = state.arrays.map(({ bytes }) => bytes);
    const shares = sharesOf(sizes, this.#count);
    const differ = shares.flatMap((indices, source) =>
      indices.filter((index, i) => sumOf(state.arrays[index]!.read() as Uint8Array) !== sums[source]![i]),
    );
    this.#isCompared = true;
    this.differingBytes = differ.reduce((sum, index) => sum + sizes[index]!, 0);
  }

  /** Returns the state itself, not a copy; null if the copy from the members has not arrived. */
  held(): PackedState | null {
    return this.#isLoaded ? packState(this.#trained.save()) : null;
  }
}
