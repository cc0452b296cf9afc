import { describe, expect, it } from 'vitest';
import { DataLoader, progress } from '../../../src/index.ts';
import { progressLine } from '../../../src/loader/progress.ts';

/** Returns an output that acts as a terminal or a pipe and keeps what is written. */
function output(isTTY: boolean, columns = 200) {
  const written: string[] = [];
  return { isTTY, columns, written, write: (text: string) => written.push(text) };
}

/** Returns the line that the terminal shows at the end. */
function lastLine(written: readonly string[]): string {
  return written.join('').split('\r').at(-1)!.replace('\x1b[K', '');
}

const loaderOf = (length: number) =>
  new DataLoader(
    Array.from({ length }, (_, i) => i),
    { batchSize: 4 },
  );

async function run(loader: DataLoader<number>, options: Parameters<typeof progress>[1]): Promise<number[]> {
  const seen: number[] = [];
  for await (const { data } of progress(loader, options)) seen.push(...data);
  return seen;
}

describe('progress', () => {
  it('passes the batches on and writes nothing off a terminal', async () => {
    const stream = output(false);
    expect(await run(loaderOf(10), { stream })).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(stream.written).toEqual([]);
  });

  it('leaves a finished line on a terminal after every pass', async () => {
    const loader = loaderOf(10);
    for (const label of ['epoch 1', 'epoch 2']) {
      const stream = output(true);
      expect(await run(loader, { label, stream })).toHaveLength(10);
      const line = lastLine(stream.written);
      expect(line).toMatch(/^epoch \d {1}█{20} {2}3\/3 {2}\d+ samples\/s {2}waited \d+ % {2}0:00\n$/);
      expect(line).toContain(label);
    }
  });

  it('counts batches where their number is not known', async () => {
    const stream = output(true);
    await run(new DataLoader(new Set([1, 2, 3]), { batchSize: 2 }), { stream });
    expect(lastLine(stream.written)).toMatch(/^2 batches /);
  });

  it('does not write beyond the width of the terminal', async () => {
    const stream = output(true, 30);
    await run(loaderOf(10), { label: 'a long label of the epoch', stream });
    expect(lastLine(stream.written).trimEnd().length).toBeLessThan(30);
  });

  it('ends its line where the loop is left or fails', async () => {
    const stream = output(true);
    for await (const _ of progress(loaderOf(10), { stream })) break;
    expect(stream.written.at(-1)).toBe('\n');
    const failing = new DataLoader({
      length: 8,
      get: (index: number) => {
        if (index > 3) throw new Error('no such sample');
        return index;
      },
    });
    const other = output(true);
    await expect(run(failing, { stream: other })).rejects.toThrow('no such sample');
    expect(other.written.at(-1)).toBe('\n');
  });

  it('says how fast it went, how long it waited and how long it will take', () => {
    const statistics = { samples: 1600, waitMs: 500, workMs: 1500 };
    const bar = `${'█'.repeat(5)}${'░'.repeat(15)}`;
    expect(progressLine(50, 200, statistics, 25_000)).toBe(
      `${bar}  50/200  800 samples/s  waited 25 %  1:15 left`,
    );
    expect(progressLine(50, 50, statistics, 3_725_000)).toContain('waited 25 %  1:02:05');
    expect(progressLine(0, 7, { samples: 0, waitMs: 0, workMs: 0 }, 0)).toBe(`${'░'.repeat(20)}  0/7  0:00`);
    expect(progressLine(0, 0, { samples: 0, waitMs: 0, workMs: 0 }, 0)).toBe('0/0  0:00');
  });
});
