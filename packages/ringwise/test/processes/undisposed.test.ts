// Runs a loop over a data loader whose steps dispose of no tensor. Memory must stay bounded: the loader lets the event
// loop run, and there the garbage collector's callbacks free unreachable tensors.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = `
  import { ArrayDataset, DataLoader } from '@ringwise/data';
  import { crossEntropy, fromHost, memory, tensor } from '@ringwise/tensor';
  import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
  import { SGD } from '@ringwise/tensor/optim';
  let warnings = 0;
  process.on('warning', () => warnings++);
  const model = new Sequential(new Linear(64, 128), new ReLU(), new Linear(128, 4));
  const optimizer = new SGD(model.parameters(), { lr: 0.01 });
  const count = 32_000;
  const rows = new ArrayDataset({
    x: { data: new Float32Array(64 * count), shape: [64] },
    y: { data: new Int32Array(count), shape: [] },
  });
  const dataset = {
    length: 32 * 48_000,
    get: (index) => rows.get(index % count),
    getBatch: (indices) => rows.getBatch(indices.map((index) => index % count)),
  };
  let most = 0;
  for await (const { x, y } of new DataLoader(dataset, { batchSize: 32 })) {
    const loss = crossEntropy(model.forward(fromHost(x.data, x.shape)), tensor(y.data));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    most = Math.max(most, memory().tensors);
  }
  console.log(JSON.stringify({ most, warnings }));`;

test('holds only a part of the tensors that it made', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    timeout: 240_000,
  });
  const { most, warnings } = JSON.parse(stdout) as { readonly most: number; readonly warnings: number };
  // If the loader did not yield to the event loop, 3 tensors for each of 48,000 steps, 144,000, would be alive. About
  // 30,000 are, which depends on when the garbage collector runs.
  expect(most).toBeLessThan(96_000);
  expect(warnings).toBe(0);
});
