// Times training steps of one model in one process, and prints a line of JSON: the median step and its parts in
// microseconds, and rates. Each benchmark uses data that can be learned, so the loss must fall; if it does not, the
// line says ok: false and the exit code is 1.
import { kernelsName, memory, scope, type Tensor } from '@ringwise/tensor';
import type { Optimizer } from '@ringwise/tensor/optim';
import { median } from './median.ts';

export interface Training {
  readonly optimizer: Optimizer;
  /** Makes the inputs of step `i` and runs the forward pass. */
  readonly loss: (i: number) => Tensor;
  readonly steps: number;
  /**
   * `bench` and `about` are printed in the line as they are. `perStep` maps the name of a rate, such as
   * samplesPerSecond, to how many of its units one step trains on.
   */
  readonly bench: string;
  readonly about: Readonly<Record<string, number>>;
  readonly perStep: Readonly<Record<string, number>>;
}

const nowUs = (): number => Number(process.hrtime.bigint()) / 1000;

export function measureTraining({ optimizer, loss, steps, bench, about, perStep }: Training): void {
  const forwardUs: number[] = [];
  const backwardUs: number[] = [];
  const optimizerUs: number[] = [];
  const stepUs: number[] = [];
  const step = (i: number): number => {
    const start = nowUs();
    return scope(() => {
      const value = loss(i);
      const forward = nowUs();
      optimizer.zeroGrad();
      value.backward();
      const backward = nowUs();
      optimizer.step();
      const end = nowUs();
      forwardUs.push(forward - start);
      backwardUs.push(backward - forward);
      optimizerUs.push(end - backward);
      stepUs.push(end - start);
      return value.item();
    });
  };

  const firstLoss = step(0);
  for (let i = 1; i < steps / 10; i++) step(i);
  for (const list of [forwardUs, backwardUs, optimizerUs, stepUs]) list.length = 0;
  const begin = nowUs();
  let lastLoss = firstLoss;
  for (let i = 0; i < steps; i++) lastLoss = step(i);
  const elapsedUs = nowUs() - begin;

  const ok = lastLoss < firstLoss;
  const rates = Object.entries(perStep).map(([name, count]) => [name, (steps * count * 1e6) / elapsedUs]);
  const line = {
    bench,
    kernels: kernelsName(),
    ...about,
    steps,
    stepUs: median(stepUs),
    forwardUs: median(forwardUs),
    backwardUs: median(backwardUs),
    optimizerUs: median(optimizerUs),
    ...Object.fromEntries(rates),
    peakBytes: memory().peakBytes,
    ...{ firstLoss, lastLoss, ok },
  };
  const short = (_: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(4)) : value;
  console.log(JSON.stringify(line, short));
  process.exitCode = ok ? 0 : 1;
}
