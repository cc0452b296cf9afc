// native/sim's program: built where it is not up to date, and what it prints.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** What is printed when a simulation begins. */
export interface Begun {
  readonly verb: string;
  readonly algorithm: string;
  readonly ranks: number;
  readonly hosts: number;
  readonly bytes: number;
  /** About as many. */
  readonly expectedMessages: number;
}

/** What came out. */
export interface Row extends Omit<Begun, 'expectedMessages'> {
  readonly timeUs: number;
  /** Where there is a formula for these ranks and bytes. */
  readonly formulaUs?: number;
  readonly messages: number;
  /** Of the port between a host and the network that carries most, in one direction. */
  readonly linkBytesMax: number;
  readonly linkBytesTotal: number;
  readonly insideBytesMax: number;
  readonly insideBytesTotal: number;
  /** The library would choose this algorithm. */
  readonly isChosen: boolean;
  readonly checked: 'data' | 'messages';
}

/** What was not simulated, and why. */
export interface Skipped extends Omit<Begun, 'expectedMessages'> {
  readonly skipped: string;
}

/** It cannot be built, or has failed; it has said why on stderr, unless there is a message. */
export class ProgramFailed extends Error {
  readonly exitCode: number;
  constructor(exitCode: number, message = '') {
    super(message);
    this.exitCode = exitCode;
  }
}

function cmake(args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync('cmake', args, { encoding: 'utf8' });
  if (error) throw new ProgramFailed(1, `cmake: ${error.message}. Install CMake and a C++ compiler`);
  if (status !== 0) throw new ProgramFailed(1, `cmake ${args.join(' ')} failed\n${stdout}${stderr}`);
}

/** Builds it and returns its path. In the folder of the addons, where that exists: it has compiled the same library. */
function build(): string {
  const native = fileURLToPath(new URL('../../native', import.meta.url));
  const isBuilt = existsSync(`${native}/build/CMakeCache.txt`);
  const folder = `${native}/${isBuilt ? 'build' : 'build-tests'}`;
  if (!isBuilt) cmake(['-S', native, '-B', folder, '-DRINGWISE_TESTS=ON']); // takes a minute or two
  cmake(['--build', folder, '--target', 'simulate', '--parallel', '2']);
  return `${folder}/sim/simulate`;
}

/** Runs it, and ends it with this process. Throws ProgramFailed. */
export async function* simulate(args: readonly string[]): AsyncGenerator<Begun | Row | Skipped> {
  const child = spawn(build(), args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  const end = () => void child.kill();
  process.once('exit', end);
  try {
    for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line);
    const code = await closed;
    if (code !== 0) throw new ProgramFailed(code ?? 1);
  } finally {
    process.off('exit', end);
    end();
  }
}
