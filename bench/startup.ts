// Measures how long it takes until ranks can work: from the start of the command to the end of the first barrier.
//
//   npx tsx bench/startup.ts [--ranks 2] [--times 11] [--typescript]
//
// Prints one JSON line with medians in ms. The four programs take turns:
//   plain   one `node script`, whose group has one rank
//   ranks   `ringwise run` with the same script, until the last rank has printed
//   agent   the command alone, with a program that does nothing
//   floor   a bare node that starts as many plain nodes and does nothing else, which no launcher in JavaScript can beat
// The goal is 1.3 × plain + 100. With --typescript the script is a TypeScript file; `plain` then runs with
// `node --import tsx` if this version of Node needs that. NODE_EXTRA_CA_CERTS is removed: with it, Node.js 20 reads
// the certificates in a file at each start, for 30 ms.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { median } from './median.ts';

delete process.env.NODE_EXTRA_CA_CERTS;

const { values } = parseArgs({
  options: {
    ranks: { type: 'string', default: '2' },
    times: { type: 'string', default: '11' },
    typescript: { type: 'boolean', default: false },
  },
});
const ranks = Number(values.ranks);
const times = Number(values.times);
const command = fileURLToPath(new URL('../packages/ringwise/bin/ringwise.js', import.meta.url));
const needsTsx = values.typescript && !(process.features as { typescript?: unknown }).typescript;
const tsx = needsTsx ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : [];

const folder = mkdtempSync(join(tmpdir(), 'ringwise-startup-'));
const script = join(folder, values.typescript ? 'script.mts' : 'script.mjs');
writeFileSync(
  script,
  `import { init } from '${import.meta.resolve('@ringwise/collectives')}';
   const group = await init();
   await group.barrier();
   console.log('ready');
   await group.close();`,
);

const starter = join(folder, 'starter.mjs');
writeFileSync(
  starter,
  `import { spawn } from 'node:child_process';
   const argv = ${JSON.stringify([...tsx, script])};
   for (let i = 0; i < ${ranks}; i++) spawn(process.execPath, argv, { stdio: 'inherit' });`,
);

/** Returns the ms until the program has printed 'ready' `readies` times, or, if `readies` is 0, until it has ended. */
async function timeOf(argv: readonly string[], readies: number): Promise<number> {
  const startMs = performance.now();
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  let said = '';
  let readyMs = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (readyMs === 0 && said.split('ready').length - 1 === readies) readyMs = performance.now() - startMs;
  });
  const [exitCode] = (await ended) as [number];
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: exit code ${exitCode}`);
  return readies > 0 ? readyMs : performance.now() - startMs;
}

try {
  const plain: number[] = [];
  const launched: number[] = [];
  const agent: number[] = [];
  const floor: number[] = [];
  for (let i = 0; i < times; i++) {
    plain.push(await timeOf([...tsx, script], 1));
    launched.push(await timeOf([command, 'run', '--nproc-per-node', `${ranks}`, script], ranks));
    floor.push(await timeOf([starter], ranks));
    agent.push(await timeOf([command, 'run', '--no-python', 'true'], 0));
  }
  const [plainMs, ranksMs, agentMs] = [median(plain), median(launched), median(agent)];
  const floorMs = median(floor);
  const goalMs = 1.3 * plainMs + 100;
  const line = {
    bench: 'startup',
    ranks,
    script: script.slice(-3),
    plainMs,
    ranksMs,
    agentMs,
    floorMs,
    goalMs,
  };
  console.log(
    JSON.stringify({ ...line, ok: ranksMs <= goalMs }, (_, value) =>
      typeof value === 'number' ? Math.round(value) : value,
    ),
  );
} finally {
  rmSync(folder, { recursive: true });
}
