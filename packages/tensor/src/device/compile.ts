// Compiles a whole training step into one CUDA graph: forward, backward and optimiser start together, with almost no
// work on the host. The first calls run normally, to warm up; the next one is captured, and it and every later call run
// the graph. On the CPU, every call runs the function.
//
// The graph contains kernels with their memory. JavaScript does not run again, so a step cannot contain work that
// depends on values or runs on the host. Three things still change from run to run: inputs, which are copied into fixed
// tensors; optimiser steps, whose counters and numeric options, such as the learning rate, are read in each run; and
// random numbers, which continue the stream of their generator. Other packages can take part: captured collectives run
// with the step (core/protocol.ts).
import { deviceControl } from '../backends/index.ts';
import type { Stream } from '../backends/operands.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aFunction, anything, atLeastOne, checkValue } from '../checks/value-checks.ts';
import { collectTensors, keep, scope } from '../core/context.ts';
import { makeWithRoom, useDirectly } from '../core/memory/storage.ts';
import { copyInto } from '../core/memory/transfer.ts';
import { sameShape } from '../core/shape.ts';
import { empty, Tensor } from '../core/tensor.ts';
import { streamOf } from '../core/tensor-core.ts';
import { asyncStep, otherInput, otherInputCount } from '../errors.ts';
import type { RandomSource } from '../random/source.ts';
import { capturing, whileCapturing } from './capture.ts';
import { CaptureParticipants } from './capture-participants.ts';
import { cudaIndex, type Device, type DeviceName, deviceOf } from './device.ts';

/** Options of compile(). */
export interface CompileOptions {
  /** Default: the device of the first input that is on a CUDA device in the first call, else the CPU. */
  readonly device?: DeviceName;
  /** Number of calls that run normally before one is captured; at least 1. Default 2. */
  readonly warmUps?: number;
}

const compileOptions = optionChecks<CompileOptions>({ device: anything, warmUps: atLeastOne });

/** A compiled step. A call returns as soon as the work has been started. */
export interface CompiledStep<Inputs extends readonly Tensor[], Result> {
  (...inputs: Inputs): Result;
  /**
   * On CUDA, the fixed tensors that the step reads, made in the first call. A caller that passes these
   * tensors saves the copy.
   */
  readonly inputs: readonly Tensor[];
  /** Whether calls run a captured graph. */
  readonly isCaptured: boolean;
  /**
   * Frees the graph and its memory. Neither the step nor its results can be used afterwards. Does nothing on the CPU
   * and before the first call.
   */
  readonly dispose: () => void;
  readonly [Symbol.dispose]: () => void;
}

/** The location of a generator's state in a step. */
interface Draw {
  /** Offset of the generator when the capture first drew from it. */
  readonly begin: number;
  /** Index of its seed and offset among the numbers of the step that change from run to run. */
  readonly live: number;
}

class Step<Inputs extends readonly Tensor[], Result> {
  readonly #fn: (...inputs: Inputs) => Result;
  readonly #warmUps: number;
  #device: Device | null;
  #handle: object | null = null;
  #calls = 0;
  #result: { readonly value: Result } | null = null;
  /** Functions that each run calls before it starts, to write the numbers that change. */
  readonly #preparations: (() => void)[] = [];
  /** Number of blocks that each run consumes from a generator. */
  readonly #advances = new Map<RandomSource, number>();
  #participants: CaptureParticipants | null = null;
  #isDisposed = false;
  inputs: readonly Tensor[] = [];

  constructor(fn: (...inputs: Inputs) => Result, { device, warmUps = 2 }: CompileOptions) {
    this.#fn = fn;
    this.#warmUps = warmUps;
    this.#device = device === undefined ? null : deviceOf(device);
  }

  get isCaptured(): boolean {
    return this.#result !== null;
  }

