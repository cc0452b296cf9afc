// The state of a generator, and what captured steps need of one.

export interface GeneratorState {
  readonly seed: number;
  /** Blocks of four words used so far. */
  readonly offset: number;
}

/** A generator as a captured step sees it: its position, which each run moves on. */
export interface RandomSource {
  readonly state: () => GeneratorState;
  readonly setState: (state: GeneratorState) => void;
}
