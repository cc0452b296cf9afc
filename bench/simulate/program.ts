// Builds the program of native/sim if it is not up to date, runs it, and parses what it prints.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The line that the program prints when a simulation begins. */
export interface Begun {
  readonly verb: string;
  readonly algorithm: string;
  readonly ranks: number;
  readonly hosts: number;
  readonly bytes: number;
  /** Estimated number of messages. */
  readonly expectedMessages: number;
}

/** The result of a simulation. */
export interface Row extends Omit<Begun, 'expectedMessages'> {
  readonly timeUs: number;
  /** Time by the formula, if there is one for these ranks and bytes. */
  readonly formulaUs?: number;
  readonly messages: number;
  /** Bytes in one direction through the busiest port between a host and the network. */
  readonly linkBytesMax: number;
  readonly linkBytesTotal: number;
  readonly insideBytesMax: number;
  readonly insideBytesTotal: number;
  /** True if the library would choose this algorithm. */
  readonly isChosen: boolean;
  readonly checked: 'data' | 'messages';
}

/** A case that was not simulated; `skipped` says why. */
export interface Skipped extends Omit<Begun, 'expectedMessages'> {
  readonly skipped: string;
}

/** Says that the program could not be built or has failed. If `message` is empty, the reason is on stderr. */
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

/** Builds the program and returns its path. Uses the addons' build folder if it exists: it has the library compiled. */
function build(): string {
  const native = fileURLToPath(new URL('../../native', import.meta.url));
  const isBuilt = existsSync(`${native}/build/CMakeCache.txt`);
  const folder = `${native}/${isBuilt ? 'build' : 'build-tests'}`;
  if (!isBuilt) cmake(['-S', native, '-B', folder, '-DRINGWISE_TESTS=ON']); // takes a minute or two
  cmake(['--build', folder, '--target', 'simulate', '--parallel', '2']);
  return `${folder}/sim/simulate`;
}

/** Runs the program and yields the lines that it prints. Kills it when this process exits. Throws ProgramFailed. */
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
