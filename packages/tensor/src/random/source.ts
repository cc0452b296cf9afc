// The state of a generator, and the interface through which captured steps use one.

export interface GeneratorState {
  readonly seed: number;
  /** Number of blocks of four words used so far. */
  readonly offset: number;
}

/** The interface of a generator for captured steps. Each run reads its position and advances it. */
export interface RandomSource {
  readonly state: () => GeneratorState;
  readonly setState: (state: GeneratorState) => void;
}
