// Runs bench/simulate.ts as a user does, with few ranks. It builds the simulator in the folder of the C++
// tests.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-simulate-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const argv = ['--import', 'tsx', 'bench/simulate.ts'];
function simulate(...args: string[]) {
  const options = { cwd: root, encoding: 'utf8', timeout: 800_000 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...argv, ...args], options);
  return { status, stdout, stderr };
}

/** Returns the rows that the simulator prints. */
function rowsOf(...args: string[]) {
  const { status, stdout, stderr } = simulate('--json', ...args);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Returns the names of all elements, after checking that they are nested and closed as XML demands. */
function elementsOf(xml: string): string[] {
  const names: string[] = [];
  const open: string[] = [];
  const rest = xml.replaceAll(
    /<(\/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<>]*")*) ?(\/?)>/g,
    (_, end, name, __, empty) => {
      if (end) expect(open.pop()).toBe(name);
      else names.push(name);
      if (!end && !empty) open.push(name);
      return '';
    },
  );
  expect(open).toEqual([]);
  expect(rest).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
  return names;
}

/**
 * Tells whether the process runs. A zombie has ended, even if its parent has not asked for its status yet.
 */
function isRunning(pid: string): boolean {
  try {
    return !readFileSync(`/proc/${pid}/status`, 'utf8').includes('State:\tZ');
  } catch {
    return false;
  }
}

describe('bench/simulate', () => {
  it('simulates all algorithms, agrees with the formulas, checks data, and draws', () => {
    const svg = join(folder, 'plot.svg');
    const rows = rowsOf('--ranks', '2,4,7,16', '--bytes', '1024,1048576', '--svg', svg);
    expect(rows).toHaveLength(4 * 2 * 6);
    expect(new Set(rows.map((row) => row.checked))).toEqual(new Set(['data']));
    const withFormula = rows.filter((row) => row.formulaUs !== undefined);
    expect(withFormula.length).toBeGreaterThan(30);
    for (const row of withFormula) expect(row.timeUs / row.formulaUs).toBeCloseTo(1, 7);
    const ring = rows.find((row) => row.algorithm === 'ring' && row.ranks === 16 && row.bytes === 1 << 20);
    expect(ring).toMatchObject({
      messages: 2 * 15 * 16,
      linkBytesMax: (2 * 15 * (1 << 20)) / 16,
      linkBytesTotal: 2 * 15 * (1 << 20),
    });
    const elements = elementsOf(readFileSync(svg, 'utf8'));
    expect(elements[0]).toBe('svg');
    // A mark for every row, and one per algorithm in the legend.
    expect(elements.filter((name) => name === 'circle')).toHaveLength(rows.length + 6);
  });

  it('knows every verb, ranks that share hosts, pods and handshakes', () => {
    for (const verb of [
      'broadcast',
      'allGather',
      'reduceScatter',
      'reduce',
      'gather',
      'scatter',
      'allToAll',
    ]) {
      const rows = rowsOf('--verb', verb, '--ranks', '8', '--bytes', '4096');
      for (const row of rows) {
        expect(row).toMatchObject({ verb, ranks: 8, hosts: 8, bytes: 4096, checked: 'data' });
        expect(row.timeUs / row.formulaUs).toBeCloseTo(1, 7);
      }
    }
    const few = ['--ranks', '16', '--bytes', '1048576', '--algorithms', 'two-shot,hierarchical'];
    const [flat, hierarchical] = rowsOf(...few, '--per-host', '4');
    expect(flat).toMatchObject({ hosts: 4, checked: 'data' });
    expect(flat.linkBytesMax).toBe(4 * hierarchical.linkBytesMax);
    const [free] = rowsOf(...few);
    const [narrow] = rowsOf(...few, '--pod-hosts', '4', '--pod-gbit', '10');
    expect(narrow.timeUs).toBeGreaterThan(2 * free.timeUs);
    const [shaken] = rowsOf(...few, '--handshakes');
    expect(shaken.messages).toBe(free.messages + 15 * 16);
    expect(shaken.formulaUs).toBeUndefined();
  });

  it('says what it leaves out, and what the library would choose', () => {
    const ranks = ['--ranks', '64', '--bytes', '1024', '--algorithms', 'one-shot,recursive-doubling'];
    const { status, stdout } = simulate(...ranks, '--max-messages', '4000', '--check-ranks', '32');
    expect(status).toBe(0);
    const [, leftOut, row] = stdout.split('\n');
    expect(leftOut).toMatch(/^ +64 +1K +one-shot +left out: 0\.00403 M messages, 63 peers per rank$/);
    expect(row).toMatch(/^ +64 +1K +recursive-doubling.* 384 +6K +384K +0 +messages$/);
    const [choice] = rowsOf('--ranks', '16', '--bytes', '1048576', '--chosen');
    expect(choice).toMatchObject({ verb: 'allReduce', ranks: 16, hosts: 16, bytes: 1 << 20 });
    expect(choice.bestUs).toBeLessThanOrEqual(choice.chosenUs);
    expect(simulate('--verb', 'allGather', '--ranks', '512', '--bytes', '1024').stdout).toMatch(
      / bruck +left out: less than one element per rank\n$/,
    );
  });

  it('explains itself, and wrong options', () => {
    const { status, stdout, stderr } = simulate('--help');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^npx tsx bench\/simulate\.ts \[options\]\n/);
    const wrong = {
      '--ranks=1': '--ranks: expected whole numbers separated by commas, 2 or more, got "1"',
      '--gbit=fast': '--gbit: expected a number, 0.001 or more, got "fast"',
      '--verb=allRedcue': '--verb: expected one of allReduce, broadcast, ',
      '--algorithms=rnig': '--algorithms: expected all, or some of two-shot, ',
      '--frob': "Unknown option '--frob'. See --help",
    };
    for (const [option, sentence] of Object.entries(wrong)) {
      const answer = simulate(option);
      expect({ ...answer, stderr: answer.stderr.slice(0, sentence.length + 10) }).toEqual({
        status: 2,
        stdout: '',
        stderr: expect.stringContaining(`simulate: ${sentence}`.slice(0, sentence.length + 10)),
      });
    }
  });

  it('ends at Ctrl-C with all that it started', async () => {
    const long = [
      '--ranks',
      '16384',
      '--bytes',
      '4194304',
      '--algorithms',
      'halving-doubling,ring',
      '--json',
    ];
    const child = spawn(process.execPath, [...argv, ...long], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data'); // the first row is printed, so the simulator now runs the ring
    const started = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ');
    expect(started.filter(isRunning)).not.toEqual([]);
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([130, null]);
    await vi.waitFor(() => {
      expect(started.filter(isRunning)).toEqual([]);
    });
  });
});
