// Runs `ringwise bench` as a user does: launcher, ranks, the host backend and the output.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { command } from '../support/command.ts';

function bench(...args: string[]) {
  const argv = [command, 'bench', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, {
    encoding: 'utf8',
    timeout: 240_000,
  });
  return { status, stdout, stderr };
}

describe('ringwise bench', () => {
  it('prints a line of JSON for each size, all verified', () => {
    const flags = ['--nproc-per-node', '2', '--json', '--max', '64K', '--factor', '16', '--seconds', '0.01'];
    const { status, stdout, stderr } = bench('all-reduce', ...flags);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ bytes }) => bytes)).toEqual([4, 64, 1024, 16_384]);
    for (const line of lines) {
      expect(line).toMatchObject({ op: 'all-reduce', backend: 'host', world: 2, dtype: 'float32', wrong: 0 });
      for (const key of ['iters', 'p50Us', 'algbwGBs', 'busbwGBs']) expect(line[key]).toBeGreaterThan(0);
      // With 2 ranks, each link carries as many bytes as the vector has, so both bandwidths are equal.
      expect(line.busbwGBs).toBe(line.algbwGBs);
      // Five significant digits are printed: rounding moves each of the two numbers by at most 0.005 %.
      expect(Math.abs((line.algbwGBs * line.p50Us * 1000) / line.bytes - 1)).toBeLessThan(0.00011);
    }
  });

  it('prints a table without marks of the ranks', () => {
    const { status, stdout, stderr } = bench('all_gather', '--max', '64', '--async', '--seconds', '0.01');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [title, names, units, ...rows] = stdout.trimEnd().split('\n');
    expect(title).toBe('# ringwise bench all-gather: 2 ranks, backend host, async form, out of place');
    expect(names).toMatch(/^ +size +count +type +redop +time +algbw +busbw +wrong +iters$/);
    expect(units).toMatch(/^ +\(B\) +\(elements\) +\(us\) +\(GB\/s\) +\(GB\/s\) *$/);
    expect(rows.pop()).toMatch(/^# mean busbw [\d.]+ GB\/s$/);
    expect(rows.map((row) => row.trim().split(/ +/).slice(0, 4))).toEqual([
      ['8', '2', 'float32', 'none'],
      ['16', '4', 'float32', 'none'],
      ['64', '16', 'float32', 'none'],
    ]);
  });

  it('explains itself, and a wrong argument', () => {
    const { status, stdout, stderr } = bench('--help');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^ringwise bench verb \[flags\]\n/);
    expect(bench('all-redcue')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^ringwise bench: unknown verb all-redcue; expected one of all-reduce, /),
    });
  });

  it('reports an error of its ranks by its message, without a stack', () => {
    const { status, stderr } = bench('all-reduce', '--backend', 'foo');
    expect(stderr).toMatch(
      /^ringwise: rank \d of 2 failed \(exit code 1\) after [\d.]+ s\.\n {2}CollectiveError: init: no backend named 'foo'; expected .*\n {2}pid .*\n {2}rank \d reported ERR_COLL_INIT\n$/,
    );
    expect(status).toBe(1);
    const tooLong = bench('all-reduce', '--min', '90000G', '--max', '90000G');
    expect(tooLong.stderr).toContain('Error: ringwise bench: no array of 96636764160000 bytes can be made: ');
    expect(tooLong.stderr).not.toMatch(/^ +at /m);
  });

  it('refuses --tune, because it starts ranks on one host', () => {
    expect(bench('all-reduce', '--tune')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^ringwise bench: --tune measures between hosts, and this command starts ranks on one\./,
      ),
    });
  });

  it('prints such an error under a launcher that does not report it', () => {
    const rank = fileURLToPath(new URL('bench-rank.js', import.meta.resolve('@ringwise/collectives')));
    const { RANK, WORLD_SIZE, ...env } = process.env;
    const argv = [rank, 'all-reduce', '--backend', 'foo'];
    const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8', env });
    expect(stderr).toMatch(/^init: no backend named 'foo'; expected .*\n$/);
    expect(status).toBe(1);
  });

  it('ends at Ctrl-C', async () => {
    const argv = [command, 'bench', 'all-reduce', '--seconds', '60'];
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([130, null]);
    expect(stderr).toBe('ringwise: stopped by SIGINT.\n');
  });
});