  run(given: Inputs): Result {
    this.#device ??= given.find((input) => input.device !== 'cpu')?.device ?? 'cpu';
    const device = this.#device;
    // A step that is called during the capture of another becomes part of it.
    if (device === 'cpu' || capturing() !== null) return scope(() => this.#fn(...given));
    this.#load(given, device);
    if (this.#result === null) {
      if (this.#calls++ < this.#warmUps) return this.#warmUp();
      this.#result = { value: this.#capture(device) };
    }
    this.#start(device);
    return this.#result.value;
  }

  dispose(): void {
    if (this.#handle === null || this.#isDisposed) return;
    this.#isDisposed = true;
    deviceControl().disposeStep(this.#handle);
    for (const input of this.inputs) input.dispose();
  }

  /** Copies the arguments to the tensors that the step reads. */
  #load(given: Inputs, device: Device): void {
    if (this.#handle === null) {
      useDirectly(device);
      this.#handle = makeWithRoom(device, () => deviceControl().makeStep(cudaIndex(device)));
      this.inputs = given.map(({ dtype, shape }) => keep(empty(dtype, shape, device)));
    }
    if (given.length !== this.inputs.length) throw otherInputCount(given.length, this.inputs.length);
    for (const [i, input] of this.inputs.entries()) {
      const from = given[i]!;
      if (from === input) continue;
      if (from.dtype !== input.dtype || !sameShape(from.shape, input.shape))
        throw otherInput(i, show(from), show(input));
      const isPlain = from.device === 'cpu' && from.isContiguous;
      if (isPlain) deviceControl().startWrite(input.memory, 0, from.dataSync());
      else copyInto(input.strided, input.shape, from.strided);
    }
  }

  #run(): Result {
    const result = scope(() => this.#fn(...(this.inputs as unknown as Inputs)));
    if (result instanceof Promise) throw asyncStep();
    return result;
  }

  #warmUp(): Result {
    const control = deviceControl();
    control.enterStep(this.#handle!);
    try {
      return this.#run();
    } finally {
      control.leaveStep(this.#handle!);
    }
  }

  /** Captures the graph. Nothing runs, and afterwards generators are where they were. */
  #capture(device: Device): Result {
    const control = deviceControl();
    const handle = this.#handle!;
    const draws = new Map<RandomSource, Draw>();
    const participants = new CaptureParticipants(control.stepStream(handle), () => {
      if (!this.#isDisposed) control.dropStep(handle);
    });
    const capture = {
      device,
      shared: participants,
      draw: (generator: RandomSource): Stream => this.#draw(draws, generator),
      optimizes: (numbers: () => Parameters<typeof control.putOptimizer>[1]): void =>
        void this.#preparations.push(() => control.putOptimizer(handle, numbers())),
    };
    this.#preparations.length = 0;
    control.beginStep(handle);
    let result: Result;
    try {
      result = whileCapturing(capture, () => {
        const made = this.#run();
        participants.end(false);
        return made;
      });
    } catch (error) {
      this.#giveUp(draws, participants);
      throw error;
    }
    // A failure ends the capture, too.
    const taken = rewind(draws);
    control.endStep(handle);
    for (const [generator, blocks] of taken) this.#advances.set(generator, blocks);
    this.#participants = participants;
    const tensors = new Set<unknown>();
    collectTensors(result, tensors);
    for (const tensor of tensors) if (tensor instanceof Tensor) keep(tensor);
    return result;
  }

  /** Ends a capture after an error. The caller throws that error, not errors of participants. */
  #giveUp(draws: ReadonlyMap<RandomSource, Draw>, participants: CaptureParticipants): void {
    try {
      participants.end(true);
    } catch {
      // Its step has failed already.
    } finally {
      deviceControl().abortStep(this.#handle!);
      rewind(draws);
    }
  }

  /** Returns the stream for the generator's next numbers, counted from its position at the begin of each run. */
  #draw(draws: Map<RandomSource, Draw>, generator: RandomSource): Stream {
    const { seed, offset } = generator.state();
    const control = deviceControl();
    const handle = this.#handle!;
    let draw = draws.get(generator);
    if (draw === undefined) {
      draw = { begin: offset, live: control.putNumbers(handle, Float64Array.of(seed, offset)) };
      draws.set(generator, draw);
      this.#preparations.push(() => {
        const now = generator.state();
        control.putNumbers(handle, Float64Array.of(now.seed, now.offset));
        generator.setState({ seed: now.seed, offset: now.offset + this.#advances.get(generator)! });
      });
    }
    return { seed, offset: offset - draw.begin, live: draw.live };
  }

  /** Starts a run of the captured graph with the numbers of now. */
  #start(device: Device): void {
    const control = deviceControl();
    // Participants may refuse a run by throwing. They are called first, so that such a run counts no step and draws no
    // numbers.
    const started = this.#participants!.begin(streamOf(device));
    control.rewindStep(this.#handle!);
    for (const prepare of this.#preparations) prepare();
    control.launchStep(this.#handle!);
    started();
  }
}

const show = ({ dtype, shape }: Tensor): string => `${dtype} [${shape.join(', ')}]`;

/**
 * Resets generators to their positions before the capture, because a capture must not consume numbers. Returns the
 * number of blocks that each run consumes from each generator.
 */
function rewind(draws: ReadonlyMap<RandomSource, Draw>): Map<RandomSource, number> {
  const taken = new Map<RandomSource, number>();
  for (const [generator, { begin }] of draws) {
    const { seed, offset } = generator.state();
    taken.set(generator, offset - begin);
    generator.setState({ seed, offset: begin });
  }
  return taken;
}

/**
 * Compiles a step into one CUDA graph. A step is a function of tensors that returns tensors (also in arrays
 * and objects) or nothing. Every call returns the same tensors, and the next call overwrites them. Inputs
 * must have the shapes and dtypes of the first call. Throws ERR_TENSOR_CAPTURE for work that cannot be
 * captured, such as item(). On the CPU every call runs the function and returns new tensors.
 *
 * @example
 * ```ts
 * const step = compile((images: Tensor, labels: Tensor) => {
 *   const loss = crossEntropy(net.forward(images), labels);
 *   optimizer.zeroGrad();
 *   loss.backward();
 *   optimizer.step();
 * });
 * step(x, y);
 * ```
 */
export function compile<Inputs extends readonly Tensor[], Result>(
  fn: (...inputs: Inputs) => Result,
  options: CompileOptions = {},
): CompiledStep<Inputs, Result> {
  checkValue('compile: the step', fn, aFunction);
  checkOptions('compile', options, compileOptions);
  const step = new Step(fn, options);
  const run = (...inputs: Inputs): Result => step.run(inputs);
  return Object.defineProperties(run, {
    inputs: { get: () => step.inputs },
    isCaptured: { get: () => step.isCaptured },
    dispose: { value: () => step.dispose() },
    [Symbol.dispose]: { value: () => step.dispose() },
  }) as CompiledStep<Inputs, Result>;
}
