// The callbacks of other packages that take part in a captured step. They are called at the end of the capture,
// and before and after the start of each run. With `drop`, such a package destroys the captured step.
import type { StepCapture } from '../core/protocol.ts';

export class CaptureParticipants implements StepCapture {
  readonly stream: bigint;
  readonly drop: () => void;
  readonly #ends: ((isAbandoned: boolean) => void)[] = [];
  readonly #befores: ((stream: bigint) => () => void)[] = [];

  constructor(stream: bigint, drop: () => void) {
    this.stream = stream;
    this.drop = drop;
  }

  readonly onEnd = (ended: (isAbandoned: boolean) => void): void => void this.#ends.push(ended);
  readonly onRun = (before: (stream: bigint) => () => void): void => void this.#befores.push(before);

  /**
   * Tells the participants that the capture ends, or with true that it is abandoned. Each is called once: if one
   * throws, the remaining ones are told that the capture is abandoned, and its error is thrown.
   */
  end(isAbandoned: boolean): void {
    const errors: unknown[] = [];
    for (const ended of this.#ends.splice(0)) {
      try {
        ended(isAbandoned || errors.length > 0);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  /** Calls the participants before a run. Returns a function to call after the run has been started. */
  begin(stream: bigint): () => void {
    const afters = this.#befores.map((before) => before(stream));
    return () => {
      for (const after of afters) after();
    };
  }
}
