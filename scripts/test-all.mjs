// `npm run test:all`: builds and runs all tests, part after part. --help lists the parts and options.
import { parseArgs } from 'node:util';
import { asynchronousOf, parts, selectionOf, strays } from './parts.mjs';
import { root, run, vitest, vitestWith } from './run.mjs';

const names = Object.keys(parts);
const help = `Usage: npm run test:all -- [--part NAME]... [--except NAME]...
Builds, then runs all parts or those that are named. Parts:
${names.map((name) => `  ${name.padEnd(12)}${parts[name]}`).join('\n')}`;

function fail(sentence) {
  console.error(`test:all: ${sentence}`);
  process.exit(2);
}

function parsed() {
  const list = { type: 'string', multiple: true, default: [] };
  try {
    return parseArgs({ options: { part: list, except: list, help: { type: 'boolean' } } }).values;
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
const lost = strays(root);
if (lost.length > 0) fail(`${lost.join(', ')}: in no part. Move it into test/full/PART.`);

const chosen = names.filter(
  (name) => (options.part.length === 0 || options.part.includes(name)) && !options.except.includes(name),
);

async function runPart(name) {
  const { projects, filters } = selectionOf(name);
  const checked = name === 'quick' ? await run('npm', 'run', '-s', 'check') : 0;
  const code = checked || (await vitest(projects, ...filters));
  const again = asynchronousOf(name);
  if (again === null) return code;
  console.log(`\n== ${name}, with RINGWISE_SOFTWARE_GPU=${again.env.RINGWISE_SOFTWARE_GPU}`);
  return (await vitestWith(again.env, again.projects, ...again.filters)) || code;
}

for (const step of ['setup', 'build', 'build:tests']) {
  const code = await run('npm', 'run', '-s', step);
  if (code !== 0) process.exit(code);
}
const lines = [];
for (const name of chosen) {
  const begun = performance.now();
  console.log(`\n== ${name}: ${parts[name]}`);
  const code = await runPart(name);
  const seconds = Math.round((performance.now() - begun) / 1000);
  lines.push(`${code === 0 ? 'passed' : 'FAILED'}  ${name.padEnd(12)}${String(seconds).padStart(5)} s`);
  if (code !== 0) process.exitCode = 1;
}
console.log(`\n${lines.join('\n')}`);
