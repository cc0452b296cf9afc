// Trains a small U-Net that removes noise from pictures, and draws new pictures with it (denoising diffusion, DDPM: Ho
// et al., 2020).
//
//   npx tsx examples/diffusion.ts                      pictures of 16 × 16 pixels: rings, crosses and bars
//   … --steps 400                                      training steps
//
// Claim: the mean squared error of the predicted noise falls below 0.15, where 1 is the error of predicting none; and
// drawn pictures are less than half as far from the nearest of 1,024 held-out pictures as noise with their mean and
// variance is. (The distance is the mean squared difference of pixels.)
import { reportMetrics } from '@ringwise/launch';
import {
  arange,
  cat,
  fromHost,
  generator,
  manualSeed,
  mseLoss,
  noGrad,
  rand,
  randint,
  randn,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { Conv2d, ConvTranspose2d, GroupNorm, Linear, Module, Sequential, SiLU } from '@ringwise/tensor/nn';
import { AdamW, AveragedModel, getEmaMultiAvgFn, OneCycleLR } from '@ringwise/tensor/optim';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, { steps: { type: 'string', default: '400' } });
const steps = whole('--steps', args.steps);
const [side, times, batch, width] = [16, 60, 32, 16];

/** Draws pictures [count, 1, side, side] with values from −1 to 1: rings, crosses and bars at random places. */
function pictures(count: number, seed: number): Tensor {
  const draws = rand([count, 3], { generator: generator(seed) }).dataSync() as Float32Array;
  const pixels = new Float32Array(count * side * side);
  for (let i = 0; i < count; i++) {
    const [kind, y, x] = [i % 3, 5 + 6 * draws[3 * i]!, 5 + 6 * draws[3 * i + 1]!];
    const size = 3 + draws[3 * i + 2]!;
    for (let at = 0; at < side * side; at++) {
      const [down, right] = [Math.abs(Math.floor(at / side) - y), Math.abs((at % side) - x)];
      const ring = Math.abs(Math.hypot(down, right) - size);
      const cross = Math.max(Math.min(down, right), Math.max(down, right) - size);
      const bar = Math.max(down - 1, right - size);
      const distance = [ring, cross, bar][kind]!;
      pixels[i * side * side + at] = 1 - 2 * Math.min(1, Math.max(0, distance)); // edges are a pixel wide
    }
  }
  return fromHost(pixels, [count, 1, side, side]);
}

/** Normalisation in 4 groups, SiLU and a convolution. */
const normed = (ins: number, outs: number): Sequential =>
  new Sequential(new GroupNorm(4, ins), new SiLU(), new Conv2d(ins, outs, 3, { padding: 1 }));

/** Two convolutions beside a shortcut; the time is added between them. */
class Block extends Module {
  readonly first: Sequential;
  readonly time: Linear;
  readonly second: Sequential;
  readonly shortcut: Conv2d | null;

  constructor(ins: number, outs: number) {
    super();
    this.first = normed(ins, outs);
    this.time = new Linear(4 * width, outs);
    this.second = normed(outs, outs);
    this.shortcut = ins === outs ? null : new Conv2d(ins, outs, 1);
  }

  /** Takes x [batch, ins, height, width] and the embedded time [batch, 4 · width]. */
  forward([x, time]: readonly [Tensor, Tensor]): Tensor {
    const timed = this.first.forward(x).add(this.time.forward(time).unsqueeze(-1).unsqueeze(-1));
    return this.second.forward(timed).add(this.shortcut ? this.shortcut.forward(x) : x);
  }
}

/** Predicts the noise in pictures: two halvings and two doublings, with a connection across at each size. */
class UNet extends Module {
  readonly time = new Sequential(new Linear(width, 4 * width), new SiLU(), new Linear(4 * width, 4 * width));
  readonly stem = new Conv2d(1, width, 3, { padding: 1 });
  readonly block1 = new Block(width, width);
  readonly down1 = new Conv2d(width, width, 3, { stride: 2, padding: 1 });
  readonly block2 = new Block(width, 2 * width);
  readonly down2 = new Conv2d(2 * width, 2 * width, 3, { stride: 2, padding: 1 });
  readonly middle = new Block(2 * width, 2 * width);
  readonly up2 = new ConvTranspose2d(2 * width, 2 * width, 2, { stride: 2 });
  readonly block3 = new Block(4 * width, width);
  readonly up1 = new ConvTranspose2d(width, width, 2, { stride: 2 });
  readonly block4 = new Block(2 * width, width);
  readonly head = normed(width, 1);

  /** Takes noisy pictures [batch, 1, side, side], and for each the number of its noising step, int64 [batch]. */
  forward([x, t]: readonly [Tensor, Tensor]): Tensor {
    const time = this.time.forward(waves(t)).silu();
    const large = this.block1.forward([this.stem.forward(x), time]);
    const half = this.block2.forward([this.down1.forward(large), time]);
    const small = this.middle.forward([this.down2.forward(half), time]);
    const up = this.block3.forward([cat([this.up2.forward(small), half], 1), time]);
    return this.head.forward(this.block4.forward([cat([this.up1.forward(up), large], 1), time]));
  }
}

