// Scenarios about the flight record: calls that succeeded, failed, or have not ended.
import type { FlightEntry } from '../../src/flight/entry.ts';
import type { Group } from '../../src/group/group.ts';
import { anySource } from '../../src/options/options.ts';
import { expect, newReport, type Report } from '../report.ts';

/** Checks that calls of several kinds appear in the record, in call order, with their final states. */
export async function keepsRecord(group: Group): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const x = new Float32Array(6 * size).fill(1);
  const counts = Array.from({ length: size }, (_, part) => part);
  const before = group.flightRecord().length;
  await group.allReduce(x, { op: 'max' });
  await group.broadcast(new Int8Array(3), { root: size - 1 });
  await group.allGather(new Int32Array(rank), new Int32Array((size * (size - 1)) / 2), { counts });
  await group.allToAll(x, new Float32Array(x.length));
  await group.barrier({ label: 'end of all' });
  if (size > 1 && rank === 1) await group.send(x, 0, { tag: 7 });
  if (size > 1 && rank === 0) await group.recv(new Float32Array(x.length), anySource, { tag: 7 });

  const entries = group.flightRecord().slice(before);
  const facts = entries.map(({ verb, dtype, count, bytes, op, root, peer, tag }) =>
    [verb, dtype, count, bytes, op, root, peer, tag].join(' '),
  );
  const all = (size * (size - 1)) / 2;
  const expected = [
    `allReduce float32 ${x.length} ${4 * x.length} max   `,
    `broadcast int8 3 3  ${size - 1}  `,
    `allGather int32 ${all} ${4 * all}    `,
    `allToAll float32 ${x.length} ${4 * x.length}    `,
    'barrier  0 0    ',
    ...(size > 1 && rank < 2
      ? [`${rank === 1 ? 'send' : 'recv'} float32 ${x.length} ${4 * x.length}   ${1 - rank} 7`]
      : []),
  ];
  expect(
    report,
    facts.join() === expected.join(),
    `record: expected ${expected.join()}, got ${facts.join()}`,
  );
  const labels = entries.map(({ verb, label }) => label === (verb === 'barrier' ? 'end of all' : null));
  expect(report, labels.every(Boolean), `record: labels are ${entries.map(({ label }) => label).join()}`);
  for (const entry of entries) expectInOrder(report, entry);
  const numbers = entries.map(({ number }) => number);
  const isAscending = numbers.every((number, i) => i === 0 || number > (numbers[i - 1] as number));
  expect(report, isAscending, `record: numbers are ${numbers.join()}`);
  return report;
}

function expectInOrder(report: Report, entry: FlightEntry): void {
  const { verb, state, queuedMs, startedMs, endedMs } = entry;
  expect(report, state === 'done', `record of ${verb}: ${state}`);
  const isOrdered = startedMs !== null && endedMs !== null && queuedMs <= startedMs && startedMs <= endedMs;
  expect(report, isOrdered, `record of ${verb}: queued ${queuedMs}, started ${startedMs}, ended ${endedMs}`);
}

/**
 * Makes all ranks but the last wait in a call when the last one aborts the group. Returns the call's state before
 * and after.
 */
export async function recordsFailure(group: Group): Promise<string[]> {
  const last = group.size - 1;
  const stateOfCall = () => group.flightRecord().find(({ verb }) => verb === 'allReduce')?.state ?? 'none';
  if (group.rank === last) {
    for (let rank = 0; rank < last; rank++) await group.recv(new Uint8Array(1), rank);
    group.abort('enough');
    return [];
  }
  const call = group.allReduce(new Float32Array(2));
  const before = stateOfCall();
  void group.send(new Uint8Array(1), last);
  await call.catch(() => {});
  return [before, stateOfCall()];
}
