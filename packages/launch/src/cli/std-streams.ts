// torchrun's numbers for output streams: 0 none, 1 stdout, 2 stderr, 3 both, for all local ranks or as
// "0:3,1:1".

import { badArgument } from '../errors.ts';
import type { Stream } from './run-options.ts';

const streamsByNumber: readonly (readonly Stream[])[] = [[], ['stdout'], ['stderr'], ['stdout', 'stderr']];

/** Returns the streams that `text` selects for a local rank; none for ranks that it does not mention. */
export function streamsOf(flag: string, text: string): (localRank: number) => readonly Stream[] {
  if (/^[0-3]$/.test(text)) return () => streamsByNumber[Number(text)]!;
  if (!/^\d+:[0-3](,\d+:[0-3])*$/.test(text)) {
    throw badArgument(
      'ringwise run',
      flag,
      '0, 1 (stdout), 2 (stderr), 3 (both), or these per local rank as 0:3,1:1',
      text,
    );
  }
  const byRank = new Map(text.split(',').map((pair) => pair.split(':').map(Number) as [number, number]));
  return (localRank) => streamsByNumber[byRank.get(localRank) ?? 0]!;
}
