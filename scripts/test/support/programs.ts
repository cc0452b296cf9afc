// Programs that tests of installed packages run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './clean-room.ts';

const blockOf = (path: string, block: RegExp): string =>
  block.exec(readFileSync(join(root, path), 'utf8'))![1]!;

/** The README's first program of the package `ringwise`: two ranks add numbers. */
export const hello = blockOf('packages/ringwise/README.md', /```js\n([\s\S]*?)```/);

/** The first program of the repository's README: ranks train a classifier. */
export const training = blockOf('README.md', /```js\n(\/\/ train\.mjs[\s\S]*?)```/);

/** What `hello` and the two programs below print on two ranks. */
export const helloAnswer = ['[0] rank 0 of 2: the sum is 3', '[1] rank 1 of 2: the sum is 3'];

export const twoRanks = ['run', '--nproc-per-node', '2'] as const;

export const typescript = `import { init } from 'ringwise/collectives';
const group = await init();
const x: Float32Array = Float32Array.of(group.rank + 1);
await group.allReduce(x);
console.log(\`rank \${group.rank} of \${group.size}: the sum is \${x[0]}\`);
await group.close();
`;

export const commonJs = `const { init } = require('ringwise/collectives');
init().then(async (group) => {
  const x = Float32Array.of(group.rank + 1);
  await group.allReduce(x);
  console.log(\`rank \${group.rank} of \${group.size}: the sum is \${x[0]}\`);
  await group.close();
});
`;

/** Imports every entry of the umbrella package, and uses one layer. Prints "1x3". */
export const everyEntry = `import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
const manifest = JSON.parse(readFileSync(createRequire(import.meta.url).resolve('ringwise/package.json')));
for (const path of Object.keys(manifest.exports)) {
  if (path.endsWith('.json')) continue;
  if (Object.keys(await import('ringwise' + path.slice(1))).length === 0) throw new Error(path + ' has no exports');
}
const { tensor } = await import('ringwise/tensor');
const { Linear } = await import('ringwise/tensor/nn');
console.log(new Linear(2, 3).forward(tensor([[1, 2]])).shape.join('x'));
`;

/** Starts ranks by spawn() and worker threads by a loader, each from a module of its own. Prints "30,30 0,1,2,3". */
export const starters: Readonly<Record<string, string>> = {
  'starters.mjs': `import { DataLoader, loadDataset } from 'ringwise/data';
import { spawn } from 'ringwise/launch';
const sums = await spawn(new URL('./rank.mjs', import.meta.url), { nprocs: 2, args: [10] });
const dataset = await loadDataset(new URL('./numbers.mjs', import.meta.url));
const loader = new DataLoader(dataset, { batchSize: 2, numWorkers: 2 });
const numbers = [];
for await (const batch of loader) numbers.push(...batch);
await loader[Symbol.asyncDispose]();
console.log(sums.join(), numbers.join());
`,
  'rank.mjs': `import { init } from 'ringwise/collectives';
export default async (rank, factor) => {
  const group = await init();
  const x = Float32Array.of(rank + 1);
  await group.allReduce(x);
  await group.close();
  return x[0] * factor;
};
`,
  'numbers.mjs': `export default () => ({ length: 4, get: (index) => index });
export const collate = (samples) => Int32Array.from(samples);
`,
};

/** Returns the lines of an output, sorted, because ranks print in any order. */
export const sortedLines = (text: string): string[] => text.split('\n').filter(Boolean).toSorted();
