// Samplers decide which samples a pass has, and in which order. A sampler is any iterable of indices with a length,
// such as an array.

/** One pass over a sampler is one epoch. */
export interface Sampler extends Iterable<number> {
  /** Number of indices in an epoch. */
  readonly length: number;
}

/** A position in an epoch, over all ranks together. */
export interface SamplerState {
  /** Seed of the order; null for a fixed order. */
  readonly seed: number | null;
  /** Number of the epoch, as passed to setEpoch(). */
  readonly epoch: number;
  /** Number of samples of this epoch that all ranks together have taken, without padding. */
  readonly consumed: number;
  /** Number of samples of an epoch over all ranks, to detect a state of another data set. */
  readonly length: number;
  /** Number of samples that a LengthGroupedSampler keeps together. */
  readonly groupSize?: number;
}

/** Methods that a sampler needs so that a DataLoader can save and resume. */
export interface Resumable {
  /** Counts `count` more samples of this rank as used. */
  readonly advance: (count: number) => void;
  /** Returns the position, as plain JSON. */
  readonly state: () => SamplerState;
  /** Continues from a position that state() returned. */
  readonly load: (state: SamplerState) => void;
}

export function isResumable<S extends object>(sampler: S): sampler is S & Resumable {
  const { advance, state, load } = sampler as Partial<Resumable>;
  return typeof advance === 'function' && typeof state === 'function' && typeof load === 'function';
}
