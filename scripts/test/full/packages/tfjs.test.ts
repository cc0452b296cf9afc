// Tests @ringwise/tfjs in a project outside of the repository: under the launcher, in JavaScript, and its types.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { root } from '../../support/clean-room.ts';
import { makeProject, pack, run } from '../../support/outside.ts';

let work = '';
let project = '';

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'ringwise-tfjs-'));
  project = join(work, 'project');
  makeProject(project, ['tfjs', 'launch'], (name) => pack(name, work));
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

it('trains two ranks by the program of its README as one process', () => {
  const readme = readFileSync(join(root, 'packages/tfjs/README.md'), 'utf8');
  const snippet = /```js\n([\s\S]*?)```/.exec(readme)![1]!;
  // Without shuffling, and with the same first weights, both train on the same batches.
  const layers = snippet.replaceAll(
    'units:',
    'kernelInitializer: tf.initializers.glorotUniform({ seed: 3 }), units:',
  );
  const program = layers.replace('epochs: 10', 'shuffle: false, epochs: 10');
  writeFileSync(join(project, 'train.mjs'), program);
  const lossesOf = (text: string) => /loss (.*)/.exec(text)![1]!.split(' ').map(Number);
  const alone = lossesOf(run(process.execPath, ['train.mjs'], project));
  const command = join(project, 'node_modules/.bin/ringwise');
  const together = lossesOf(
    run(command, ['run', '--standalone', '--nproc-per-node', '2', 'train.mjs'], project),
  );
  expect(together).toHaveLength(10);
  for (const [epoch, loss] of together.entries()) expect(Math.abs(loss - alone[epoch]!)).toBeLessThan(2e-4);
  expect(together.at(-1)!).toBeLessThan(together[0]!);
});

it('its types compile against those of TensorFlow.js', () => {
  const source = `import { init } from '@ringwise/collectives';
import { type DataParallel, dataParallel, shard, TfjsError } from '@ringwise/tfjs';
import * as tf from '@tensorflow/tfjs';

const group = await init();
const model = tf.sequential({ layers: [tf.layers.dense({ units: 1, inputShape: [2] })] });
model.compile({ optimizer: 'adam', loss: 'meanSquaredError' });
const parallel: DataParallel = await dataParallel(model, { group, unused: 'zero' });
const x: tf.Tensor2D = shard(tf.ones<tf.Rank.R2>([8, 2]), group);
await model.fit(x, tf.ones([x.shape[0], 1]));
// @ts-expect-error: there is no such option
await dataParallel(model, { group, bucketSize: 1 }).catch(TfjsError.is);
parallel.close();
`;
  writeFileSync(join(project, 'types.mts'), source);
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023'];
  expect(run(join(root, 'node_modules/.bin/tsc'), [...flags, 'types.mts'], project)).toBe('');
});
