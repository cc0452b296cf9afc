// Trains GPT-2 from scratch on token files: uint16, as nanoGPT's prepare.py writes train.bin and val.bin.
//
//   npx tsx examples/gpt2/main.ts --train train.bin --val val.bin --out DIR                 124M parameters
//   npx ringwise run --nproc-per-node 2 examples/gpt2/main.ts --ddp --train … --val … --out DIR
//   … --layers 2 --heads 2 --width 64 --context 32 --vocab 256 --batch 4 --steps 50         a small model
//
// If DIR has a checkpoint, the run continues from it. --accumulate is the number of batches per step of all ranks
// together; each rank takes its share, rounded down, at least one batch. Claim: the loss on val.bin is lower at the end
// of the run than at its start.
import { init } from '@ringwise/collectives';
import { TokenFile } from '@ringwise/data/tokens';
import { ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { fromHost, generator, manualSeed, noGrad, randint, scope } from '@ringwise/tensor';
import { AdamW, clipGradNorm, WarmupCosineLR } from '@ringwise/tensor/optim';
import { numberFrom, readOptions, whole } from '../options.ts';
import { loadCheckpoint, saveCheckpoint } from './checkpoint.ts';
import { decayGroups, Gpt2 } from './model.ts';

const text = (value: string) => ({ type: 'string', default: value }) as const;
const args = readOptions(import.meta.url, {
  ...{ train: text('train.bin'), val: text('val.bin'), out: text('gpt2') },
  ...{ layers: text('12'), heads: text('12'), width: text('768'), context: text('1024') },
  ...{ vocab: text('50304'), dropout: text('0'), batch: text('12'), accumulate: text('40') },
  ...{ steps: text('600000'), lr: text('6e-4'), warmup: text('2000') },
  ...{ 'eval-every': text('1000'), 'eval-batches': text('20') },
  ddp: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
});
const fractions = ['dropout', 'lr']; // the others are whole
const number = (name: keyof typeof args): number =>
  fractions.includes(name)
    ? numberFrom(`--${name}`, String(args[name]), 'a number from 0 to 1', (n) => n >= 0 && n <= 1)
    : whole(`--${name}`, String(args[name]), name === 'warmup' || name === 'steps' ? 0 : 1);
const [batch, context, steps] = [number('batch'), number('context'), number('steps')];

await using group = args.ddp ? await init() : null;
const { rank, size } = group ?? { rank: 0, size: 1 };
const log = rank === 0 ? console.log : () => {};
using train = new TokenFile(args.train, { block: context, stride: 1 });
using val = new TokenFile(args.val, { block: context, stride: 1 });

manualSeed(1);
const model = new Gpt2({
  ...{ layers: number('layers'), heads: number('heads'), width: number('width'), context },
  ...{ vocab: number('vocab'), dropout: number('dropout') },
});
const parameters = model.parameters();
const optimizer = new AdamW(decayGroups(parameters, 0.1), { lr: number('lr'), betas: [0.9, 0.95] });
const totalSteps = Math.max(steps, number('warmup') + 1);
const schedule = new WarmupCosineLR(optimizer, { warmupSteps: number('warmup'), totalSteps });
const draws = generator(10 + rank);
const run = { model, optimizer, generator: draws };
const first = await loadCheckpoint(args.out, run);
// The checkpoint has neither the position of the schedule nor the generators of ranks other than 0.
for (let step = 0; step < first; step++) schedule.step();
if (rank > 0) draws.manualSeed(10 + rank + 1000 * first);
const wrapped = group ? await ddp(model, { group }) : null;
const accumulate = Math.max(1, Math.floor(number('accumulate') / size));
log(`${parameters.reduce((sum, { count }) => sum + count, 0)} parameters, from step ${first}, ${size} ranks`);

function lossOn(file: TokenFile, generatorOfFile: typeof draws) {
  const starts = randint(0, file.length, [batch], { generator: generatorOfFile }).dataSync();
  const { x, y } = file.getBatch(Array.from(starts, Number));
  return model.loss(fromHost(x.data, x.shape), fromHost(y.data, y.shape));
}

/** Returns the mean loss on some batches of val.bin, the same batches in every call. */
function evaluate(): number {
  model.eval();
  const batches = number('eval-batches');
  let sum = 0;
  const same = generator(5);
  for (let i = 0; i < batches; i++) sum += noGrad(() => scope(() => lossOn(val, same).item()));
  model.train();
  return sum / batches;
}

/** Adds the gradients of one batch to those of this step, and returns the batch's loss. */
const backward = (): number =>
  scope(() => {
    const loss = lossOn(train, draws);
    // Read the loss first: backward() frees the tensors from which the scaled loss was computed.
    const value = loss.item();
    loss.div(accumulate).backward();
    return value;
  });

const before = evaluate();
let after = before;
for (let step = first; step < steps; step++) {
  const begin = performance.now();
  optimizer.zeroGrad();
  let loss = 0;
  for (let i = 1; i < accumulate; i++) loss += wrapped ? wrapped.noSync(backward) : backward();
  loss += backward();
  const norm = scope(() => clipGradNorm(parameters, 1).item());
  optimizer.step();
  schedule.step();
  const tokens = accumulate * batch * context * size;
  reportMetrics({
    step: step + 1,
    loss: loss / accumulate,
    samples: accumulate * batch,
    ddp: wrapped?.statistics() ?? null,
  });
  const rate = Math.round((tokens * 1000) / (performance.now() - begin));
  log(`step ${step + 1}  loss ${(loss / accumulate).toFixed(4)}  norm ${norm.toFixed(2)}  ${rate} tokens/s`);
  if ((step + 1) % number('eval-every') === 0 || step + 1 === steps) {
    after = evaluate();
    log(`step ${step + 1}  val ${after.toFixed(4)}  (at the start ${before.toFixed(4)})`);
    if (rank === 0) await saveCheckpoint(args.out, step + 1, run);
  }
}
if (args.json) log(JSON.stringify({ first, before, after, ranks: size }));
if (first < steps && !(after < before)) throw new Error(`expected a loss below ${before}, got ${after}`);
