import { expect, test } from 'vitest';
import { shortened } from '../../../src/membership/protocol/report-size.ts';
import type { Report } from '../../../src/membership/protocol/view.ts';

const reportOf = (size: number, lost: readonly number[], certain: readonly number[] = []): Report => ({
  ...{ member: 'a', view: 0, finalSteps: 0, isComplete: false, hasState: true, wasConnected: false },
  ...{ isLeaving: false, isDone: false },
  unreachable: lost.map((k) => ({
    member: `${k}`.padStart(36, '-'), // as long as a random id
    isCertain: certain.includes(k),
  })),
  failure: 'x'.repeat(40 * size),
});

test('a short report stays as it is', () => {
  const report = { ...reportOf(8, [1, 2]), failure: 'lost' };
  expect(shortened(report, 3, 8)).toEqual(report);
});

test('reports of members that reach no others fit in one value, and together name all', () => {
  const size = 4_000;
  const others = Array.from({ length: size }, (_, k) => k);
  const full = reportOf(size, others, [7]);
  const named = new Set<string>();
  let bytes = 0;
  for (let place = 0; place < size; place++) {
    const report = shortened(full, place, size);
    expect(report.unreachable[0]).toEqual(full.unreachable[7]);
    for (const { member } of report.unreachable) named.add(member);
    bytes += JSON.stringify(report).length + 1;
  }
  expect(bytes).toBeLessThan(8 << 20);
  expect(named.size).toBe(size);
});
