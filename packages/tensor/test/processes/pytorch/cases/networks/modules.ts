// Cases of layers of nn. Their state is loaded by PyTorch's names.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, floats, nothing } from '../../draft.ts';
import { indices } from '../arrays/lookups.ts';
import type { Makers } from '../index.ts';
import { planes, poolWindow } from './layers.ts';

type State = Record<string, Ref>;

/** Draws a parameter: dense float32, as modules hold it. */
const parameter = (d: Draft, ...shape: number[]): Ref => d.tensor(shape, { domain: 'finite', views: false });

const input = (d: Draft, shape: readonly number[]): Ref => d.tensor(shape, { domain: 'finite' });

function activation(name: string, own: readonly Arg[] = []) {
  return {
    draw: (d: Draft): void =>
      d.callModule(name, [d.draws.pick([nothing, ...own])], {}, [
        d.tensor(d.shape(1), { dtype: d.draws.pick(floats) }),
      ]),
    count: 4,
  };
}

function linearState(d: Draft, outs: number, ins: number, hasBias: boolean, prefix = ''): State {
  const weight = parameter(d, outs, ins);
  return { [`${prefix}weight`]: weight, ...(hasBias ? { [`${prefix}bias`]: parameter(d, outs) } : {}) };
}

function linear(d: Draft): void {
  const [ins, outs] = [d.draws.int(1, 4), d.draws.int(1, 4)];
  const hasBias = d.draws.chance(0.6);
  const x = input(d, [...d.shape(0, 2), ins + Number(d.draws.chance(0.05))]);
  d.callModule(
    'Linear',
    [ins, outs, hasBias ? nothing : { bias: false }],
    linearState(d, outs, ins, hasBias),
    [x],
  );
}

function conv2d(d: Draft): void {
  const groups = d.draws.pick([1, 2]);
  const [ins, outs] = [groups * d.draws.int(1, 2), groups * d.draws.int(1, 2)];
  const x = input(d, planes(d, ins, 3));
  const hasBias = d.draws.chance(0.6);
  const paddingMode = d.draws.pick(['zeros', 'zeros', 'reflect', 'replicate', 'circular']);
  const options = {
    groups,
    padding: d.draws.pick<Arg>([0, 1, 'same']),
    ...(paddingMode === 'zeros' ? {} : { paddingMode }),
    ...(hasBias ? {} : { bias: false }),
  };
  const state = {
    weight: parameter(d, outs, ins / groups, 2, 2),
    ...(hasBias ? { bias: parameter(d, outs) } : {}),
  };
  d.callModule('Conv2d', [ins, outs, 2, options], state, [x]);
}

function embedding(d: Draft): void {
  const [rows, width] = [d.draws.int(1, 4), d.draws.int(1, 3)];
  const own = d.draws.chance(0.5)
    ? nothing
    : { paddingIdx: d.draws.int(0, rows - 1), scaleGradByFreq: d.draws.chance(0.5) };
  const index = indices(d, d.shape(0, 2), rows);
  d.callModule('Embedding', [rows, width, own], { weight: parameter(d, rows, width) }, [index]);
}

function norm(name: 'LayerNorm' | 'RMSNorm') {
  return (d: Draft): void => {
    const shape = [d.draws.int(1, 3), d.draws.int(1, 3)];
    const isOne = d.draws.chance(0.5);
    const own = isOne ? [shape[1]!] : shape;
    const hasState = d.draws.chance(0.7);
    const x = input(d, [...d.shape(0, 1), ...shape]);
    const weight = hasState ? { weight: parameter(d, ...own) } : {};
    const state: State =
      name === 'LayerNorm' && hasState ? { ...weight, bias: parameter(d, ...own) } : weight;
    d.callModule(name, [isOne ? own[0]! : own, hasState ? nothing : { affine: false }], state, [x]);
  };
}

function batchNorm(rank: 1 | 2 | 3) {
  return (d: Draft): void => {
    const { draws } = d;
    const channels = draws.int(1, 3);
    const planes = [draws.int(1, 2), 2];
    const rest = rank === 1 ? draws.pick([[], [3]]) : rank === 2 ? planes : [2, ...planes];
    const x = input(d, [draws.int(1, 3), channels, ...rest, ...(draws.chance(0.05) ? [1, 1] : [])]);
    const isAffine = draws.chance(0.7);
    const momentum = draws.pick<Arg>([nothing, null, 0.3]);
    const options = { ...(isAffine ? {} : { affine: false }), ...(momentum === nothing ? {} : { momentum }) };
    const state: State = {
      ...(isAffine ? { weight: parameter(d, channels), bias: parameter(d, channels) } : {}),
      running_mean: d.tensor([channels], { domain: 'real', grad: false, views: false }),
      running_var: d.tensor([channels], { domain: 'positive', grad: false, views: false }),
      num_batches_tracked: d.given([draws.int(0, 3)], [], 'int64'),
    };
    d.callModule(`BatchNorm${rank}d`, [channels, options], state, [x], draws.chance(0.65));
  };
}

