// Folders of a job's files, as in torchrun: <log dir>/<run>_<random>/attempt_<n>/<local rank>/, with
// stdout.log, stderr.log and error.json. Without a log dir, error files of programs other than Node.js go to
// a temporary folder.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { makeFolder } from '@ringwise/store';
import { openLifeLine } from '../agent/life-line.ts';
import type { OutputOptions, Stream } from '../cli/run-options.ts';
import { badArgument, noLogDir, noTemporaryFolder } from '../errors.ts';
import { ERROR_FILE } from './error-file.ts';
import type { RankStreams } from './output.ts';
import { removeTemporary } from './temporary-folder.ts';

const errorFile = 'error.json';

export interface LogFiles {
  /**
   * Creates the folder of a local rank for the given round. Returns the rank's files. If the folder cannot be created,
   * such as on a full disk, prints a warning and returns no files, so that the output is shown.
   */
  readonly forRank: (round: number, localRank: number, warn: (text: string) => void) => RankFiles;
  /** Removes temporary folders. */
  readonly close: () => void;
}

export interface RankFiles {
  readonly env?: Record<string, string>;
  readonly streams?: RankStreams;
}

export async function openLogFiles(
  options: OutputOptions,
  nproc: number,
  runId: string,
  isNode: boolean,
): Promise<LogFiles> {
  for (const flag of ['redirects', 'tee'] as const) {
    const isUsed = Array.from({ length: nproc }, (_, local) => options[flag](local)).some(
      ({ length }) => length > 0,
    );
    if (isUsed && options.logDir === undefined) throw noLogDir(`--${flag}`);
  }
  const { logDir } = options;
  const isNeeded = logDir !== undefined || !isNode;
  const root = isNeeded ? makeRoot(logDir, runId) : null;
  const temporary = root !== null && logDir === undefined ? await temporaryFolder(root) : null;
  return {
    forRank: (round, localRank, warn) => {
      const folder = root && join(root, `attempt_${round}`, `${localRank}`);
      try {
        if (folder) makeFolder(folder);
        // In an elastic job, the previous process of this slot may have left one.
        if (folder) rmSync(join(folder, errorFile), { force: true });
      } catch (error) {
        warn(`${folder}: ${(error as Error).message}; no files of this rank are written.`);
        return {};
      }
      return {
        ...(folder && { env: { [ERROR_FILE]: join(folder, errorFile) } }),
        streams: streamsFor(options, localRank, folder),
      };
    },
    close: () => temporary?.remove(),
  };
}

/** Creates a folder that is removed when this process ends, even after SIGKILL. */
async function temporaryFolder(folder: string): Promise<{ readonly remove: () => void }> {
  const remove = () => removeTemporary(folder);
  try {
    const lifeLine = await openLifeLine(folder);
    return {
      remove: () => {
        remove();
        lifeLine.close();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

function makeRoot(logDir: string | undefined, runId: string): string {
  const parent = logDir === undefined ? tmpdir() : resolve(logDir);
  try {
    makeFolder(parent);
    return mkdtempSync(join(parent, `${runId.replaceAll('/', '_')}_`));
  } catch (cause) {
    if (logDir === undefined) throw noTemporaryFolder(parent, cause);
    throw badArgument('ringwise run', '--log-dir', 'a folder where it may write', logDir, cause);
  }
}

function streamsFor(options: OutputOptions, localRank: number, folder: string | null): RankStreams {
  const redirected = options.redirects(localRank);
  const doubled = options.tee(localRank);
  const isListed = options.localRanks === null || options.localRanks.has(localRank);
  const target = (stream: Stream) => ({
    file:
      folder && (redirected.includes(stream) || doubled.includes(stream))
        ? join(folder, `${stream}.log`)
        : null,
    isShown: isListed && (doubled.includes(stream) || !redirected.includes(stream)),
  });
  return { stdout: target('stdout'), stderr: target('stderr') };
}
