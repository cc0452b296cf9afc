// The command. Importing this file runs it, with the arguments of the process. Each command loads its own modules, as
// they are what a start costs.

import { readFileSync } from 'node:fs';
import { LaunchError, unknownWord } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { manifest } from '../package-files.ts';
import { mainHelp } from './help.ts';
import { flushOutput } from './terminal.ts';

const [command, ...argv] = process.argv.slice(2);

// Signals that arrive before the ranks exist end the command by their default action; after that, run() has them.
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
      return await (await import('./companion.ts')).runCompanion(command, '@ringwise/collectives', argv);
    case 'doctor':
      return await (await import('../doctor/doctor.ts')).doctor(argv);
    case undefined:
      process.stderr.write(mainHelp);
      return 2;
    default:
      throw unknownWord(
        'ringwise',
        'command',
        command,
        nearest(command, ['run', 'bench', 'doctor', 'flight', '--help', '--version']),
      );
  }
}

/** A sentence for what the user can change, exit code 2 if nothing but an argument is wrong; the rest is a bug. */
function explained(error: unknown): number {
  if (!LaunchError.isInstance(error)) throw error;
  process.stderr.write(`${error.message}\n`);
  return ['ERR_LAUNCH_ARGUMENT', 'ERR_LAUNCH_SCRIPT'].includes(error.code) ? 2 : 1;
}

function version(): string {
  const text = readFileSync(manifest, 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
