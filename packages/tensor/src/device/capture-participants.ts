// The callbacks of other packages that take part in a captured step. They are called before and after each
// run, and when the step is dropped.
import type { StepCapture } from '../core/protocol.ts';

export class CaptureParticipants implements StepCapture {
  readonly stream: bigint;
  readonly drop: () => void;
  readonly #ends: ((isGivenUp: boolean) => void)[] = [];
  readonly #befores: ((stream: bigint) => () => void)[] = [];

  constructor(stream: bigint, drop: () => void) {
    this.stream = stream;
    this.drop = drop;
  }

  readonly onEnd = (ended: (isGivenUp: boolean) => void): void => void this.#ends.push(ended);
  readonly onRun = (before: (stream: bigint) => () => void): void => void this.#befores.push(before);

  end(isGivenUp: boolean): void {
    for (const ended of this.#ends) ended(isGivenUp);
  }

  /** Calls the participants before a run. Returns a function to call after the run has been started. */
  begin(stream: bigint): () => void {
    const afters = this.#befores.map((before) => before(stream));
    return () => {
      for (const after of afters) after();
    };
  }
}
