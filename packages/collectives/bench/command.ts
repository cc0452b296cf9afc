// `ringwise bench`, in a module that the launcher loads by name. It parses the arguments and lets the
// launcher start the ranks, which run bench/rank.ts. Under another launcher the same program takes the same
// arguments:
//
//   srun node node_modules/@ringwise/collectives/dist/bench-rank.js all-reduce --json
import { fileURLToPath } from 'node:url';
import { builtFile } from '../src/package-files.ts';
import { checkSavable, readBaseline } from './baseline.ts';
import { help } from './help.ts';
import { BenchError, parseBench, UsageError } from './options.ts';

/** Functions of the launcher: runs a script on ranks of this host and returns the exit code. */
export interface Launcher {
  readonly runRanks: (nprocPerNode: string, file: string, args: readonly string[]) => Promise<number>;
}

const program = fileURLToPath(builtFile('bench-rank.js'));

/**
 * Runs the command. Returns its exit code: 0, 2 for a wrong argument, or that of the rank that failed first.
 */
export async function command(argv: readonly string[], launcher: Launcher): Promise<number> {
  try {
    const options = parseBench(argv);
    if (options !== 'help' && options.compare !== undefined) readBaseline(options.compare);
    if (options !== 'help' && options.save !== undefined) checkSavable(options.save);
    if (options !== 'help' && options.tune) {
      throw new UsageError(
        'ringwise bench: --tune measures between hosts, and this command starts ranks on one. Start bench-rank.js on ' +
          'several hosts, by ringwise run or another launcher: docs/performance.md#rules-of-your-own.',
      );
    }
    if (options !== 'help') return await launcher.runRanks(options.nprocPerNode, program, argv);
    process.stdout.write(help());
    return 0;
  } catch (error) {
    if (!(error instanceof BenchError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}