function attentionState(d: Draft, width: number, hasBias: boolean, prefix = ''): State {
  return {
    [`${prefix}in_proj_weight`]: parameter(d, 3 * width, width),
    ...(hasBias ? { [`${prefix}in_proj_bias`]: parameter(d, 3 * width) } : {}),
    ...linearState(d, width, width, hasBias, `${prefix}out_proj.`),
  };
}

function attention(d: Draft): void {
  const { draws } = d;
  const heads = draws.int(1, 2);
  const width = heads * draws.int(1, 2);
  const [hasBias, causal] = [draws.chance(0.6), draws.chance(0.4)];
  const x = input(d, [draws.int(1, 2), 3, width]);
  const others = draws.chance(0.4)
    ? [input(d, [d.inputs[0]!.views.length === 0 ? d.inputs[0]!.shape[0]! : 1, 3, width])]
    : [];
  const options = { ...(hasBias ? {} : { bias: false }), ...(causal ? { causal } : {}) };
  d.callModule('MultiHeadAttention', [width, heads, options], attentionState(d, width, hasBias), [
    x,
    ...others,
  ]);
}

function block(d: Draft): void {
  const [width, mlpWidth] = [4, 3];
  const normState = (name: string): State => ({
    [`${name}.weight`]: parameter(d, width),
    [`${name}.bias`]: parameter(d, width),
  });
  const x = input(d, [d.draws.int(1, 2), 3, width]);
  const state = {
    ...normState('norm1'),
    ...attentionState(d, width, true, 'attention.'),
    ...normState('norm2'),
    ...linearState(d, mlpWidth, width, true, 'mlp.0.'),
    ...linearState(d, width, mlpWidth, true, 'mlp.2.'),
  };
  d.callModule('TransformerBlock', [width, 2, { mlpWidth, causal: d.draws.chance(0.5) }], state, [x]);
}

function sequential(d: Draft): void {
  const [ins, outs] = [d.draws.int(1, 3), d.draws.int(1, 3)];
  const last = d.draws.pick<Arg>([
    ['ReLU'],
    ['GELU'],
    ['GELU', { approximate: 'tanh' }],
    ['Tanh'],
    ['Flatten'],
  ]);
  d.callModule('Sequential', [['Linear', ins, outs], last], linearState(d, outs, ins, true, '0.'), [
    input(d, [2, ins]),
  ]);
}

const pool = (name: string, isMax: boolean) => ({
  draw: (d: Draft): void =>
    d.callModule(name, poolWindow(d, isMax), {}, [
      d.tensor(planes(d, 2, 2), { dtype: d.draws.pick(floats) }),
    ]),
  count: 5,
});

export const modules: Makers = {
  ...Object.fromEntries(
    ['ReLU', 'SiLU', 'Tanh', 'Sigmoid', 'Identity'].map((name) => [`nn.${name}`, activation(name)]),
  ),
  'nn.GELU': activation('GELU', [{ approximate: 'tanh' }]),
  'nn.LeakyReLU': activation('LeakyReLU', [0.3]),
  'nn.ELU': activation('ELU', [0.5]),
  'nn.Softplus': activation('Softplus', [2, 1]),
  'nn.Softmax': activation('Softmax', [0]),
  'nn.LogSoftmax': activation('LogSoftmax', [0]),
  'nn.Flatten': activation('Flatten', [0]),
  'nn.Dropout': {
    draw: (d) =>
      d.callModule('Dropout', [d.draws.pick([nothing, 1, 0.3])], {}, [input(d, d.shape(0, 2))], false),
    count: 4,
  },
  'nn.Linear': { draw: linear },
  'nn.Conv2d': { draw: conv2d, count: 14 },
  'nn.Embedding': { draw: embedding, count: 8 },
  'nn.LayerNorm': { draw: norm('LayerNorm'), count: 7, isUnsteady: true },
  'nn.RMSNorm': { draw: norm('RMSNorm'), count: 7, isUnsteady: true },
  'nn.BatchNorm1d': { draw: batchNorm(1), isUnsteady: true },
  'nn.BatchNorm2d': { draw: batchNorm(2), isUnsteady: true },
  'nn.BatchNorm3d': { draw: batchNorm(3), isUnsteady: true },
  'nn.MaxPool2d': pool('MaxPool2d', true),
  'nn.AvgPool2d': pool('AvgPool2d', false),
  'nn.AdaptiveAvgPool2d': {
    draw: (d) =>
      d.callModule('AdaptiveAvgPool2d', [d.draws.pick<Arg>([1, [2, 3], 3])], {}, [input(d, planes(d, 2))]),
    count: 5,
  },
  'nn.MultiHeadAttention': { draw: attention, count: 8, isUnsteady: true },
  'nn.TransformerBlock': { draw: block, count: 5, isUnsteady: true },
  'nn.Sequential': { draw: sequential, count: 7 },
};
