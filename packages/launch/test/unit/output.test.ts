import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { RankOutput, type Write } from '../../src/report/output.ts';

function copied(rank: number) {
  const source = new PassThrough();
  const written: string[] = [];
  const output = new RankOutput(rank, (_, text) => {
    written.push(text);
    return null;
  });
  output.copy(source, 'stdout');
  return { source, output, written };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('writes only whole lines, each with the rank', async () => {
  const { source, written } = copied(3);
  source.write('epoch ');
  await turn();
  expect(written).toEqual([]);
  source.write('1\n\nloss');
  await turn();
  expect(written).toEqual(['[3] epoch 1\n[3] \n']);
});

it('writes what is left without a line end when the stream ends', async () => {
  const { source, written } = copied(0);
  source.end('a\nb');
  await once(source, 'close');
  expect(written.join('')).toBe('[0] a\n[0] b\n');
});

it('puts characters together that arrive in pieces', async () => {
  const { source, written } = copied(0);
  for (const byte of Buffer.from('μs 🙂\n')) source.write(Buffer.of(byte));
  source.end();
  await once(source, 'close');
  expect(written.join('')).toBe('[0] μs 🙂\n');
});

it('shows where the stream ends within a character', async () => {
  for (const text of ['4 μ', '\n🙂']) {
    const { source, written } = copied(0);
    source.end(Buffer.from(text).subarray(0, -1));
    await once(source, 'close');
    expect(written.join('')).toMatch(/\uFFFD\n$/u);
  }
});

it('cuts a line that never ends', async () => {
  const { source, written } = copied(0);
  source.write('x'.repeat(3 << 20));
  await turn();
  expect(written.join('').length).toBeGreaterThan(1 << 20);
});

it('keeps the last 50 lines', async () => {
  const { source, output } = copied(0);
  source.write('first\n');
  source.end(Array.from({ length: 120 }, (_, i) => `line ${i}`).join('\n'));
  await once(source, 'close');
  expect(output.tail).toEqual(Array.from({ length: 50 }, (_, i) => `line ${i + 70}`));
});

it('stops reading a rank while the terminal is full, and is not idle then', async () => {
  const source = new PassThrough();
  const written: string[] = [];
  let release = () => {};
  const write: Write = (_, text) => {
    written.push(text);
    return new Promise((resolve) => {
      release = resolve;
    });
  };
  const output = new RankOutput(0, write);
  output.copy(source, 'stdout');
  expect(output.isIdle(0)).toBe(true);
  source.write('a\n');
  await turn();
  source.write('b\n');
  await turn();
  expect(written).toEqual(['[0] a\n']);
  expect(output.isIdle(0)).toBe(false);
  release();
  await turn();
  expect(written).toEqual(['[0] a\n', '[0] b\n']);
});
