// Runs `ringwise bench --save` and `--compare` as a user does. Ratios in files are made so small or large that the
// result does not depend on how busy the machine is.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { command } from '../support/command.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-baseline-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const small = ['--max', '1K', '--factor', '16', '--seconds', '0.01'];

function bench(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, 'bench', ...args], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 240_000,
  });
  return { status, stdout, stderr };
}

interface Stored {
  version: number;
  ranks: number;
  rows: { bytes: number; ratio: number; p50Us: number; limitUs: number }[];
}

const row = (bytes: number, ratio: number) => ({ bytes, ratio, p50Us: ratio, limitUs: 1 });
const stored = (rows: readonly object[], more: object = {}): string =>
  JSON.stringify({
    ringwise: 'ringwise bench baseline',
    version: 1,
    verb: 'all-reduce',
    ranks: 2,
    backend: 'host',
    dtype: 'float32',
    redop: 'sum',
    form: 'sync',
    alloc: false,
    rows,
    ...more,
  });
const file = (content: string): string => {
  writeFileSync(join(folder, 'baseline.json'), content);
  return 'baseline.json';
};
const slow = 1e9;
const fast = 1e-9;

describe('ringwise bench --save', () => {
  it('writes ratios to the limits, which --compare reads', () => {
    const saved = bench('all-reduce', ...small, '--save', 'saved.json', '--json');
    expect(saved).toMatchObject({ status: 0, stderr: '' });
    const lines = saved.stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as { bytes: number; ratio: number });
    const content = JSON.parse(readFileSync(join(folder, 'saved.json'), 'utf8')) as Stored;
    expect(content).toMatchObject({
      version: 1,
      verb: 'all-reduce',
      ranks: 2,
      backend: 'host',
      form: 'sync',
    });
    expect(content.rows.map(({ bytes }) => bytes)).toEqual([4, 64, 1024]);
    for (const [i, { bytes, ratio, p50Us, limitUs }] of content.rows.entries()) {
      expect(ratio).toBeGreaterThan(0);
      expect(ratio / (p50Us / limitUs)).toBeCloseTo(1, 3);
      expect(lines[i]).toMatchObject({ bytes, ratio: expect.closeTo(ratio, -Math.log10(ratio * 1e-3)) });
    }

    for (const each of content.rows) each.ratio *= slow;
    const compared = bench('all-reduce', ...small, '--compare', file(JSON.stringify(content)));
    expect(compared.stdout).toMatch(
      /\n# compared with baseline\.json: none of 3 sizes slower by more than 10 %\n$/,
    );
    expect(compared).toMatchObject({ status: 0, stderr: '' });
  });

  it('says before it measures that a file cannot be written', () => {
    const { status, stdout, stderr } = bench('broadcast', ...small, '--save', 'absent/saved.json');
    expect(stderr).toMatch(
      /^ringwise bench: baseline absent\/saved\.json: it cannot be written: ENOENT.*\. Name a file in a folder that exists\.\n$/,
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });
});

describe('ringwise bench --compare', () => {
  it('names the sizes that became slower, and no others', () => {
    const baseline = file(stored([row(4, slow), row(64, fast), row(1024, slow)]));
    const { status, stdout, stderr } = bench('all-reduce', ...small, '--compare', baseline);
    expect(stdout).toContain('# compared with baseline.json: 1 of 3 sizes slower by more than 10 %\n');
    expect(stdout.match(/^# slower: .*$/gm)).toEqual([
      expect.stringMatching(
        /^# slower: all-reduce of 64 bytes takes [\d.]+ × the machine's limit, in the baseline 0\.00 ×/,
      ),
    ]);
    expect(stderr).toMatch(
      /bench: all-reduce became more than 10 % slower than in baseline\.json, relative to the machine's limits, at 64 bytes\./,
    );
    expect(status).toBe(1);
  });

  it.each([
    [
      'bad JSON',
      '{"ringwise"',
      /baseline\.json: it is not JSON: .*\. Make it again with --save baseline\.json\.\n$/,
    ],
    [
      'null',
      'null',
      /it is no file of ringwise bench --save; expected "ringwise": "ringwise bench baseline"\./,
    ],
    ['a list', '[]', /it is no file of ringwise bench --save/],
    ['another version', stored([row(4, 1)], { version: 2 }), /it has version 2; expected version 1\./],
    ['a file without rows', stored([]), /it has no rows\./],
    [
      'a row without a ratio',
      stored([row(4, 1), { bytes: 64, ratio: 'x' }]),
      /row 1 lacks bytes, ratio, p50Us or limitUs as a number\./,
    ],
    ['a row that is null', stored([null as never]), /row 0 lacks bytes/],
  ])('refuses %s before it starts ranks', (_, content, sentence) => {
    const { status, stdout, stderr } = bench('all-reduce', '--compare', file(content));
    expect(stderr).toMatch(sentence);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });

  it('refuses a file that is not there', () => {
    const { status, stderr } = bench('all-reduce', '--compare', 'absent.json');
    expect(stderr).toMatch(
      /baseline absent\.json: it cannot be read: ENOENT.*\. Make one with --save absent\.json\./,
    );
    expect(status).toBe(2);
  });

  it.each([
    [
      'a missing row',
      stored([row(4, slow), row(1024, slow)]),
      /it has no row for 64 bytes\. It has 4, 1024; choose them by --min/,
    ],
    [
      'more ranks',
      stored([row(4, slow)], { ranks: 4 }),
      /its ranks is 4, and this run's is 2\. Compare runs with the same flags\./,
    ],
    [
      'another verb',
      stored([row(4, slow)], { verb: 'reduce' }),
      /its verb is "reduce", and this run's is "all-reduce"\./,
    ],
  ])('refuses to compare with another run: %s', (_, content, sentence) => {
    const { status, stderr } = bench('all-reduce', ...small, '--compare', file(content));
    expect(stderr).toMatch(sentence);
    expect(status).toBe(1);
  });
});
