// Loads a Llama checkpoint in the layout of Hugging Face, compares its scores with PyTorch's, and trains it a little.
//
//   npx tsx examples/llama/main.ts                     the tiny checkpoint beside this file, which make_tiny.py wrote
//   … --steps 30                                       training steps
//
// The folder tiny has config.json, model.safetensors (random weights, bfloat16), and what PyTorch 2.13 computed from
// them in float32.
//
// Claim: the scores are PyTorch's within 1e-4; the model continues tokens as PyTorch does, with keys and values kept
// from token to token; and its loss on a repeated pattern falls below half.
import { fileURLToPath } from 'node:url';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, noGrad, scope, type Tensor, tensor } from '@ringwise/tensor';
import { AdamW } from '@ringwise/tensor/optim';
import { loadSafetensors } from '@ringwise/tensor/safetensors';
import { readOptions, whole } from '../options.ts';
import { type Llama, loadLlama } from './model.ts';

const args = readOptions(import.meta.url, { steps: { type: 'string', default: '30' } });
const steps = whole('--steps', args.steps);
const folder = fileURLToPath(new URL('tiny', import.meta.url));
const model = await loadLlama(folder);
const { tokens, logits, generated } = await loadSafetensors(`${folder}/reference.safetensors`);
const parameters = model.parameters().reduce((sum, { count }) => sum + count, 0);
console.log(`${parameters} parameters, ${model.config.num_hidden_layers} layers`);

const gap = noGrad(() => scope(() => model.forward(tokens!).sub(logits!).abs().max().item()));
console.log(`scores differ from PyTorch's by ${gap.toExponential(1)}`);
if (!(gap < 1e-4)) throw new Error(`expected PyTorch's scores, got others by ${gap}`);

/** Continues `prompt` to `count` tokens, each the most probable one. */
function continued(own: Llama, prompt: readonly number[], count: number): number[] {
  const all = [...prompt];
  return noGrad(() =>
    scope(() => {
      let [scores, seen] = own.continued(tensor([all], { dtype: 'int64' }), null);
      while (all.length < count) {
        const next = scores.at(0, -1).argmax().item();
        all.push(next);
        [scores, seen] = own.continued(tensor([[next]], { dtype: 'int64' }), seen);
      }
      return all;
    }),
  );
}

const numbersOf = (row: Tensor): number[] => Array.from(row.contiguous().dataSync(), Number);
const theirs = numbersOf(generated!.at(0));
const ours = continued(model, numbersOf(tokens!.at(0)), theirs.length);
console.log(`continues with ${ours.slice(tokens!.shape[1]!).join(' ')}`);
if (ours.join() !== theirs.join()) throw new Error(`PyTorch continues to ${theirs.join(' ')}`);

const pattern = Array.from({ length: 33 }, (_, i) => (i * i) % 12);
const optimizer = new AdamW(model.parameters(), { lr: 3e-3 });
const losses: number[] = [];
for (let step = 0; step < steps; step++) {
  scope(() => {
    const own = tensor([pattern], { dtype: 'int64' });
    const scores = model.forward(own.at(':', [0, -1])).reshape([-1, model.config.vocab_size]);
    const loss = crossEntropy(scores, own.at(0, [1, pattern.length]));
    losses.push(loss.item());
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    reportMetrics({ step, steps, loss: losses[step]!, samples: 1 });
  });
}
const [before, after] = [losses[0]!, losses.at(-1)!];
console.log(`loss ${before.toFixed(3)} to ${after.toFixed(3)} in ${steps} steps`);
if (!(after < before / 2)) throw new Error(`expected a loss below ${before / 2}, got ${after}`);
