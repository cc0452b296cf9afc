// `node scripts/cross-build.mjs TARGET…`: builds the native binaries of other platforms, and those of releases.
import { parseArgs } from 'node:util';
import { crossBuild, packagesOf } from './cross/build.mjs';
import { targets } from './cross/targets.mjs';

const names = Object.keys(targets);
const help = `Usage: node scripts/cross-build.mjs [OPTION]... TARGET...
Builds the native binaries of each TARGET with zig, checks them, and copies them into native/npm/FAMILY-TARGET.
  all              all targets
${names.map((name) => `  ${name.padEnd(17)}${targets[name].families.join(', ')}`).join('\n')}
Options:
  --family NAME  builds only this family; repeat it for several
  --jobs N       compiles N files at once; default: the number of cores
  --list         prints the targets that releases have packages for, one a line
  --help         prints this help
Environment:
  RINGWISE_ZIG   path of a zig 0.11.0; default: the one of npm, downloaded once into node_modules/.cache
  RINGWISE_CUDA  ON embeds the CUDA kernels in the tensor addons of targets with glibc, which needs nvcc
  RINGWISE_CUDA_ARCHITECTURES  the kernels' compute capabilities; default: 80;90;100;120
Each target has a build folder of its own, native/build-TARGET. Exit codes: 0 all built and checked, 1 a build or a
check failed, 2 wrong arguments.`;

function fail(sentence) {
  console.error(`cross-build: ${sentence} See node scripts/cross-build.mjs --help.`);
  process.exit(2);
}

function parsed() {
  const flag = { type: 'boolean', default: false };
  const options = { family: { type: 'string', multiple: true, default: [] }, jobs: { type: 'string' } };
  try {
    return parseArgs({ options: { ...options, list: flag, help: flag }, allowPositionals: true });
  } catch (error) {
    return fail(error.message.split('\n')[0]);
  }
}

const { values, positionals } = parsed();
if (values.help || values.list) {
  const isReleased = (name) => packagesOf(name, targets[name].families).length > 0;
  console.log(values.help ? help : names.filter(isReleased).join('\n'));
  process.exit(0);
}
const chosen = new Set(
  positionals.flatMap((word) => {
    if (word === 'all') return names;
    return names.includes(word)
      ? [word]
      : fail(`there is no target "${word}"; expected ${names.join(', ')}.`);
  }),
);
if (chosen.size === 0) fail('no target is named.');
const jobs = values.jobs === undefined ? undefined : Number(values.jobs);
if (jobs !== undefined && !(Number.isInteger(jobs) && jobs > 0))
  fail(`--jobs is ${values.jobs}; expected a number of at least 1.`);
const families = new Set(Object.values(targets).flatMap((target) => target.families));
for (const family of values.family)
  if (!families.has(family)) fail(`there is no family "${family}"; expected ${[...families].join(', ')}.`);

/** Shows steps on one line of a terminal; elsewhere, about one of fifty. */
function progressOf(name) {
  let shown = 0;
  return (step) => {
    const done = Number(/\d+/.exec(step)[0]);
    if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${step} `);
    else if (done >= shown + 50) console.error(`${name}: ${step}`);
    if (done >= shown + 50 || done < shown) shown = done;
  };
}

for (const name of chosen) {
  const target = targets[name];
  const wanted = target.families.filter(
    (family) => values.family.length === 0 || values.family.includes(family),
  );
  if (wanted.length === 0) fail(`${name} has no ${values.family.join(', ')}.`);
  const begun = performance.now();
  try {
    console.error(`${name}: ${wanted.join(', ')}`);
    const staged = await crossBuild(name, target, { families: wanted, jobs, progress: progressOf(name) });
    if (process.stderr.isTTY) process.stderr.write('\r');
    const seconds = Math.round((performance.now() - begun) / 1000);
    console.log(
      `${name}: built and checked in ${seconds} s\n${staged.map((path) => `  ${path}`).join('\n')}`,
    );
  } catch (error) {
    console.error(`cross-build: ${name}: ${error.message}`);
    process.exitCode = 1;
  }
}
