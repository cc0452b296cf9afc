// Which samples, in which order. A sampler is any iterable of indices with a length; an array is one.

/** One pass over it is one epoch. */
export interface Sampler extends Iterable<number> {
  readonly length: number;
}

/** A place in an epoch, over all ranks together. */
export interface SamplerState {
  /** null for a fixed order. */
  readonly seed: number | null;
  readonly epoch: number;
  /** Samples that all ranks together have taken of this epoch, padding left out. */
  readonly consumed: number;
  /** Samples of an epoch over all ranks, to notice a state of another data set. */
  readonly length: number;
  /** Samples that a LengthGroupedSampler keeps together. */
  readonly groupSize?: number;
}

/** What a sampler needs so that a DataLoader over it can save and resume. */
export interface Resumable {
  readonly advance: (count: number) => void;
  readonly state: () => SamplerState;
  readonly load: (state: SamplerState) => void;
}

export function isResumable<S extends object>(sampler: S): sampler is S & Resumable {
  const { advance, state, load } = sampler as Partial<Resumable>;
  return typeof advance === 'function' && typeof state === 'function' && typeof load === 'function';
}
