// The `ringwise` command. Importing this file runs it with the arguments of the process. Each command imports
// its modules only when it is called, because loading them dominates the start-up time.

import { existsSync, readFileSync } from 'node:fs';
import { LaunchError, noWorkingDirectory, unknownWord } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { manifest } from '../package-files.ts';
import { commands } from './commands.ts';
import { mainHelp } from './help.ts';
import { styled } from './style.ts';
import { flushOutput, isClosed, onOutputError } from './terminal.ts';

const [command, ...argv] = process.argv.slice(2);

// A reader that closes the pipe, as in `ringwise --help | head -1`, is no error. Other errors lose output.
let lostOutput: string | null = null;
onOutputError((error, what) => {
  if (!isClosed(error)) lostOutput = what;
});
// Before the ranks exist, signals end the command by their default action. Later run() handles them.
const exitCode = await main().catch(explained);
await flushOutput();
if (lostOutput === null || exitCode !== 0) process.exit(exitCode);
process.stderr.write(`ringwise: ${lostOutput as string}\n`);
process.exit(1);

async function main(): Promise<number> {
  checkWorkingDirectory();
  switch (command) {
    case 'run':
      return await (await import('./run.ts')).run(argv);
    case 'help':
      return await help(argv);
    case '--help':
    case '-h':
      process.stdout.write(mainHelp('stdout'));
      return 0;
    case '--version':
    case '-v':
    case '-V':
      process.stdout.write(`${version()}\n`);
      return 0;
    case 'bench':
    case 'flight':
    case 'plan':
      return await (await import('./package-command.ts')).runPackageCommand(
        command,
        '@ringwise/collectives',
        argv,
      );
    case 'doctor':
      return await (await import('../doctor/doctor.ts')).doctor(argv);
    case 'completion':
      return (await import('./completion.ts')).completion(argv);
    case undefined:
      process.stderr.write(mainHelp('stderr'));
      return 2;
    default:
      if (isRun(command)) return await (await import('./run.ts')).run(process.argv.slice(2));
      throw unknownWord('ringwise', 'command', command, nearest(command, commandNames()));
  }
}

/** Throws if the working directory has gone: commands resolve paths in it, and ranks start there. */
function checkWorkingDirectory(): void {
  try {
    process.cwd();
  } catch {
    throw noWorkingDirectory();
  }
}

function commandNames(): string[] {
  return [...commands.map(({ name }) => name), '--help', '--version'];
}

/** Runs `ringwise help [command]`. */
async function help([about]: readonly string[]): Promise<number> {
  if (about === undefined || about === 'help' || about.startsWith('-')) {
    process.stdout.write(mainHelp('stdout'));
    return 0;
  }
  if (about === 'run') return await (await import('./run.ts')).run(['--help']);
  if (about === 'completion') return (await import('./completion.ts')).completion(['--help']);
  if (commands.some(({ name }) => name === about)) {
    process.stdout.write(`See ringwise ${about} --help.\n`);
    return 0;
  }
  throw unknownWord('ringwise', 'command', about, nearest(about, commandNames()));
}

/**
 * Returns whether the first word belongs to `run`, as in `ringwise train.ts` or `ringwise --nnodes 2 train.ts`: any
 * flag, even an unknown one, and any word that is a file or looks like one.
 */
function isRun(word: string): boolean {
  return word.startsWith('-') || /[./\\]/.test(word) || existsSync(word);
}

/**
 * Prints the message of a LaunchError, which the user can act on, and returns its exit code: 2 for wrong
 * arguments and missing scripts, else 1. Throws any other error, which is a bug.
 */
function explained(error: unknown): number {
  if (!LaunchError.isInstance(error)) throw error;
  process.stderr.write(`${styled('stderr', 'red', error.message)}\n`);
  return ['ERR_LAUNCH_ARGUMENT', 'ERR_LAUNCH_SCRIPT'].includes(error.code) ? 2 : 1;
}

function version(): string {
  const text = readFileSync(manifest, 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
