// Runs `ringwise plan` as a user does. Its estimates are the same on every machine and run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { command } from '../support/command.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-plan-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function ringwise(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 240_000,
  });
  return { status, stdout, stderr };
}

interface Row {
  bucketBytes: number;
  algorithm: string;
  runs: string[];
  stepMs: number;
  exposedMs: number;
  communicationMs: number;
  operations: number;
}

const small = ['--ranks', '8', '--params', '3M', '--step-ms', '20', '--buckets', '1M,4M'];

function rowsOf(...args: string[]): { best: Row; rows: Row[] } {
  const { status, stdout, stderr } = ringwise('plan', ...small, '--json', ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout) as { best: Row; rows: Row[] };
}

describe('ringwise plan', () => {
  it('prints what docs/simulation.md shows', () => {
    const page = readFileSync(new URL('../../../../docs/simulation.md', import.meta.url), 'utf8');
    const example = /```sh\nnpx ringwise (plan [^\n]+)\n```\n\n```text\n([^`]+)```/.exec(page);
    expect(example).not.toBeNull();
    const [, words, output] = example!;
    expect(ringwise(...words!.split(' '))).toEqual({ status: 0, stdout: output, stderr: '' });
  });

  it('gives every algorithm in JSON, and the best of them', () => {
    const { best, rows } = rowsOf('--link', '10g');
    const names = [
      'library',
      'two-shot',
      'one-shot',
      'recursive-doubling',
      'halving-doubling',
      'ring',
      'tree',
    ];
    expect(rows.map(({ bucketBytes, algorithm }) => [bucketBytes, algorithm])).toEqual(
      [2 ** 20, 4 * 2 ** 20].flatMap((bytes) => names.map((name) => [bytes, name])),
    );
    for (const row of rows) {
      expect(row.stepMs).toBeCloseTo(20 + row.exposedMs, 3);
      expect(row.stepMs).toBeGreaterThanOrEqual(best.stepMs / 1.01);
      // 12 MB in buckets of 1 MiB, or one such and two of 4 MiB with a rest.
      expect(row.operations).toBe(row.bucketBytes === 2 ** 20 ? 12 : 4);
    }
    const [own, ...named] = rows.filter(({ bucketBytes }) => bucketBytes === 4 * 2 ** 20);
    for (const { algorithm, communicationMs } of named)
      if (own!.runs.length === 1 && own!.runs[0] === algorithm)
        expect(communicationMs).toBe(own!.communicationMs);
  });

  it('waits less with a wider link or a narrower type or wire, and longer with latency or nothing to hide behind', () => {
    const exposed = (...args: string[]) => rowsOf('--link', '1g', ...args).best.exposedMs;
    const usual = exposed();
    expect(rowsOf('--link', '10g').best.exposedMs).toBeLessThan(usual);
    expect(exposed('--dtype', 'float16')).toBeLessThan(usual);
    expect(exposed('--wire', 'int8')).toBeLessThan(exposed('--wire', 'bfloat16'));
    expect(exposed('--backward-share', '0')).toBeGreaterThan(usual);
    expect(exposed('--latency-us', '5000')).toBeGreaterThan(usual);
  });

  it('knows ranks that share a port', () => {
    const { rows } = rowsOf('--link', '1g', '--per-host', '4');
    expect(rows.map(({ algorithm }) => algorithm)).toContain('hierarchical');
    expect(rows.find(({ algorithm }) => algorithm === 'library')!.runs).toEqual(['hierarchical']);
    expect(rowsOf('--link', '1g', '--hosts', '2').rows).toEqual(rows);
  });

  it('leaves out algorithms with too many messages, and says which', () => {
    const flags = ['--ranks', '1024', '--link', '10g', '--params', '1M', '--step-ms', '9', '--buckets', '4M'];
    const { status, stdout } = ringwise('plan', ...flags);
    expect(stdout).toMatch(/\nleft out, for the number of its messages: two-shot at 4 MiB\n/);
    expect(stdout).toMatch(/\nbest: ddp\(model, \{ group, bucketBytes: 4194304 \}\)/);
    expect(status).toBe(0);
  });

  it('draws the steps', () => {
    expect(ringwise('plan', ...small, '--link', '10g', '--svg', 'plan.svg').status).toBe(0);
    const drawing = readFileSync(join(folder, 'plan.svg'), 'utf8');
    expect(drawing).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*<\/svg>\n$/);
    expect(drawing).toContain('A training step among 8 ranks on 8 hosts, 10 Gbit/s');
    expect(drawing.match(/<polyline /g)).toHaveLength(7);
    expect(drawing).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('explains itself, and wrong arguments', () => {
    expect(ringwise('plan', '--help').stdout).toMatch(/^ringwise plan --ranks N --link RATE /);
    expect(ringwise('plan', ...small, '--link', '100GB')).toEqual({
      status: 2,
      stdout: '',
      stderr:
        'ringwise plan: --link expects bits per second, as 100g, 2.5g or 800m, got 100GB. See ringwise plan --help.\n',
    });
    const absent = ringwise('plan', ...small, '--link', '10g', '--svg', 'absent/plan.svg');
    expect(absent.stderr).toMatch(/^ringwise plan: --svg: absent\/plan\.svg cannot be written: ENOENT/);
    expect(absent.status).toBe(2);
    expect(ringwise('help', 'plan').stdout).toBe('See ringwise plan --help.\n');
  });
});
