// Times a training step of GPT-2 (124M parameters, the model of examples/gpt2) with bfloat16 autocast on cuda:0: eager,
// and captured by compile(). Prints one JSON array to standard output, as bench.mjs does; torch_gpt2.py uses the same
// names. `rate` is in thousands of tokens per second.
//   node --import tsx tools/gpu/bench-gpt2.mjs [--small]
import { Gpt2 } from '../../examples/gpt2/model.ts';
import {
  autocast,
  compile,
  manualSeed,
  memory,
  randint,
  scope,
  synchronize,
} from '../../packages/tensor/dist/index.js';
import { AdamW } from '../../packages/tensor/dist/optim/index.js';
import { device, isSmall, medianOf, microseconds, rows, size } from './bench-common.mjs';

const [layers, heads, width, context, vocab] = size([12, 12, 768, 1024, 50304], [1, 2, 32, 16, 64]);
const batch = size(16, 2);
manualSeed(1);
const model = new Gpt2({ layers, heads, width, context, vocab, dropout: 0 }).to(device);
const optimizer = new AdamW(model.parameters(), { lr: 6e-4, betas: [0.9, 0.95], weightDecay: 0.1 });
const x = randint(0, vocab, [batch, context], { device });
const y = randint(0, vocab, [batch, context], { device });

function step() {
  const loss = autocast({ dtype: 'bfloat16' }, () => model.loss(x, y));
  optimizer.zeroGrad();
  loss.backward();
  optimizer.step();
  return loss.detach();
}

/** Adds a row with the microseconds per step: the median of 5 batches of 4 steps. */
function time(name, run) {
  let loss = Number.NaN;
  const calls = size(4, 1);
  const once = () =>
    microseconds(() => {
      for (let i = 0; i < calls; i++) scope(() => void run());
      synchronize(device);
    }) / calls;
  once();
  const us = medianOf(size(5, 1), once);
  scope(() => (loss = run().item()));
  if (!Number.isFinite(loss)) throw new Error(`${name}: the loss is ${loss}`);
  rows.push(isSmall ? { name } : { name, us, unit: 'k tokens/s', rate: (batch * context * 1000) / us });
  process.stderr.write(
    `${name}: loss ${loss.toFixed(3)}, ${(memory(device).reservedBytes / 2 ** 30).toFixed(1)} GiB\n`,
  );
}

time('GPT-2 124M step, 16 x 1024, bfloat16 autocast, eager', step);
const captured = compile(step, { device });
for (let i = 0; i < 3; i++) scope(() => void captured());
time('GPT-2 124M step, 16 x 1024, bfloat16 autocast, captured', captured);
process.stdout.write(JSON.stringify(rows));
