// `npm run release:dry-run`: rehearses a release on this machine and publishes nothing. --help describes it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../run.mjs';
import { childrenOf } from './dry-run/children.mjs';
import { missingBinaries } from './dry-run/missing.mjs';
import { nodeOf } from './dry-run/nodes.mjs';
import { rowsOf, tableOf } from './dry-run/table.mjs';
import { publishedPackages, withoutPackages } from './packages.mjs';

const help = `Usage: npm run release:dry-run -- [OPTION]...
Rehearses a release: builds, packs all packages, runs the gates, publishes to a registry on the loopback interface, and
installs from there with npm, pnpm, Yarn and Yarn Plug'n'Play into empty projects without a compiler. Two ranks run
there on several versions of Node.js, in bundled programs, and in processes that take themselves for other platforms.
Ends with a table of what passed. Nothing is published elsewhere.
Options:
  --nodes LIST      major versions of Node.js, from npm packages, beside the one that runs this [20,22,24,26]
  --require-all     refuses if a compiled package lacks a file, and if a binary needs a glibc newer than that of
                    release.config.json. Without it, other platforms' packages may be empty, and are named
  --without PREFIX  leaves out the packages whose names begin so; repeat it for several
  --no-build        packs what is built, without installing dependencies and building
  -h, --help        prints this help
Exit codes: 0 all passed, 1 something failed or was refused, 2 wrong arguments, 130 interrupted; nothing is left behind.`;

function fail(code, sentence) {
  console.error(`release:dry-run: ${sentence}`);
  process.exit(code);
}

function parsed() {
  const flag = { type: 'boolean', default: false };
  const options = {
    nodes: { type: 'string', default: '20,22,24,26' },
    without: { type: 'string', multiple: true, default: [] },
    'require-all': flag,
    'no-build': flag,
    help: { ...flag, short: 'h' },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return fail(2, `${error.message.split('\n')[0]} See npm run release:dry-run -- --help.`);
  }
}

const options = parsed();
if (options.help) {
  console.log(help);
  process.exit(0);
}
const majors = options.nodes.split(',').filter(Boolean);
const wrong = majors.find((major) => !/^\d+$/.test(major) || Number(major) < 20);
if (wrong !== undefined)
  fail(2, `--nodes has "${wrong}"; expected major versions from 20 on, such as 20,22,24,26.`);
const { kept, faults: strays } = withoutPackages(publishedPackages(root), options.without);
if (strays.length > 0) fail(2, strays.join(' '));

// All that the commands write into the system's temporary folder lies in this one.
const work = mkdtempSync(join(tmpdir(), 'ringwise-dry-run-'));
process.once('exit', () => rmSync(work, { recursive: true, force: true, maxRetries: 5 }));
const { run, interrupt } = childrenOf({ TMPDIR: work, TMP: work, TEMP: work });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, async () => {
    console.error('\nrelease:dry-run: interrupted; removing what it has made.');
    await interrupt();
    process.exit(130);
  });

const begun = performance.now();
const step = (text) => {
  const seconds = Math.round((performance.now() - begun) / 1000);
  console.log(`release:dry-run: ${String(seconds).padStart(4)} s  ${text}`);
};
async function must(what, command, args) {
  const code = await run(command, args);
  if (code !== 0) fail(1, `${what} failed: ${[command, ...args].join(' ')} ended with ${code}.`);
}

try {
  if (!options['no-build']) {
    step('installing the dependencies of the repository');
    await must('The installation', 'npm', ['run', '-s', 'setup']);
    step('building; the first time this takes minutes');
    await must('The build', 'npm', ['run', '-s', 'build']);
  }
  const missing = missingBinaries(kept, root);
  if (missing.length > 0 && options['require-all']) fail(1, `refused, because of\n  ${missing.join('\n  ')}`);
  for (const sentence of missing) step(`not built here: ${sentence}`);
  if (missing.length > 0) step('these packages are published without the files; --require-all refuses that');

  const nodes = [];
  for (const major of majors) {
    step(`Node ${major} from npm`);
    nodes.push(await nodeOf(major, run));
  }
  step('packing');
  await must('Packing', process.execPath, ['scripts/release/dry-run/pack.mjs', work, ...options.without]);
  step('gates, publishing, installing, running; each test has a line');
  const report = join(work, 'report.json');
  const reporters = ['--reporter=verbose', '--reporter=json', `--outputFile.json=${report}`];
  const chosen = ['run', '--project', 'scripts-full', 'test/full/packages/'];
  const code = await run(process.execPath, ['node_modules/vitest/vitest.mjs', ...chosen, ...reporters], {
    RINGWISE_TEST_NODES: nodes.join(':'),
    RINGWISE_TEST_PACKED: work,
    RINGWISE_TEST_STRICT: options['require-all'] ? '1' : '',
  });
  console.log(`\n${tableOf(rowsOf(JSON.parse(readFileSync(report, 'utf8'))))}\n`);
  step(code === 0 ? 'all passed' : 'FAILED; the tests above say what');
  process.exitCode = code;
} catch (error) {
  fail(1, error.message);
}
