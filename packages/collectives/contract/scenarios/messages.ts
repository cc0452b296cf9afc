// Scenarios with sends and receives.
import type { Group } from '../../src/group/group.ts';
import { anySource, type Message } from '../../src/options/options.ts';
import { type Guarded, guarded, inputPattern } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import { expect, expectPattern, newReport, type Report } from '../report.ts';

/**
 * Sends from each rank to the next one, all messages at once. With Sync calls one rank after the other sends, because
 * a Sync send may wait for its receiver.
 */
export async function exactMessages(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const lengths = [0, 1, 5, 1000, 70_001];
  for (const dtype of ['float32', 'int8', 'bfloat16'] as const) {
    const out = lengths.map((count) => guarded(dtype, count, inputPattern('move', dtype, rank, size)));
    const back = lengths.map((count) => guarded(dtype, count));
    if (mode === 'async') {
      const sends = out.map(({ like }) => group.send(like, next));
      const recvs = back.map(({ like }) => group.recv(like, previous));
      await Promise.all([...sends, ...recvs]);
      expect(report, (await recvs[0]) === previous, 'recv did not give the rank of the sender');
    } else {
      for (let sender = 0; sender < size; sender++) {
        for (const i of lengths.keys()) {
          if (rank === sender) group.sendSync((out[i] as Guarded).like, next);
          if (previous !== sender) continue;
          const source = group.recvSync((back[i] as Guarded).like, sender);
          expect(report, source === sender, `recvSync gave ${source} for rank ${sender}`);
        }
      }
    }
    const expected = inputPattern('move', dtype, previous, size);
    for (const buffer of back) {
      const what = `recv ${buffer.elements.length} × ${dtype} from rank ${previous}`;
      expectPattern(report, what, buffer, expected);
    }
  }
  return report;
}

/**
 * Receives tags in another order than they were sent; messages with the same tag arrive in the order of the
 * sends.
 */
export async function taggedMessages(group: Group): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const tags = [7, 0, 7, 536_870_911, 3, 0];
  const numberFor = (from: number, index: number) => 100 * from + index;
  for (const count of [1, 50_000]) {
    const sends = tags.map((tag, index) =>
      group.send(new Float64Array(count).fill(numberFor(rank, index)), next, { tag }),
    );
    for (const tag of [3, 0, 536_870_911, 7]) {
      for (const [index, sent] of tags.entries()) {
        if (sent !== tag) continue;
        const buffer = new Float64Array(count);
        const source = await group.recv(buffer, previous, { tag });
        const isRight = source === previous && buffer.every((x) => x === numberFor(previous, index));
        expect(
          report,
          isRight,
          `message ${index} of ${count} with tag ${tag} is ${buffer[0]} from rank ${source}`,
        );
      }
    }
    await Promise.all(sends);
  }
  return report;
}

/** Sends from every other rank to rank 0, which receives from any rank. */
export async function fromAnySource(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const rounds = 5;
  if (rank !== 0) {
    for (let round = 0; round < rounds; round++)
      await invoke(group, mode, 'send', Int32Array.of(rank, round), 0, { tag: 4 });
  }
  const seen = new Array<number>(size).fill(0);
  for (let left = rank === 0 ? rounds * (size - 1) : 0; left > 0; left--) {
    const buffer = new Int32Array(2);
    const source = await invoke(group, mode, 'recv', buffer, anySource, { tag: 4 });
    const round = (seen[source] as number)++;
    expect(
      report,
      buffer[0] === source && buffer[1] === round,
      `rank ${source} gave [${buffer}] in round ${round}`,
    );
  }
  await group.barrier();
  expect(report, group.failure === null, 'the group failed');
  return report;
}

/** Sends in both directions at once. The values identify the messages. */
export async function batches(group: Group, mode: Mode): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const others = Array.from({ length: size - 1 }, (_, i) => (rank + i + 1) % size);
  for (const count of [0, 3, 40_000]) {
    const back = others.map(() => new Int32Array(count));
    const messages: Message[] = [
      ...others.map((from, index) => ({ recv: back[index] as Int32Array, from, tag: 1 })),
      ...others.map((to) => ({ send: new Int32Array(count).fill(10 * rank + to), to, tag: 1 })),
    ];
    const peers = await invoke(group, mode, 'batch', messages);
    expect(report, peers.join() === [...others, ...others].join(), `batch gave [${peers}]`);
    for (const [index, from] of others.entries()) {
      const isRight = back[index]?.every((x) => x === 10 * from + rank) ?? false;
      expect(report, isRight, `batch: ${count} elements from rank ${from} are ${back[index]?.[0]}`);
    }
  }
  expect(report, (await invoke(group, mode, 'batch', [])).length === 0, 'an empty batch gave something');
  return report;
}

/** Runs collectives while a receive is pending, which is not ordered with them. */
export async function messagesBesideCollectives(group: Group): Promise<Report> {
  const report = newReport();
  const { rank, size } = group;
  const next = (rank + 1) % size;
  const previous = (rank + size - 1) % size;
  const late = new Float32Array(20_000);
  const pending = group.recv(late, previous, { tag: 9 });
  for (let i = 0; i < 20; i++) {
    const x = new Float32Array(i * 100).fill(rank);
    await group.allReduce(x);
    expect(
      report,
      x.every((value) => value === (size * (size - 1)) / 2),
      `allReduce ${i} beside a recv is wrong`,
    );
    // After the last collective the sender may be faster than this rank.
    if (i < 19) expect(report, !pending.done, 'a recv ended before its send');
  }
  const send = group.send(new Float32Array(20_000).fill(rank), next, { tag: 9 });
  await group.barrier();
  await Promise.all([send, pending]);
  expect(
    report,
    late.every((value) => value === previous),
    'a recv beside collectives has a wrong result',
  );
  return report;
}
