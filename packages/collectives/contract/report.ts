// Result of a scenario with many checks.
import { firstWrong, type Guarded, type Pattern } from './inputs.ts';

export interface Report {
  checks: number;
  /** The first ten faults, one sentence each. */
  readonly faults: string[];
}

export function newReport(): Report {
  return { checks: 0, faults: [] };
}

export function expect(report: Report, holds: boolean, fault: string): void {
  report.checks++;
  if (!holds && report.faults.length < 10) report.faults.push(fault);
}

type Memory = Pick<Guarded, 'elements' | 'isIntact'>;

/**
 * Checks that the elements follow the pattern from its element `from` on, and that the memory around the
 * buffer is unchanged.
 */
export function expectPattern(
  report: Report,
  what: string,
  buffer: Memory,
  pattern: Pattern,
  from = 0,
): void {
  const { elements, isIntact } = buffer;
  const wrong = firstWrong(elements, pattern, from);
  expect(report, wrong < 0, `${what}: element ${wrong} is ${elements[wrong]}`);
  expect(report, isIntact(), `${what}: wrote outside of the buffer`);
}

/** Checks that part r of the buffer, of counts[r] elements, follows pattern r from its element `from` on. */
export function expectParts(
  report: Report,
  what: string,
  { elements, isIntact }: Memory,
  counts: readonly number[],
  patternOf: (rank: number) => Pattern,
  from: number | ((rank: number) => number) = 0,
): void {
  let start = 0;
  for (const [rank, count] of counts.entries()) {
    const part = { elements: elements.subarray(start, start + count), isIntact };
    const first = typeof from === 'number' ? from : from(rank);
    expectPattern(report, `part ${rank} of ${what}`, part, patternOf(rank), first);
    start += count;
  }
}
