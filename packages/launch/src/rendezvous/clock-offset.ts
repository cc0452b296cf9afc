// Estimates the offset between another host's clock and this one: asks for its time several times and uses
// the fastest answer. The error is at most half of that answer's round-trip time.

export interface Sample {
  readonly sentNs: bigint;
  /** Time of the other clock, at some moment between sending and receiving. */
  readonly otherNs: bigint;
  readonly receivedNs: bigint;
}

/** Returns what to add to this clock to get the other one; 0 without samples. */
export function clockOffset(samples: readonly Sample[]): bigint {
  const tookNs = ({ sentNs, receivedNs }: Sample) => receivedNs - sentNs;
  const [quickest] = [...samples].sort((a, b) => (tookNs(a) < tookNs(b) ? -1 : 1));
  return quickest ? quickest.otherNs - (quickest.sentNs + quickest.receivedNs) / 2n : 0n;
}
