// The part of a view that launchers read. A view is the document that lists the processes of an elastic job that train
// together. @ringwise/elastic writes it (membership/protocol/view.ts); both packages declare its fields.

export interface ViewFacts {
  readonly number: number;
  /** Number of times that the store had moved when the view was written. */
  readonly epoch: number;
  /** Ids of the processes, `slot.incarnation`. */
  readonly members: readonly string[];
  readonly joined: readonly string[];
  readonly lost: readonly string[];
  readonly left: readonly string[];
  /** Addresses of the standby stores on the hosts of the members, as `host:port`. */
  readonly standbys: readonly string[];
  /** Whether members on other hosts may continue in another store when they cannot reach this one. */
  readonly canMove: boolean;
  /** Number of steps that are final. */
  readonly finalSteps: number;
  /** Why the job ends with this view, as a sentence; null while it goes on. */
  readonly ended: string | null;
}

/**
 * Minimum number of hosts of a view from which the store can move; @ringwise/elastic has the same rule
 * (protocol/quorum.ts).
 */
const fewestHosts = 3;

/** Parses a view; null if the text is none. */
export function parseView(text: string): ViewFacts | null {
  try {
    const {
      number,
      epoch = 0,
      members,
      joined,
      lost,
      left,
      finalSteps,
      ended = null,
    } = JSON.parse(text) as Record<string, unknown>;
    if (![number, epoch, finalSteps].every(isCount) || !Array.isArray(members)) return null;
    const ids = members.map((member: unknown) => (member as { id?: unknown } | null)?.id);
    const each = members.map((member: unknown) => (member as { standby?: unknown } | null)?.standby ?? null);
    const standbys = [...new Set(each)].filter((standby) => typeof standby === 'string');
    const canMove = !each.includes(null) && standbys.length >= fewestHosts;
    if (![ids, joined, lost, left].every(isTexts)) return null;
    if (ended !== null && typeof ended !== 'string') return null;
    const lists = { joined, lost, left } as Pick<ViewFacts, 'joined' | 'lost' | 'left'>;
    const counts = { number, epoch, finalSteps } as Pick<ViewFacts, 'number' | 'epoch' | 'finalSteps'>;
    return { ...counts, ended, standbys, canMove, members: ids as string[], ...lists };
  } catch {
    return null;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');
