// `npm run test:all`: builds and runs all tests, part after part. --help lists the parts and options.
import { parseArgs } from 'node:util';
import { asynchronousOf, parts, selectionOf, strays } from './parts.mjs';
import { endCommandsAt, root, run } from './run.mjs';
import { vitest } from './vitest.mjs';

const names = Object.keys(parts);
const help = `Usage: npm run test:all -- [--part NAME]... [--except NAME]... [--minutes M]
Builds, then runs all parts or those that are named. With --minutes, ends M minutes after its start: the part that still
runs is cut short, and those that have not begun are left out. Neither counts as a failure, and the last lines name them.
Parts:
${names.map((name) => `  ${name.padEnd(12)}${parts[name]}`).join('\n')}`;

function fail(sentence) {
  console.error(`test:all: ${sentence}`);
  process.exit(2);
}

function parsed() {
  const list = { type: 'string', multiple: true, default: [] };
  try {
    return parseArgs({
      options: { part: list, except: list, minutes: { type: 'string' }, help: { type: 'boolean' } },
    }).values;
  } catch (error) {
    return fail(`${error.message.split('\n')[0]} See npm run test:all -- --help.`);
  }
}

const options = parsed();
if (options.help) {
  console.log(help);
  process.exit(0);
}
for (const name of [...options.part, ...options.except]) {
  if (!names.includes(name)) fail(`there is no part "${name}"; expected one of ${names.join(', ')}.`);
}
const minutes = Number(options.minutes ?? Number.POSITIVE_INFINITY);
if (!(minutes > 0)) fail(`--minutes: expected a number > 0, got ${options.minutes}.`);
const endMs = performance.now() + minutes * 60_000;
const lost = strays(root);
if (lost.length > 0) fail(`${lost.join(', ')}: in no part. Move it into test/full/PART.`);

const chosen = names.filter(
  (name) => (options.part.length === 0 || options.part.includes(name)) && !options.except.includes(name),
);

async function runPart(name) {
  const { projects, filters } = selectionOf(name);
  const checked = name === 'quick' ? await run('npm', 'run', '-s', 'check') : 0;
  const code = checked || (await vitest(projects, filters));
  const again = asynchronousOf(name);
  if (again === null) return code;
  console.log(`\n== ${name}, with RINGWISE_SOFTWARE_GPU=${again.env.RINGWISE_SOFTWARE_GPU}`);
  return (await vitest(again.projects, again.filters, { env: again.env })) || code;
}

for (const step of ['setup', 'build', 'build:tests']) {
  const code = await run('npm', 'run', '-s', step);
  if (code !== 0) process.exit(code);
}
endCommandsAt(endMs);
const lines = [];
for (const name of chosen) {
  const begun = performance.now();
  if (begun >= endMs) {
    lines.push(`left out  ${name}`);
    continue;
  }
  console.log(`\n== ${name}: ${parts[name]}`);
  const code = await runPart(name);
  const seconds = Math.round((performance.now() - begun) / 1000);
  const isCut = code !== 0 && performance.now() >= endMs;
  const word = code === 0 ? 'passed' : isCut ? 'cut short' : 'FAILED';
  lines.push(`${word.padEnd(10)}${name.padEnd(12)}${String(seconds).padStart(5)} s`);
  if (code !== 0 && !isCut) process.exitCode = 1;
}
console.log(`\n${lines.join('\n')}`);
