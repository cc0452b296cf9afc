// Several ranks agree on one root cause, while some of them end or do not answer.
import { expect, it } from 'vitest';
import { RootCause } from '../../../../src/backends/tcp/root-cause.ts';
import { type Failure, systemFailure } from '../../../../src/errors.ts';

/** Ranks whose messages arrive in order, later. `isSilent` ranks get nothing. */
function ranks(size: number, isSilent: (rank: number) => boolean = () => false) {
  const causes: string[] = new Array<string>(size).fill('none');
  const gone = new Set<number>();
  const deliver = (to: number, what: () => void) =>
    setImmediate(() => {
      if (!gone.has(to) && !isSilent(to)) what();
    });
  const all: RootCause[] = Array.from({ length: size }, (_, rank) => {
    const left = () => [...all.keys()].filter((other) => other !== rank && !gone.has(other));
    return new RootCause({
      rank,
      left,
      report: (to, failure) => deliver(to, () => all[to]!.answer(rank, failure)),
      tell: (to, cause) => deliver(to, () => all[to]!.heard(cause)),
      onCause: ({ what }) => {
        causes[rank] = what;
      },
    });
  });
  const end = (rank: number) => {
    gone.add(rank);
    for (const [other, each] of all.entries()) if (other !== rank) each.gone(rank);
  };
  const settled = (which: readonly number[]) =>
    expect.poll(() => which.every((rank) => causes[rank] !== 'none')).toBe(true);
  return { all, causes, end, settled };
}

const failure = (rank: number): Failure => systemFailure('barrier', 0, `seen by ${rank}`);

it('the first report that the lowest rank gets is the cause on all ranks', async () => {
  const { all, causes, settled } = ranks(4);
  all[2]!.notice(failure(2));
  all[3]!.notice(failure(3));
  await settled([0, 1, 2, 3]);
  expect(causes).toEqual(new Array(4).fill('seen by 2'));
});

it('the next rank decides if the lowest one ends', async () => {
  const { all, causes, end, settled } = ranks(4);
  end(0);
  all[3]!.notice(failure(3));
  await settled([1, 2, 3]);
  expect(causes).toEqual(['none', 'seen by 3', 'seen by 3', 'seen by 3']);
});

it('a rank that ends after it was asked is replaced', async () => {
  const { all, causes, end, settled } = ranks(3);
  all[2]!.notice(failure(2));
  end(0);
  await settled([1, 2]);
  expect(causes).toEqual(['none', 'seen by 2', 'seen by 2']);
});

it('ranks that do not answer are passed over', async () => {
  const { all, causes, settled } = ranks(4, (rank) => rank < 2);
  all[3]!.notice(failure(3));
  await settled([2, 3]);
  expect(causes.slice(2)).toEqual(['seen by 3', 'seen by 3']);
});

it('a rank learns when the cause of its own failure is decided', async () => {
  const { all, causes } = ranks(3);
  await all[2]!.decided(); // it has noticed nothing
  all[2]!.notice(failure(2));
  expect(causes[2]).toBe('none');
  await all[2]!.decided();
  expect(causes[2]).toBe('seen by 2');
  await all[2]!.decided();
});
