// Commands that other packages provide: `ringwise bench` is the module @ringwise/collectives/bench. A package
// is looked up when its command is called, so that this package depends on none of them. The command gets the
// launcher's functions as an argument; both sides declare the types themselves.

import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { notInstalled } from '../errors.ts';
import { runScript } from './run.ts';
import { defaultSignals, oneHost, toTerminal, unwatched } from './run-options.ts';

/** Functions of the launcher that a command may call. */
export interface Launcher {
  /**
   * Runs a .js file on `nprocPerNode` ranks (a number, auto, cpu, gpu) of this host. Resolves with the exit
   * code. The ranks print to this process's stdout and stderr, and so does the report of a failure.
   */
  readonly runRanks: (nprocPerNode: string, file: string, args: readonly string[]) => Promise<number>;
}

/** Exports of a command's module. */
interface PackageCommand {
  readonly command: (argv: readonly string[], launcher: Launcher) => Promise<number>;
}

/**
 * Runs `ringwise <name>` and resolves with its exit code. Rejects with ERR_LAUNCH_NOT_INSTALLED without the
 * package.
 */
export async function runPackageCommand(
  name: string,
  packageName: string,
  argv: readonly string[],
): Promise<number> {
  const title = `ringwise ${name}`;
  const found = await loadPackageModule<PackageCommand>(name, packageName);
  if (found === null) throw notInstalled(title, packageName);
  return await found.command(argv, {
    runRanks: (nprocPerNode, script, scriptArgs) =>
      runScript(title, {
        script,
        scriptArgs,
        isProgram: false,
        nprocPerNode,
        role: 'default',
        meeting: oneHost,
        runId: undefined,
        elastic: null,
        maxRestarts: 0,
        graceMs: 30_000,
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

/** Resolves with the module `name` of a package, or null if it is not installed or has no such module. */
export async function loadPackageModule<Module>(name: string, packageName: string): Promise<Module | null> {
  const file = find(`${packageName}/${name}`);
  return file === null ? null : ((await import(pathToFileURL(file).href)) as Module);
}

/**
 * Finds a module from the user's project, or else from the package whose command was called (possibly the
 * umbrella).
 */
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
