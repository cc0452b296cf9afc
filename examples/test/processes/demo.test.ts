import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../../scripts/demo.mjs', import.meta.url));

interface Demo {
  readonly child: ChildProcess;
  readonly out: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
  /** A variable NAME=VALUE that only the processes of this demo have in their environment. */
  readonly mark: string;
}

const demos: Demo[] = [];

afterEach(() => {
  for (const demo of demos.splice(0)) for (const pid of processesOf(demo)) process.kill(pid, 'SIGKILL');
});

/** Starts the demo as a shell does: as the leader of its own process group. */
function startDemo(...args: string[]): Demo {
  const mark = `RINGWISE_DEMO_TEST=${randomUUID()}`;
  const [name, value] = mark.split('=') as [string, string];
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...process.env, [name]: value },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const out = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      out[stream] += text;
    });
  }
  const demo: Demo = {
    child,
    out,
    mark,
    exitCode: once(child, 'close').then(([code]) => code as number | null),
  };
  demos.push(demo);
  return demo;
}

function processesOf({ mark }: Demo): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
    } catch {
      return false; // the process has just ended
    }
  });
}

/** Waits until the demo prints a loss, so that training is running. */
async function untilItTrains({ out }: Demo): Promise<void> {
  await expect.poll(() => out.stderr).toMatch(/^1 rank {3}epoch 1\/.* loss /m);
}

/** Waits until no process of the demo is left: killed processes may take a moment to disappear. */
async function untilAllHaveEnded(demo: Demo): Promise<void> {
  await expect.poll(() => processesOf(demo)).toEqual([]);
}

describe('the demo', () => {
  it('trains on one rank and on two, and compares losses and times', async () => {
    const demo = startDemo('--json', '--digits', '1024', '--batch', '64');
    expect(await demo.exitCode).toBe(0);
    expect(demo.out.stdout).toMatch(/^\{.*\}\n$/);
    const { runs, ratio, difference } = JSON.parse(demo.out.stdout) as Record<string, unknown>;
    const [one, two] = runs as { ranks: number; seconds: number; loss: number; first: number }[];
    const rest = { first: expect.any(Number) as number, inSync: true, samples: 3 * 1024 };
    expect(one).toEqual({ ranks: 1, seconds: expect.any(Number), loss: expect.any(Number), ...rest });
    expect(two).toEqual({ ranks: 2, seconds: expect.any(Number), loss: expect.any(Number), ...rest });
    expect(ratio).toBe(one!.seconds / two!.seconds);
    expect(difference).toBe(Math.abs(two!.loss - one!.loss) / one!.loss);
    expect(difference).toBeLessThan(1e-3);
    expect(two!.loss).toBeLessThan(two!.first);
    expect(demo.out.stderr).toMatch(/^1 rank {3}starting\n1 rank {3}epoch 1\/3 {2}loss /);
    expect(demo.out.stderr).toContain('2 ranks  epoch 3/3  loss ');
    expect(demo.out.stderr).toMatch(
      /\nTwo ranks are .* times as fast as one, measured just now on \d+ cores?\./,
    );
    await untilAllHaveEnded(demo);
  });

  it('refuses an option that the example does not have', async () => {
    const demo = startDemo('--foo');
    expect(await demo.exitCode).toBe(2);
    expect(demo.out.stderr).toContain("demo.ts: Unknown option '--foo'. See --help.\n");
  });

  it.each([
    ['Ctrl-C', 'SIGINT', 130],
    ['SIGTERM to the demo alone', 'SIGTERM', 143],
  ] as const)('leaves no process behind after %s', async (_, signal, code) => {
    const demo = startDemo('--json', '--epochs', '1000', '--digits', '256', '--batch', '64');
    await untilItTrains(demo);
    expect(processesOf(demo).length).toBeGreaterThanOrEqual(3); // itself, the launcher, a rank
    // Ctrl-C in a terminal signals the whole process group.
    process.kill(signal === 'SIGINT' ? -demo.child.pid! : demo.child.pid!, signal);
    expect(await demo.exitCode).toBe(code);
    await untilAllHaveEnded(demo);
    expect(demo.out.stdout).toBe('');
    expect(demo.out.stderr).toContain(`ringwise: stopped by ${signal}.\n`);
  });
});
