// The program of every rank of `ringwise bench`, with the arguments of the process. Rank 0 prints the output.
// The exit code is 1 if an answer was wrong.
import type { EventEmitter } from 'node:events';
import { algorithmsOf } from '../src/backends/host.ts';
import { CollectiveError } from '../src/errors.ts';
import { init } from '../src/init/init.ts';
import {
  checkComparable,
  comparisonLines,
  isRegression,
  readBaseline,
  saveBaseline,
  tolerance,
} from './baseline.ts';
import { BenchError, parseBench } from './options.ts';
import { type RelativeRow, runRelative, settingOf } from './relative.ts';
import { reporter } from './report.ts';
import { type Row, run, sizesOf } from './run.ts';
import { tune, tunedTable } from './tune.ts';

const parsed = parseBench(process.argv.slice(2));
if (parsed === 'help') throw new Error('bench: --help is for the command, not for a rank.');
const options = parsed;
const group = await init(options.backend === undefined ? {} : { backend: options.backend }).catch(explained);
const { head, row: line, foot } = reporter(options, group);
const prints = group.rank === 0;

// If the output is no longer read, as in `ringwise bench … | head`, all ranks end.
let hasReader = true;
process.stdout.on('error', () => {
  hasReader = false;
});

function progress(text: string): void {
  if (prints && process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

async function measureSizes(): Promise<number> {
  const rows: Row[] = [];
  if (prints) process.stdout.write(head);
  for await (const row of run(group, options, () => hasReader)) {
    rows.push(row);
    progress('');
    if (prints) process.stdout.write(line(row));
    progress(`measuring … ${rows.length} sizes done`);
  }
  progress('');
  if (prints) process.stdout.write(foot(rows));
  return rows.reduce((sum, row) => sum + row.wrong, 0);
}

/** Measures relative to the machine's limits. Returns the number of wrong elements, and the sizes that are slower. */
async function measureRelative(): Promise<{ wrong: number; slower: string[] }> {
  const setting = settingOf(group, options);
  const baseline = prints && options.compare !== undefined ? readBaseline(options.compare) : null;
  if (baseline) checkComparable(baseline, setting, sizesOf(options, group.size));
  const rows: RelativeRow[] = [];
  if (prints) process.stdout.write(head);
  for await (const row of runRelative(group, options, baseline, () => hasReader)) {
    rows.push(row);
    progress('');
    if (prints) process.stdout.write(line(row));
    progress(`measuring … ${rows.length} sizes done`);
  }
  progress('');
  const wrong = rows.reduce((sum, row) => sum + row.wrong, 0);
  if (!prints) return { wrong, slower: [] };
  process.stdout.write(foot(rows));
  const kept = rows.map(({ bytes, ratio, p50Us, limitUs }) => ({ bytes, ratio, p50Us, limitUs }));
  if (baseline && !options.json) process.stdout.write(`${comparisonLines(baseline, rows).join('\n')}\n`);
  if (options.save !== undefined && wrong === 0 && hasReader) saveBaseline(options.save, setting, kept);
  const slower = baseline ? rows.filter((row) => isRegression(baseline, row)) : [];
  return { wrong, slower: slower.map(({ bytes }) => `${bytes} bytes`) };
}

async function measureAlgorithms(): Promise<number> {
  const tuned = await tune(group, options, algorithmsOf(options.verb.verb));
  progress('');
  const command = `ringwise bench ${process.argv.slice(2).join(' ')}`;
  if (prints) process.stdout.write(options.json ? `${JSON.stringify(tuned)}\n` : tunedTable(tuned, command));
  return tuned.wrong;
}

progress('measuring …');
const isRelative = options.save !== undefined || options.compare !== undefined;

async function measureAll(): Promise<void> {
  const { wrong, slower } = isRelative
    ? await measureRelative()
    : { wrong: options.tune ? await measureAlgorithms() : await measureSizes(), slower: [] };
  await group.close();
  if (prints && wrong > 0)
    throw new BenchError(`bench: ${options.verb.name} gave ${wrong} wrong elements; expected none.`);
  if (slower.length > 0) {
    const what = `${options.verb.name} became more than ${100 * tolerance} % slower than in ${options.compare}`;
    throw new BenchError(`bench: ${what}, relative to the machine's limits, at ${slower.join(', ')}.`);
  }
}

/**
 * Ends this rank with an error whose message says all. The launcher reports it as any uncaught error, by its message;
 * under a launcher that reports no errors, this rank prints the message. Throws any other error.
 */
async function explained(error: unknown): Promise<never> {
  if (!(error instanceof BenchError || CollectiveError.is(error))) throw error;
  Object.defineProperty(error, 'stack', { value: '' });
  const isReported = process.listenerCount('uncaughtExceptionMonitor') > 0;
  (process as EventEmitter).emit('uncaughtExceptionMonitor', error, 'uncaughtException');
  if (!isReported) process.stderr.write(`${error.message}\n`);
  for (const stream of [process.stdout, process.stderr])
    await new Promise<void>((resolve) => stream.write('', () => resolve()));
  process.exit(1);
}

await measureAll().catch(explained);
