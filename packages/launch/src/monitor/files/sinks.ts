// All report files of one job. If a file can no longer be written, prints a warning and drops it; the job
// continues.

import type { LiveOptions } from '../../cli/run-options.ts';
import { badArgument } from '../../errors.ts';
import { jsonLinesSink } from './json-lines.ts';
import type { Report, Sink } from './sink.ts';
import { tensorboardSink } from './tensorboard.ts';

/**
 * Opens the report files. Throws ERR_LAUNCH_ARGUMENT if one cannot be opened. Members of the result never
 * throw.
 */
export function openSinks(
  { metricsFile, tensorboardDir }: Pick<LiveOptions, 'metricsFile' | 'tensorboardDir'>,
  say: (text: string) => void,
): Sink {
  const sinks: { readonly flag: string; readonly sink: Sink }[] = [];
  const open = (flag: string, path: string | null, make: (path: string) => Sink) => {
    if (path === null) return;
    try {
      sinks.push({ flag, sink: make(path) });
    } catch (cause) {
      throw badArgument('ringwise run', flag, 'a path where it may write', path, cause);
    }
  };
  open('--metrics', metricsFile, jsonLinesSink);
  open('--tensorboard', tensorboardDir, tensorboardSink);

  function each(act: (sink: Sink) => void): void {
    for (const entry of [...sinks]) {
      try {
        act(entry.sink);
      } catch (error) {
        sinks.splice(sinks.indexOf(entry), 1);
        say(`${entry.flag}: ${(error as Error).message}; no more is written there.`);
      }
    }
  }

  return {
    add: (report: Report) => each((sink) => sink.add(report)),
    flush: () => each((sink) => sink.flush()),
    close: () => each((sink) => sink.close()),
  };
}
