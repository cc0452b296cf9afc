// What a scenario with many checks found.
import { firstWrong, type Guarded, type Pattern } from './inputs.ts';

export interface Report {
  checks: number;
  /** One sentence each, the first ten. */
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

/** The elements from `from` on must follow the pattern from there, and nothing around the buffer may have changed. */
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

/** Part r of the buffer, of counts[r] elements, must follow pattern r from its element `from` on. */
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
