// `npm run demo`: trains examples/demo.ts on one rank, then on two, and compares the times. Passes its arguments to
// the example:
//   npm run demo -- --epochs 10
//   npm run demo -- --json      prints one JSON line at the end
import { availableParallelism, loadavg } from 'node:os';
import { comparison } from './demo/comparison.mjs';
import { Progress } from './demo/progress.mjs';
import { train } from './demo/train.mjs';

const args = process.argv.slice(2);
if (args.includes('--help') || args.includes('-h')) {
  console.log('npm run demo [-- --epochs 3 --batch 256 --digits 8192 --json]\n');
  console.log('Trains a digit classifier on one rank, then on two, and compares the times.');
  process.exit();
}
const isJson = args.includes('--json');
const show = isJson ? process.stderr : process.stdout;

const runs = [];
for (const ranks of [1, 2]) {
  const progress = new Progress(show, ranks === 1 ? '1 rank ' : `${ranks} ranks`);
  const run = await train(ranks, args, (step) => progress.show(step));
  progress.end();
  if (run.code !== 0) process.exit(run.code);
  runs.push(run.summary);
}

const { lines, ratio, difference, isEqual } = comparison(runs, {
  cores: availableParallelism(),
  load: loadavg()[0],
});
show.write(`${lines.join('\n')}\n`);
if (isJson) console.log(JSON.stringify({ runs, ratio, difference }));
process.exit(isEqual ? 0 : 1);