/** Returns sines and cosines [batch, width] of the times, with wavelengths from 2π to 2π · 1000. */
function waves(t: Tensor): Tensor {
  const rates = arange(0, width / 2)
    .mul((-2 * Math.log(1000)) / width)
    .exp();
  const angles = t.to('float32').unsqueeze(-1).mul(rates);
  return cat([angles.sin(), angles.cos()], -1);
}

// The share of the picture's variance that is left after step t falls along a cosine (Nichol and Dhariwal, 2021).
const left = Array.from(
  { length: times + 1 },
  (_, t) => Math.cos(((t / times + 0.008) / 1.008) * (Math.PI / 2)) ** 2,
);
const betas = Array.from({ length: times }, (_, t) => Math.min(0.999, 1 - left[t + 1]! / left[t]!));
const kept = Float32Array.from(betas, (_, t) => betas.slice(0, t + 1).reduce((a, beta) => a * (1 - beta), 1));

const [data, heldOut, shares] = [pictures(2_048, 1), pictures(1_024, 2), fromHost(kept)];

manualSeed(1);
const net = new UNet();
const averaged = new AveragedModel(net, new UNet(), { multiAvgFn: getEmaMultiAvgFn(0.98) });
const optimizer = new AdamW(net.parameters(), { lr: 4e-3 });
const schedule = new OneCycleLR(optimizer, { maxLr: 4e-3, totalSteps: steps });

/** Returns the error of the noise that `model` predicts in pictures of `from`, each at a random time. */
function errorOn(model: Pick<UNet, 'forward'>, from: Tensor, count: number): Tensor {
  const x = from.indexSelect(0, randint(0, from.shape[0]!, [count]));
  const [t, noise] = [randint(0, times, [count]), randn(x.shape)];
  const share = shares.indexSelect(0, t).reshape([count, 1, 1, 1]);
  const noisy = x.mul(share.sqrt()).add(noise.mul(share.neg().add(1).sqrt()));
  return mseLoss(model.forward([noisy, t]), noise);
}

for (let step = 1; step <= steps; step++) {
  scope(() => {
    const loss = errorOn(net, data, batch);
    const value = loss.item();
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    schedule.step();
    reportMetrics({ step: step - 1, steps, loss: value, samples: batch });
    if (step % 50 === 0) console.log(`step ${step}/${steps}  error ${value.toFixed(3)}`);
  });
  averaged.updateParameters(net);
}

/** Draws `count` pictures: removes predicted noise from noise, step by step (algorithm 2 of DDPM). */
function drawn(count: number): Tensor {
  let x = randn([count, 1, side, side]);
  for (let t = times - 1; t >= 0; t--) {
    const [share, beta] = [kept[t]!, betas[t]!];
    x = scope(() => {
      const noise = averaged.forward([x, fromHost(BigInt64Array.from({ length: count }, () => BigInt(t)))]);
      // The picture that the noise implies, within the range of pictures, and from there the mean of the step before.
      const clean = x
        .sub(noise.mul(Math.sqrt(1 - share)))
        .div(Math.sqrt(share))
        .clamp(-1, 1);
      const earlier = t === 0 ? 1 : kept[t - 1]!;
      const mean = clean
        .mul((Math.sqrt(earlier) * beta) / (1 - share))
        .add(x.mul((Math.sqrt(1 - beta) * (1 - earlier)) / (1 - share)));
      const deviation = Math.sqrt((beta * (1 - earlier)) / (1 - share));
      return mean.add(randn(x.shape).mul(deviation));
    });
  }
  return x;
}

/** Returns the mean, over pictures, of the mean squared difference from the nearest held-out picture. */
function distance(own: Tensor): number {
  const [a, b] = [own.flatten(1), heldOut.flatten(1)];
  const squares = a.square().sum(1, true).add(b.square().sum(1)).sub(a.matmul(b.t()).mul(2));
  return squares
    .div(side * side)
    .min(1)
    .mean()
    .item();
}

noGrad(() =>
  scope(() => {
    const error = errorOn(averaged, heldOut, 512).item();
    const own = drawn(64);
    const noise = randn(own.shape).mul(heldOut.std()).add(heldOut.mean());
    const [near, far] = [distance(own), distance(noise.clamp(-1, 1))];
    const rows = own.at(0, 0).toArray() as number[][];
    console.log(
      rows.map((row) => row.map((value) => ' .+#'[Math.floor(1.999 * (value + 1))]).join('')).join('\n'),
    );
    console.log(
      `error ${error.toFixed(3)}, distance of drawn pictures ${near.toFixed(3)}, of noise ${far.toFixed(3)}`,
    );
    if (!(error < 0.15)) throw new Error(`expected an error below 0.15, got ${error}`);
    if (!(near < far / 2)) throw new Error(`expected a distance below ${far / 2}, got ${near}`);
  }),
);
