// Source text of programs that report like a training. They run as ranks, so they import the built library.

const library = new URL('../../dist/index.js', import.meta.url).href;

export interface Training {
  readonly steps: number;
  /** Expression of the loss, from `step` and `rank`. */
  readonly loss?: string;
  /** Statements after the last step. */
  readonly after?: string;
}

/** Returns a script with a step about every 30 ms, timed as DDP does, and a validation after every tenth. */
export const training = ({ steps, loss = '2.3 * Math.exp(-step / 60)', after = '' }: Training) => `
  import { reportMetrics } from '${library}';
  const rank = Number(process.env.RANK);
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  for (let step = 0; step < ${steps}; step++) {
    await pause(12);
    const beganMs = performance.now();
    await pause(12);
    const backwardMs = performance.now() - beganMs;
    await pause(6 + 4 * rank);
    const exposedMs = performance.now() - beganMs - backwardMs;
    const buckets = [{ launchedMs: 5, communicationMs: 4 }, { launchedMs: backwardMs, communicationMs: exposedMs }];
    const ddp = { beganMs, backwardMs, exposedMs, buckets };
    const progress = { step, steps: ${steps}, epoch: Math.floor(step / 10), epochs: Math.ceil(${steps} / 10) };
    reportMetrics({ ...progress, loss: ${loss}, samples: 32, accuracy: 1 - 1 / (step + 1), ddp });
    if (step % 10 === 9 && rank === 0) reportMetrics({ step, valLoss: 2.5 * Math.exp(-step / 60) });
    if (step % 10 === 0) console.log('step ' + step + ' <img src=x onerror="document.title=1"> <b>bold</b>');
  }
  ${after}`;
