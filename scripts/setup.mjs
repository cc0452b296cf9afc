// `npm run setup`: installs the dependencies with the pnpm version that package.json names. `npm test` and `npm run
// demo` start with it. pnpm's output is shown only if it fails, with a sentence that says what to do next.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { root } from './run.mjs';
import { adviceOn, isOldNode } from './setup-advice.mjs';

const { packageManager, engines } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));

function fail(sentence) {
  console.error(`ringwise: ${sentence}`);
  process.exit(1);
}

if (isOldNode(process.versions.node, engines.node))
  fail(
    `this is Node ${process.versions.node}, and the repository needs Node ${engines.node}. Install a newer Node.`,
  );

// `npm run -s` passes its log level on to npx and pnpm, which would then fail without a word.
const { npm_config_loglevel, ...env } = process.env;
const command = ['-y', packageManager, 'install', '--frozen-lockfile', '--reporter=append-only'];
if (process.stderr.isTTY) console.error('Installing dependencies …');
const child = spawn('npx', command, {
  cwd: root,
  env,
  shell: process.platform === 'win32', // npx is a script there
  stdio: ['ignore', 'pipe', 'pipe'],
});
let output = '';
for (const stream of [child.stdout, child.stderr]) {
  stream.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
}
child.once('error', (error) =>
  fail(`npx cannot be started (${error.message}). Install npm, which brings it.`),
);
child.once('close', (code, signal) => {
  if (code === 0) return;
  if (signal !== null) fail(`npx ${command.join(' ')} was ended by ${signal}.`);
  process.stderr.write(output);
  fail(
    `the dependencies could not be installed: npx ${command.join(' ')} ended with ${code}. ${adviceOn(output)}`,
  );
});
