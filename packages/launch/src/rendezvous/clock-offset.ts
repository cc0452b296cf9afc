// How far another host's clock is from this one's, without trust in either: ask for its time several times, and
// believe the quickest answer. The error is at most half of what that answer took.

export interface Sample {
  readonly sentNs: bigint;
  /** The other clock, somewhere between the two. */
  readonly otherNs: bigint;
  readonly receivedNs: bigint;
}

/** What to add to this clock to get the other one; 0 without samples. */
export function clockOffset(samples: readonly Sample[]): bigint {
  const tookNs = ({ sentNs, receivedNs }: Sample) => receivedNs - sentNs;
  const [quickest] = [...samples].sort((a, b) => (tookNs(a) < tookNs(b) ? -1 : 1));
  return quickest ? quickest.otherNs - (quickest.sentNs + quickest.receivedNs) / 2n : 0n;
}
