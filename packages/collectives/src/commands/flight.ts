// `ringwise flight`, in a module that the launcher loads by name: converts flight records to a Chrome trace.
import { readDumps, UsageError, usage } from '../flight/dump.ts';
import { traceOf } from '../flight/trace.ts';

export type { FlightDump } from '../flight/dump.ts';
export { readDumps } from '../flight/dump.ts';
export { type TraceEvent, traceOf } from '../flight/trace.ts';

const help = `ringwise flight path... > trace.json

Merges the flight records of the ranks of one run into a trace for ui.perfetto.dev or chrome://tracing: a process for
each rank, a track for each group, and arrows from the rank that an operation had to wait for to those that waited.

A path is a record, or a folder of them: the one that RINGWISE_FLIGHT_DIR named when the ranks ran. They write a
record when their group fails, and when they get SIGUSR2.

  RINGWISE_FLIGHT_DIR=flight ringwise run --nproc-per-node 2 train.ts
  kill -USR2 PID          for each rank that seems to hang
  ringwise flight flight > trace.json
`;

/** Runs the command and returns its exit code: 0, or 2 for a wrong argument. */
export async function command(argv: readonly string[]): Promise<number> {
  try {
    if (argv.includes('--help') || argv.includes('-h')) {
      process.stdout.write(help);
      return 0;
    }
    const flag = argv.find((word) => word.startsWith('-'));
    if (flag !== undefined) throw usage(`unknown flag ${flag}`);
    if (argv.length === 0) throw usage('no flight records are named');
    process.stdout.write(
      `${JSON.stringify({ displayTimeUnit: 'ns', traceEvents: traceOf(readDumps(argv)) })}\n`,
    );
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}
