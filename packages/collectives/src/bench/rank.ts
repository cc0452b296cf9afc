// The program of every rank of `ringwise bench`. Running this file runs it, with the arguments of the process. Rank 0
// prints. It ends with exit code 1 if an answer was wrong.
import { init } from '../init.ts';
import { parseBench } from './options.ts';
import { reporter } from './report.ts';
import { type Row, run } from './run.ts';

const options = parseBench(process.argv.slice(2));
if (options === 'help') throw new Error('bench: --help is for the command, not for a rank.');
const group = await init(options.backend === undefined ? {} : { backend: options.backend });
const { head, row: line, foot } = reporter(options, group);
const prints = group.rank === 0;

// As in `ringwise bench … | head`: nobody reads on, so all ranks end.
let hasReader = true;
process.stdout.on('error', () => {
  hasReader = false;
});

function progress(text: string): void {
  if (prints && process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

const rows: Row[] = [];
if (prints) process.stdout.write(head);
progress('measuring …');
for await (const row of run(group, options, () => hasReader)) {
  rows.push(row);
  progress('');
  if (prints) process.stdout.write(line(row));
  progress(`measuring … ${rows.length} sizes done`);
}
progress('');
await group.close();

const wrong = rows.reduce((sum, row) => sum + row.wrong, 0);
if (prints) {
  process.stdout.write(foot(rows));
  if (wrong > 0) throw new Error(`bench: ${options.verb.name} gave ${wrong} wrong elements; expected none.`);
}
