// `ringwise bench`: the module that the launcher looks for. It reads the arguments and has the launcher start the ranks;
// what they do is in bench/rank.ts. Under another launcher the same program takes the same arguments:
//
//   srun node node_modules/@ringwise/collectives/dist/bench-rank.js all-reduce --json
import { fileURLToPath } from 'node:url';
import { builtFile } from '../src/package-files.ts';
import { help } from './help.ts';
import { parseBench, UsageError } from './options.ts';

/** What the launcher can do: run a script on the ranks of this host, and tell the exit code. */
export interface Launcher {
  readonly runRanks: (nprocPerNode: string, file: string, args: readonly string[]) => Promise<number>;
}

const program = fileURLToPath(builtFile('bench-rank.js'));

/** Runs the command and returns its exit code: 0, 2 for a wrong argument, or that of the rank that failed first. */
export async function command(argv: readonly string[], launcher: Launcher): Promise<number> {
  try {
    const options = parseBench(argv);
    if (options !== 'help') return await launcher.runRanks(options.nprocPerNode, program, argv);
    process.stdout.write(help());
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}
