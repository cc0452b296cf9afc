// Keeps reports small: all reports of a view are one value in the store, which takes at most 8 MiB.
import type { Report } from './view.ts';

/** Share of the store's limit that the lists of unreachable members may take, in bytes of all reports of a view. */
const bytesOfLists = 4 << 20;
/** Bytes of one member in a list, with a random id. */
const bytesOfOne = 80;
/** Longest text of a failure, in UTF-16 code units; that of connecting may name each member. */
const longestFailure = 400;

/**
 * Returns the report with as many unreachable members as fit if all `size` members list as many: first those that have
 * certainly ended, then others. `rank` is the member's rank: members of different ranks list different others.
 */
export function shortened(report: Report, rank: number, size: number): Report {
  const most = Math.max(1, Math.floor(bytesOfLists / bytesOfOne / size));
  const { unreachable, failure } = report;
  const isLong = failure !== null && failure.length > longestFailure;
  const text = isLong ? `${failure.slice(0, longestFailure)} …` : failure;
  if (unreachable.length <= most) return { ...report, failure: text };
  const certain = unreachable.filter(({ isCertain }) => isCertain);
  const rest = unreachable.filter(({ isCertain }) => !isCertain);
  const from = rest.length === 0 ? 0 : (rank * most) % rest.length;
  const turned = [...rest.slice(from), ...rest.slice(0, from)];
  return { ...report, failure: text, unreachable: [...certain, ...turned].slice(0, most) };
}
