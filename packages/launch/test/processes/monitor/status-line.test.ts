import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { JobView } from '../../../src/monitor/job-view.ts';
import { statusLine, statusText, type TerminalStream } from '../../../src/monitor/status-line.ts';
import { script, until } from '../../support/command.ts';

const bin = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
const library = new URL('../../../dist/index.js', import.meta.url).href;

/** Returns the rows that a terminal of this width shows after `text`. Knows only the launcher's control sequences. */
function screen(text: string, columns = 80): string[] {
  const rows = [''];
  let [row, column] = [0, 0];
  const [plain, ...controls] = text.split('\x1b');
  print(plain!);
  for (const [index, part] of controls.entries()) {
    // What has been read may end within a control sequence.
    if (index === controls.length - 1 && /^(\[\d*)?$/.test(part)) break;
    const [, count, letter, rest] = /^\[(\d*)([A-Z])(.*)$/s.exec(part) ?? [];
    if (letter === 'K') rows[row] = rows[row]!.slice(0, column);
    else if (letter === 'J') rows.splice(row, rows.length, rows[row]!.slice(0, column));
    else if (letter === 'A') row -= Number(count);
    else throw new Error(`unknown ${JSON.stringify(part)}`);
    print(rest!);
  }
  return rows;

  function print(characters: string): void {
    for (const character of characters) {
      if (character === '\r') column = 0;
      else if (character === '\n') rows[++row] ??= '';
      else {
        if (column === columns) [row, column] = [row + 1, 0];
        const line = (rows[row] ?? '').padEnd(column);
        rows[row] = line.slice(0, column) + character + line.slice(column + 1);
        column++;
      }
    }
  }
}

const hasScript = spawnSync('script', ['--version']).status === 0;

/** Runs ringwise on a terminal of its own. `onText` gets all output so far and may type. */
async function onTerminal(
  args: readonly string[],
  env: Record<string, string>,
  onText: (text: string, type: (keys: string) => void) => void = () => {},
) {
  const line = `stty cols 60 rows 20; exec '${process.execPath}' '${bin}' ${args.map((arg) => `'${arg}'`).join(' ')}`;
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', NO_COLOR: '1', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    onText(text, (keys) => child.stdin.write(keys));
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { text, code };
}

/** Source that waits until the test writes the file, which it does when it has seen enough. */
const waitsFor = (file: string) => `const { existsSync } = await import('node:fs');
  for (const endMs = performance.now() + 120_000; !existsSync('${file}') && performance.now() < endMs; )
    await new Promise((resolve) => setTimeout(resolve, 20));`;

const trains = `import { reportMetrics } from '${library}';
  for (let step = 0; step < 12; step++) {
    reportMetrics({ step, loss: 1 / (step + 1), samples: 8 });
    console.log('line ' + step);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }`;

describe('the status line', () => {
  it.skipIf(!hasScript)('stays below the lines of the ranks, and is gone at the end', async () => {
    const hasSeen = join(dirname(script('empty.mjs', '')), 'seen');
    const file = script('train.mjs', `${trains}\n${waitsFor(hasSeen)}`);
    const full: string[][] = [];
    const samples = /ringwise {2}\d+:\d\d {2}2 ranks {2}step \d+ {2}loss 0\.\d+ {2}[\d.]+ samples/;
    const { text, code } = await onTerminal(['run', '--nproc-per-node', '2', file], {}, (text) => {
      const rows = screen(text, 60);
      if (rows.some((row) => row.startsWith('ringwise'))) full.push(rows);
      if (full.length > 3 && samples.test(text)) writeFileSync(hasSeen, '');
    });
    expect(code).toBe(0);
    expect(full.length).toBeGreaterThan(3);
    for (const rows of full) {
      expect(rows.findIndex((row) => row.startsWith('ringwise'))).toBe(rows.length - 1);
      for (const row of rows.slice(0, -1)) expect(row).toMatch(/^\[[01]\] line \d+$/);
    }
    expect(text).toMatch(samples);
    const last = screen(text, 60);
    expect(last.filter((row) => row !== '')).toHaveLength(24);
    expect(last.some((row) => row.includes('ringwise'))).toBe(false);
  });

  it.skipIf(!hasScript)('is gone after Ctrl-C', async () => {
    const file = script('wait.mjs', `setInterval(() => {}, 1000);`);
    let hasTyped = false;
    const { text, code } = await onTerminal(['run', file], {}, (text, type) => {
      if (hasTyped || !/ringwise {2}\d+:\d\d {2}1 rank/.test(text)) return;
      hasTyped = true;
      type('\x03');
    });
    expect(code).toBe(130);
    expect(screen(text, 60).filter((row) => row !== '')).toEqual(['ringwise: stopped by SIGINT.']);
  });

  it.skipIf(!hasScript)('is not drawn on a dumb terminal', async () => {
    const { text } = await onTerminal(['run', script('train.mjs', trains)], { TERM: 'dumb' });
    expect(text).not.toContain('\x1b');
    expect(text.match(/line \d+/g)).toHaveLength(12);
  });

  it.skipIf(!hasScript)('has the progress of rank 0, whose last line of a pass stays', async () => {
    const hasSeen = join(dirname(script('empty.mjs', '')), 'seen');
    const file = script(
      'loops.mjs',
      `const show = globalThis[Symbol.for('ringwise.progress')];
       for (let done = 1; done <= 12; done++) {
         show?.('batch ' + done, done === 12);
         if (process.env.RANK === '1') console.log('shows ' + (show !== undefined));
         if (done < 11) await new Promise((resolve) => setTimeout(resolve, 150));
         if (done === 11) { ${waitsFor(hasSeen)} }
       }`,
    );
    const { text, code } = await onTerminal(['run', '--nproc-per-node', '2', file], {}, (text) => {
      const row = screen(text, 60).at(-1)!;
      if (/^ringwise {2}\d+:\d\d {2}2 ranks {2}batch \d+$/.test(row)) writeFileSync(hasSeen, '');
    });
    expect(code).toBe(0);
    expect(existsSync(hasSeen)).toBe(true);
    const rows = screen(text, 60).filter((row) => row !== '');
    expect(rows.filter((row) => row !== '[1] shows false')).toEqual(['[0] batch 12']);
  });

  it('is cut to the width of the terminal, and follows it', async () => {
    let written = '';
    let resized = () => {};
    const stream = {
      isTTY: true,
      columns: 40,
      write: (text: string) => {
        written += text;
      },
      on: (_: 'resize', listener: () => void) => {
        resized = listener;
      },
      off: () => {},
    } satisfies TerminalStream;
    const write = (_: string, text: string) => {
      written += text;
      return null;
    };
    const text = 'ringwise  2 ranks  step 123456  loss 0.5';
    const line = statusLine(write, { stdout: true, stderr: true }, stream, () => text);
    try {
      void line.write('stdout', '[0] first\n');
      await until('the line', () => written.includes('ringwise'));
      expect(screen(written, 40)).toEqual(['[0] first', text.slice(0, 39)]);
      // The narrower terminal has wrapped the line into two rows, with the cursor at the start of the second.
      stream.columns = 25;
      written = `[0] first\r\n${text.slice(0, 25)}\r\n${text.slice(25, 39)}\r`;
      resized();
      expect(screen(written, 25)).toEqual(['[0] first', text.slice(0, 24)]);
    } finally {
      line.close();
    }
    expect(screen(written, 25)).toEqual(['[0] first', '']);
  });

  it('tells restarts and hosts where there are some', () => {
    const view = new JobView(0);
    view.startRound(4, 2, 3, 'a loss');
    expect(statusText(view, 3_725_000)).toBe('ringwise  1:02:05  4 ranks on 2 hosts  3 restarts');
  });

  it('tells how far the job is, if the program tells how long it is', () => {
    const view = new JobView(0);
    view.startRound(1, 1, 0, null);
    view.handle({ kind: 'started', rank: 0, host: 'a', pid: 1 });
    const report = (clockMs: number, step: number, values: Record<string, number>) =>
      view.handle({ kind: 'report', rank: 0, report: { clockMs, step, values } });
    report(0, 0, { epoch: 0 });
    expect(statusText(view, 1_000)).toBe('ringwise  0:01  1 rank  epoch 1  step 0');
    report(10_000, 10, { epoch: 2, epochs: 3, steps: 31 });
    report(20_000, 20, {});
    expect(statusText(view, 20_000)).toBe('ringwise  0:20  1 rank  epoch 3/3  step 20/31  0:10 left');
  });
});
