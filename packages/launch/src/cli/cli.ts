// The `ringwise` command. Importing this file runs it with the arguments of the process. Each command imports
// its modules only when it is called, because loading them dominates the start-up time.

import { readFileSync } from 'node:fs';
import { LaunchError, unknownWord } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { manifest } from '../package-files.ts';
import { mainHelp } from './help.ts';
import { flushOutput } from './terminal.ts';

const commands = ['run', 'bench', 'doctor', 'flight', '--help', '--version'];
const [command, ...argv] = process.argv.slice(2);

// Before the ranks exist, signals end the command by their default action. Later run() handles them.
const exitCode = await main().catch(explained);
await flushOutput();
process.exit(exitCode);

async function main(): Promise<number> {
  switch (command) {
    case 'run':
      return await (await import('./run.ts')).run(argv);
    case '--help':
    case '-h':
      process.stdout.write(mainHelp);
      return 0;
    case '--version':
      process.stdout.write(`${version()}\n`);
      return 0;
    case 'bench':
    case 'flight':
      return await (await import('./package-command.ts')).runPackageCommand(
        command,
        '@ringwise/collectives',
        argv,
      );
    case 'doctor':
      return await (await import('../doctor/doctor.ts')).doctor(argv);
    case undefined:
      process.stderr.write(mainHelp);
      return 2;
    default:
      if (await isRun(command)) return await (await import('./run.ts')).run(process.argv.slice(2));
      throw unknownWord('ringwise', 'command', command, nearest(command, commands));
  }
}

/** Returns whether `run` takes the first word, as in `ringwise train.ts` or `ringwise --nnodes 2 train.ts`. */
async function isRun(word: string): Promise<boolean> {
  if (!word.startsWith('-')) return /\.([cm]?[jt]s|[jt]sx|py)$/.test(word);
  const { flags } = await import('./flags.ts');
  const [name] = word.replaceAll('_', '-').replace(/^--?/, '').split('=', 1);
  return flags.some((flag) => (word.startsWith('--') ? flag.name : flag.short) === name);
}

/**
 * Prints the message of a LaunchError, which the user can act on, and returns its exit code: 2 for wrong
 * arguments and missing scripts, else 1. Throws any other error, which is a bug.
 */
function explained(error: unknown): number {
  if (!LaunchError.isInstance(error)) throw error;
  process.stderr.write(`${error.message}\n`);
  return ['ERR_LAUNCH_ARGUMENT', 'ERR_LAUNCH_SCRIPT'].includes(error.code) ? 2 : 1;
}

function version(): string {
  const text = readFileSync(manifest, 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
