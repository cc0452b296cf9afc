// The state of a generator, and the interface through which captured steps use one.

/** State of a Generator, which continues its stream anywhere. */
export interface GeneratorState {
  /** Seed of the stream. */
  readonly seed: number;
  /** Position in the stream: the number of blocks of four words before it. */
  readonly offset: number;
}

/** The interface through which captured steps use a generator. Each run reads its position and advances it. */
export interface RandomSource {
  readonly state: () => GeneratorState;
  readonly setState: (state: GeneratorState) => void;
}
