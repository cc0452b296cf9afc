// The message of a vote: an array of numbers that is reduced with max over all members. A flag becomes 1 if any member
// sets it. A number that must be equal on all members is sent twice, as itself and negated, so that the result has the
// largest and the smallest value.

export interface Tally {
  readonly changesView: boolean;
  /**
   * Whether members that leave stay for one more view: if all want to leave while a process waits to join, they first
   * send it the state of the training, which would otherwise be lost.
   */
  readonly putsOff: boolean;
}

const flags = 3;

export function ballotOf(ballot: {
  readonly isLeaving: boolean;
  /** Whether it leaves because its training is over, so that no process needs its state. */
  readonly isOver: boolean;
  readonly hasUnreadWish: boolean;
  readonly agreed: readonly number[];
}): Float64Array {
  const { isLeaving, isOver, hasUnreadWish, agreed } = ballot;
  const numbers = new Float64Array(flags + 2 * agreed.length);
  numbers[0] = Number(isLeaving);
  numbers[1] = Number(hasUnreadWish);
  numbers[2] = Number(!isLeaving || isOver);
  for (let i = 0; i < agreed.length; i++) {
    numbers[flags + 2 * i] = agreed[i]!;
    numbers[flags + 2 * i + 1] = 0 - agreed[i]!; // zero minus it, because the negative of 0 is -0
  }
  return numbers;
}

/** Returns the index of the first number that is not equal on all members; null if all are. */
export function differing(reduced: Float64Array): number | null {
  for (let at = flags; at < reduced.length; at += 2) {
    if (reduced[at] !== 0 - reduced[at + 1]!) return (at - flags) / 2;
  }
  return null;
}

export function tallyOf(reduced: Float64Array): Tally {
  const [isOneLeaving, isOneJoining, isOneStaying] = [reduced[0] !== 0, reduced[1] !== 0, reduced[2] !== 0];
  return { changesView: isOneLeaving || isOneJoining, putsOff: isOneJoining && !isOneStaying };
}
