// Commands that another package brings: `ringwise bench` is the module @ringwise/collectives/bench. Such a package is
// looked for when its command is called, so that this one depends on none of them. The command gets what only the
// launcher can do; the two sides agree by shape.

import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { notInstalled } from '../errors.ts';
import { runScript } from './run.ts';
import { defaultSignals, oneHost, toTerminal, unwatched } from './run-options.ts';

/** What the command may ask for. */
export interface Launcher {
  /**
   * Runs a .js file on `nprocPerNode` ranks (a number, auto, cpu, gpu) of this host and returns the exit code. The
   * ranks print to this process's stdout and stderr; a failure has been explained there.
   */
  readonly runRanks: (nprocPerNode: string, file: string, args: readonly string[]) => Promise<number>;
}

/** What its module exports. */
interface Companion {
  readonly command: (argv: readonly string[], launcher: Launcher) => Promise<number>;
}

/** Runs `ringwise <name>` and returns its exit code; throws ERR_LAUNCH_NOT_INSTALLED without the package. */
export async function runCompanion(
  name: string,
  packageName: string,
  argv: readonly string[],
): Promise<number> {
  const title = `ringwise ${name}`;
  const companion = await loadCompanion<Companion>(name, packageName);
  if (companion === null) throw notInstalled(title, packageName);
  return await companion.command(argv, {
    runRanks: (nprocPerNode, script, scriptArgs) =>
      runScript(title, {
        script,
        scriptArgs,
        isProgram: false,
        nprocPerNode,
        role: 'default',
        meeting: oneHost,
        runId: undefined,
        maxRestarts: 0,
        shutdownTimeoutMs: 30_000,
        signals: defaultSignals,
        output: toTerminal,
        live: unwatched,
        isDryRun: false,
        binding: null,
        isLocalRankVirtual: false,
      }),
  });
}

/** The module `name` of a package; null where that is not installed or has no such module. */
export async function loadCompanion<Module>(name: string, packageName: string): Promise<Module | null> {
  const file = find(`${packageName}/${name}`);
  return file === null ? null : ((await import(pathToFileURL(file).href)) as Module);
}

/** First the user's project, then the package whose command was called, which may be the umbrella. */
function find(module: string): string | null {
  for (const base of [join(process.cwd(), 'package.json'), realpathSync(process.argv[1]!)]) {
    try {
      return createRequire(base).resolve(module);
    } catch {
      // Not there.
    }
  }
  return null;
}
