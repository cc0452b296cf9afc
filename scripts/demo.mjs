// `npm run demo`: trains examples/mnist-ddp.ts on two ranks and draws its progress. Passes its arguments to
// the example:
//   npm run demo -- --data DIR      MNIST's files instead of generated digits
//   npm run demo -- --json          prints one JSON line at the end
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const command = path('../packages/ringwise/bin/ringwise.js');
const example = path('../examples/mnist-ddp.ts');
const isJson = process.argv.includes('--json');
const ranks = 2;

const launcher = spawn(
  process.execPath,
  [command, 'run', '--standalone', '--nproc-per-node', String(ranks), example, ...process.argv.slice(2)],
  // npm runs scripts from the root, but relative paths of the user start at the folder in which npm was called.
  { cwd: process.env.INIT_CWD ?? process.cwd(), stdio: ['ignore', 'pipe', 'inherit'] },
);

// Ctrl-C also reaches the launcher, which stops the ranks. This process then exits with the launcher's exit code.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => launcher.kill('SIGTERM'));

const show = isJson ? process.stderr : process.stdout;
const width = 30;

function bar(epoch, epochs, step, steps, loss) {
  const done = ((epoch - 1) * steps + step) / (epochs * steps);
  const filled = '█'.repeat(Math.round(done * width)).padEnd(width, '░');
  return `${filled} ${String(Math.round(done * 100)).padStart(3)} %  epoch ${epoch}/${epochs}  loss ${loss}`;
}

show.write(`Training a digit classifier on ${ranks} ranks …\n`);
for await (const line of createInterface({ input: launcher.stdout })) {
  const text = line.replace(/^\[\d+\] /, '');
  const progress = /^epoch (\d+)\/(\d+) {2}step (\d+)\/(\d+) {2}loss ([\d.]+)$/.exec(text);
  if (progress && show.isTTY) show.write(`\r${bar(...progress.slice(1, 5).map(Number), progress[5])}`);
  else if (progress) show.write(`${text}\n`);
  else if (text.startsWith('{')) process.stdout.write(`${text}\n`);
  else show.write(`${show.isTTY ? '\n' : ''}${text}\n`);
}

const [code, signal] = await new Promise((resolve) => {
  if (launcher.exitCode !== null || launcher.signalCode !== null)
    resolve([launcher.exitCode, launcher.signalCode]);
  else launcher.once('exit', (...how) => resolve(how));
});
process.exit(signal ? 1 : code);
