// Typical mistakes of users who know PyTorch, and values of the wrong kind. Each would give a wrong number if ignored.
import { describe, expect, test } from 'vitest';
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import * as optim from '../../../src/optim/index.ts';
import { codeOf } from '../../support/code-of.ts';

const row = (): t.Tensor => t.tensor([1, 2, 3]);
const rows = (): t.Tensor => t.ones([2, 3]);
const planes = (): t.Tensor => t.ones([1, 2, 4, 4]);
const labels = (): t.Tensor => t.tensor([0n, 1n]);
const leaf = (): t.Tensor => t.ones([2], { requiresGrad: true });
const sgd = (options: object = {}): optim.SGD =>
  new optim.SGD([leaf()], { lr: 0.1, momentum: 0.9, ...options });
const any = <T>(value: T): never => value as never;

/** Passes options as one argument too many. */
const extra = (options: object): [] => [options] as never;

type Case = readonly [what: string, call: () => unknown, sentence: string];

describe('names of PyTorch lead to ours', () => {
  const cases: readonly Case[] = [
    [
      'label_smoothing',
      () => t.crossEntropy(rows(), labels(), any({ label_smoothing: 0.1 })),
      "expected 'labelSmoothing'",
    ],
    ['ignore_index', () => t.nllLoss(rows(), labels(), any({ ignore_index: 0 })), "expected 'ignoreIndex'"],
    ['size_average', () => t.mseLoss(row(), row(), any({ size_average: false })), "expected 'reduction'"],
    ['pos_weight', () => new nn.BCEWithLogitsLoss(any({ pos_weight: row() })), "expected 'posWeight'"],
    [
      'weight_decay',
      () => new optim.AdamW([leaf()], any({ weight_decay: 0.1 })),
      "AdamW: unknown option 'weight_decay'; expected 'weightDecay'.",
    ],
    [
      'weight_decay of a group',
      () => new optim.AdamW(any([{ params: [leaf()], weight_decay: 0 }])),
      "expected 'weightDecay'",
    ],
    ['learning_rate', () => sgd({ learning_rate: 1 }), "expected 'lr'"],
    [
      'pading',
      () => t.conv2d(planes(), planes(), null, any({ pading: 1 })),
      "conv2d: unknown option 'pading'; did you mean 'padding'.",
    ],
    [
      'pading of a layer',
      () => new nn.Conv2d(2, 2, 3, any({ pading: 1 })),
      "Conv2d: unknown option 'pading'; did you mean 'padding'.",
    ],
    ['padding_idx', () => new nn.Embedding(2, 2, any({ padding_idx: 0 })), "expected 'paddingIdx'"],
    [
      'elementwise_affine',
      () => new nn.LayerNorm(2, any({ elementwise_affine: false })),
      "expected 'affine'",
    ],
    [
      'track_running_stats',
      () => new nn.BatchNorm2d(2, any({ track_running_stats: false })),
      "expected 'trackRunningStats'",
    ],
    [
      'batch_first',
      () => new nn.MultiHeadAttention(4, 2, any({ batch_first: false })),
      'Tensors are [batch, time, width].',
    ],
    [
      'is_causal',
      () => t.scaledDotProductAttention(rows(), rows(), rows(), any({ is_causal: true })),
      "expected 'causal'",
    ],
    [
      'attn_mask',
      () => t.scaledDotProductAttention(rows(), rows(), rows(), any({ attn_mask: null })),
      "expected 'mask'",
    ],
    ['ceil_mode', () => t.maxPool2d(planes(), 2, any({ ceil_mode: true })), "expected 'ceilMode'"],
    [
      'count_include_pad',
      () => new nn.AvgPool2d(2, any({ count_include_pad: false })),
      "expected 'countIncludePad'",
    ],
    ['keepdim', () => row().variance(0, any({ keepdim: true })), "expected 'keepDim'"],
    ['unbiased', () => row().std(0, any({ unbiased: false })), "expected 'correction'"],
    [
      'requires_grad',
      () => t.zeros([1], any({ requires_grad: true })),
      "zeros: unknown option 'requires_grad'; expected 'requiresGrad'.",
    ],
    [
      'retain_graph',
      () =>
        leaf()
          .sum()
          .backward(null, any({ retain_graph: true })),
      "expected 'retainGraph'",
    ],
    ['set_to_none', () => sgd().zeroGrad(any({ set_to_none: false })), "did you mean 'setToNull'"],
    ['T_max', () => new optim.CosineAnnealingLR(sgd(), any({ T_max: 5 })), "expected 'tMax'"],
    ['step_size', () => new optim.StepLR(sgd(), any({ step_size: 5 })), "expected 'stepSize'"],
    ['total_iters', () => new optim.LinearLR(sgd(), any({ total_iters: 5 })), "expected 'totalSteps'"],
    ['norm_type', () => optim.clipGradNorm([leaf()], 1, any({ norm_type: 1 })), "expected 'normType'"],
    ['non_blocking', () => row().to('cpu', any({ non_blocking: true })), "expected 'nonBlocking'"],
    [
      'alpha',
      () => t.add(row(), row(), ...extra({ alpha: 2 })),
      "add: unknown option 'alpha'; expected no options. Multiply",
    ],
    ['alpha of a method', () => row().add(row(), ...extra({ alpha: 2 })), "add: unknown option 'alpha'"],
    [
      'rounding_mode',
      () => t.div(row(), 2, ...extra({ rounding_mode: 'floor' })),
      'Use floor or trunc of the quotient.',
    ],
    [
      'roundingMode',
      () => row().div(2, ...extra({ roundingMode: 'floor' })),
      "div: unknown option 'roundingMode'",
    ],
    ['in place', () => row().sub_(row(), ...extra({ alpha: 2 })), "sub_: unknown option 'alpha'"],
    ['decimals', () => row().round(...extra({ decimals: 1 })), "round: unknown option 'decimals'"],
    [
      'dtype of a sum',
      () => row().sum(0, false, ...extra({ dtype: 'float64' })),
      'Convert the operand before',
    ],
    [
      'dtype of softmax',
      () => t.softmax(row(), 0, ...extra({ dtype: 'float64' })),
      "softmax: unknown option 'dtype'",
    ],
    ['out', () => t.neg(row(), ...extra({ out: row() })), "neg: unknown option 'out'; expected no options."],
  ];
  test.each(cases)('%s', (_, call, sentence) => {
    expect(call).toThrow(sentence);
    expect(codeOf(call)).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('what map() passes is no option', () => {
    const made = [row(), row()].map(t.neg);
    expect(made.map((each) => each.toArray())).toEqual([[-1, -2, -3], [-1, -2, -3]]); // biome-ignore format: one thing
  });
});

describe('arguments where options belong', () => {
  const cases: readonly Case[] = [
    [
      'stride of a convolution',
      () => new nn.Conv2d(2, 2, 3, any(1)),
      'Conv2d: options are a number; expected an object with stride, padding, dilation, groups, bias',
    ],
    ['stride of pooling', () => t.maxPool2d(planes(), 3, any(2)), 'maxPool2d: options are a number'],
    [
      'bias',
      () => new nn.Linear(2, 2, any(false)),
      'Linear: options are a boolean; expected an object with bias.',
    ],
    ['eps', () => new nn.LayerNorm(2, any(1e-6)), 'LayerNorm: options are a number'],
    ['lr', () => new optim.Adam([leaf()], any(1e-3)), 'Adam: options are a number'],
    ['lr of AdamW', () => new optim.AdamW([leaf()], any(1e-3)), 'AdamW: options are a number'],
    [
      'weight',
      () => t.crossEntropy(rows(), labels(), any(row())),
      'crossEntropy: options are a tensor; expected an object with ',
    ],
    ['descending', () => row().sort(0, any(true)), 'sort: options are a boolean'],
    ['training', () => t.dropout(row(), 0.5, any(false)), 'dropout: options are a boolean'],
    ['dtype', () => t.zeros([2], any('float64')), 'zeros: options are a string'],
    ['replacement', () => t.multinomial(row(), 1, any(true)), 'multinomial: options are a boolean'],
    [
      'options before the gradient',
      () =>
        leaf()
          .sum()
          .backward(any({ retainGraph: true })),
      'options come second',
    ],
    ['dim', () => t.softmax(row(), any({ dim: 0 })), 'expected a dimension'],
    [
      'keepDim',
      () => row().sum(0, any({ keepDim: true })),
      'sum: expected keepDim to be true or false, got an object.',
    ],
    [
      'a function',
      () =>
        t.autocast(
          any(() => 0),
          any(undefined),
        ),
      'autocast: options are a function',
    ],
  ];
  test.each(cases)('%s', (_, call, sentence) => expect(call).toThrow(sentence));
});

describe('values of the wrong kind', () => {
  const cases: readonly Case[] = [
    ['lr as text', () => sgd({ lr: '0.1' }), "optimizer: lr: expected a number ≥ 0, got '0.1'."],
    ['lr NaN', () => sgd({ lr: Number.NaN }), 'got NaN'],
    ['lr negative', () => new optim.Adam([leaf()], { lr: -1 }), 'got -1'],
    ['lr infinite', () => new optim.Lion([leaf()], { lr: Infinity }), 'got Infinity'],
    ['lr set later', () => Object.assign(sgd(), { lr: '0.1' }), "got '0.1'"],
    ['lr of a group', () => new optim.SGD([{ params: [leaf()], lr: any('1') }], { lr: 1 }), "got '1'"],
    [
      'betas',
      () => new optim.Adam([leaf()], { betas: [0.9, 1] }),
      'betas: expected two numbers ≥ 0 and < 1, got [0.9, 1].',
    ],
    ['betas as text', () => new optim.Adam([leaf()], { betas: any(['0.9', 0.9]) }), "got ['0.9', 0.9]"],
    ['one beta', () => new optim.Lion([leaf()], { betas: any(0.9) }), 'betas: expected two numbers'],
    [
      'eps',
      () => new optim.RMSprop([leaf()], { eps: any('1e-8') }),
      "eps: expected a number ≥ 0, got '1e-8'.",
    ],
    ['nesterov', () => sgd({ nesterov: 'false' }), "nesterov: expected true or false, got 'false'."],
    [
      'amsgrad',
      () => new optim.Adam([leaf()], { amsgrad: any(1) }),
      'amsgrad: expected true or false, got 1.',
    ],
    ['a module', () => new optim.Adam(any(new nn.Linear(1, 1))), 'expected a list of tensors, of pairs'],
    [
      'maxLr of a cycle',
      () => new optim.CyclicLR(sgd(), any({ baseLr: 1 })),
      'maxLr: expected a number, or 1',
    ],
    [
      'one rate too many',
      () => new optim.CyclicLR(sgd(), { baseLr: [1, 2], maxLr: 1 }),
      'baseLr: expected a number, or 1, one for each group, got [1, 2]',
    ],
    [
      't0',
      () => new optim.CosineAnnealingWarmRestarts(sgd(), { t0: 0 }),
      't0: expected an integer ≥ 1, got 0',
    ],
    [
      'factor',
      () => new optim.ConstantLR(sgd(), { factor: 2 }),
      'factor: expected a number from 0 to 1, got 2',
    ],
    ['factor of a plateau', () => new optim.ReduceLROnPlateau(sgd(), { factor: 1 }), 'expected a number < 1'],
    ['minLr', () => new optim.ReduceLROnPlateau(sgd(), { minLr: [0, 0] }), 'one for each of 1 groups'],
    ['swaLr', () => new optim.SWALR(sgd(), { swaLr: [1, 2] }), 'one for each of 1 groups, got [1, 2]'],
    ['no swaLr', () => new optim.SWALR(sgd(), any({ annealEpochs: 1 })), 'swaLr: expected a number ≥ 0'],
    [
      'schedules',
      () => new optim.ChainedScheduler(sgd(), []),
      'expected a list of schedules that compute a rate',
    ],
    [
      'maxLr',
      () => new optim.OneCycleLR(sgd(), { maxLr: [0.5, 0.2], totalSteps: 5 }),
      'maxLr: expected a number, or 1, one for each group, got [0.5, 0.2].',
    ],
    [
      'no maxLr',
      () => new optim.OneCycleLR(sgd(), any({ totalSteps: 5 })),
      'OneCycleLR: maxLr: expected a number > 0, or a list of them, got undefined.',
    ],
    [
      'annealStrategy',
      () => new optim.OneCycleLR(sgd(), { maxLr: 1, totalSteps: 5, annealStrategy: any('cosine') }),
      "'cos' or 'linear', got 'cosine'.",
    ],
    [
      'fractions of steps',
      () => new optim.StepLR(sgd(), { stepSize: 1.5 }),
      'schedule: stepSize: expected an integer ≥ 1, got 1.5.',
    ],
    ['steps as text', () => new optim.CosineAnnealingLR(sgd(), { tMax: any('5') }), "got '5'"],
    [
      'gamma',
      () => new optim.ExponentialLR(sgd(), { gamma: any('0.9') }),
      "gamma: expected a number ≥ 0, got '0.9'.",
    ],
    [
      'no gamma',
      () => new optim.ExponentialLR(sgd(), any({})),
      'gamma: expected a number ≥ 0, got undefined.',
    ],
    [
      'milestones',
      () => new optim.MultiStepLR(sgd(), { milestones: any(5) }),
      'milestones: expected a list of integers ≥ 0, got 5.',
    ],
    [
      'a factor that is no number',
      () => new optim.LambdaLR(sgd(), () => Number.NaN),
      'LambdaLR: lr after 0 steps: expected a finite number, got NaN.',
    ],
    [
      'a list of parameters for an optimiser',
      () => new optim.StepLR(any([leaf()]), { stepSize: 1 }),
      'StepLR: optimizer: expected an optimiser',
    ],
    ['p above 1', () => new nn.Dropout(2), 'Dropout: p: expected a probability from 0 to 1, got 2.'],
    ['p as text', () => t.dropout(row(), any('0.5')), "got '0.5'"],
    ['p in an object', () => new nn.Dropout(any({ p: 0.1 })), 'got an object'],
    [
      'dropout of attention',
      () => new nn.MultiHeadAttention(4, 2, { dropout: 1 }),
      'a probability from 0 to below 1, got 1.',
    ],
    [
      'width as text',
      () => new nn.Linear(any('4'), 2),
      "Linear: inFeatures: expected an integer ≥ 0, got '4'.",
    ],
    ['width below 0', () => new nn.Linear(4, -1), 'outFeatures: expected an integer ≥ 0, got -1.'],
    [
      'a fraction of heads',
      () => new nn.MultiHeadAttention(6, 1.5),
      'heads: expected an integer ≥ 1, got 1.5.',
    ],
    [
      'width of attention as text',
      () => new nn.MultiHeadAttention(any('8'), 2),
      "a multiple of heads 2, got '8'.",
    ],
    ['channels', () => new nn.Conv2d(any('2'), 2, 3), "got '2'"],
    ['groups', () => new nn.Conv2d(3, 3, 3, { groups: 1.5 }), 'groups: expected an integer ≥ 1, got 1.5.'],
    [
      'padding',
      () => new nn.Conv2d(2, 2, 3, { padding: any('full') }),
      "Conv2d: padding: expected 'same', 'valid', an integer ≥ 0, or two, got 'full'.",
    ],
    [
      'stride 0',
      () => new nn.Conv2d(2, 2, 3, { stride: 0 }),
      'Conv2d: stride: expected an integer ≥ 1, or two, got 0.',
    ],
    ['stride as text', () => t.conv2d(planes(), planes(), null, { stride: any('12') }), "got '12'"],
    [
      'kernel size',
      () => new nn.MaxPool2d(any('22')),
      "MaxPool2d: kernelSize: expected an integer ≥ 1, or two, got '22'.",
    ],
    [
      'no kernel size',
      () => new nn.MaxPool2d(any(null)),
      'kernelSize: expected an integer ≥ 1, or two, got null.',
    ],
    ['shape of a norm', () => new nn.LayerNorm(-1), 'LayerNorm: expected an array of sizes'],
    ['shape of a norm as text', () => new nn.RMSNorm(any('4')), 'RMSNorm: expected an array of sizes'],
    [
      'momentum of batch norm',
      () => new nn.BatchNorm1d(2, { momentum: any('0.1') }),
      "momentum: expected a number or null, got '0.1'.",
    ],
    [
      'slope',
      () => new nn.LeakyReLU(any({ negative_slope: 0.2 })),
      'LeakyReLU: slope: expected a finite number',
    ],
    [
      'dim of softmax',
      () => new nn.Softmax(any({ dim: 1 })),
      'Softmax: dim: expected an integer, got an object.',
    ],
    [
      'reduction',
      () => t.mseLoss(row(), row(), { reduction: any('avg') }),
      "mseLoss: reduction: expected 'mean', 'sum' or 'none', got 'avg'.",
    ],
    [
      'reduction of a module',
      () => new nn.L1Loss({ reduction: any('avg') }),
      "L1Loss: reduction: expected 'mean'",
    ],
    ['batchmean elsewhere', () => new nn.MSELoss({ reduction: any('batchmean') }), "got 'batchmean'"],
    [
      'labelSmoothing',
      () => new nn.CrossEntropyLoss({ labelSmoothing: any('0.1') }),
      "a number from 0 to 1, got '0.1'.",
    ],
    [
      'requiresGrad',
      () => t.zeros([1], { requiresGrad: any('false') }),
      "requiresGrad: expected true or false, got 'false'.",
    ],
    [
      'requiresGrad set later',
      () => Object.assign(row(), { requiresGrad: 'no' }),
      "requiresGrad: expected true or false, got 'no'.",
    ],
    [
      'generator',
      () => t.rand([1], { generator: any(42) }),
      'generator: expected a Generator, such as generator(seed), got 42.',
    ],
    [
      'gradOutputs',
      () => t.grad(leaf().sum(), leaf(), { gradOutputs: any(row()) }),
      'gradOutputs: expected a list of tensors',
    ],
    [
      'mode of an initialiser',
      () => nn.init.kaimingNormal_(rows(), { mode: any('fan_in') }),
      "mode: expected 'fanIn' or 'fanOut', got 'fan_in'.",
    ],
    ['std of an initialiser', () => nn.init.normal_(rows(), 0, -1), 'std: expected a number ≥ 0, got -1.'],
    [
      'value of an initialiser',
      () => nn.init.constant_(rows(), any('1')),
      "constant_: value: expected a number, got '1'.",
    ],
    ['maxNorm', () => optim.clipGradNorm([leaf()], any('1')), "maxNorm: expected a number ≥ 0, got '1'."],
    [
      'training',
      () => new nn.Linear(1, 1).train(any('false')),
      "train: mode: expected true or false, got 'false'.",
    ],
    [
      'diagonal',
      () => rows().tril(any({ diagonal: 1 })),
      'tril: expected diagonal to be an integer, got an object.',
    ],
    [
      'scale of a GradScaler',
      () => new optim.GradScaler({ initScale: any('1') }),
      "initScale: expected a number > 0, got '1'.",
    ],
  ];
  test.each(cases)('%s', (_, call, sentence) => expect(call).toThrow(sentence));

  test.each([
    ['float', 'float32'],
    ['double', 'float64'],
    ['torch.float16', 'float16'],
    ['half', 'float16'],
    ['long', 'int64'],
    ['Float32', 'float32'],
  ])('dtype %s', (name, ours) => {
    expect(() => t.zeros([1], { dtype: any(name) })).toThrow(`got '${name}'. Use '${ours}'.`);
    expect(() => row().to(any(name))).toThrow(`got '${name}'. Use '${ours}'.`);
  });

  test("device 'gpu'", () => {
    expect(() => t.zeros([1], { device: any('gpu') })).toThrow(
      "device: expected 'cpu', 'cuda' or 'cuda:N', got 'gpu'.",
    );
    expect(codeOf(() => new nn.Linear(1, 1).to(any('gpu')))).toBe('ERR_TENSOR_DEVICE');
  });

  test('what is right stays right', () => {
    expect(sgd({ momentum: undefined }).groups[0]).toMatchObject({ lr: 0.1, momentum: 0 });
    const cycle = new optim.OneCycleLR(sgd(), any({ maxLr: 1, totalSteps: 5, divFactor: undefined }));
    expect(cycle.lastLr[0]).toBeCloseTo(1 / 25, 12);
    expect(new optim.AdamW([leaf()]).groups[0]).toMatchObject({ lr: 1e-3, weightDecay: 0.01 });
    expect(t.crossEntropy(rows(), labels(), Object.create({ inherited: 1 })).count).toBe(1);
  });
});

test.each([
  ['a model', (state: never) => new nn.Linear(2, 1).loadStateDict(state)],
  ['a schedule', (state: never) => new optim.StepLR(sgd(), { stepSize: 2 }).loadStateDict(state)],
  ['SWALR', (state: never) => new optim.SWALR(sgd(), { swaLr: 0.1 }).loadStateDict(state)],
  ['a plateau', (state: never) => new optim.ReduceLROnPlateau(sgd()).loadStateDict(state)],
  ['a scaler', (state: never) => new optim.GradScaler().loadStateDict(state)],
  ['a generator', (state: never) => t.generator(1).setState(state)],
])('loading null, undefined or a promise into %s is refused with a sentence', (_, load) => {
  for (const [state, got] of [
    [null, 'null'],
    [undefined, 'undefined'],
    [Promise.resolve({}), 'a promise, which needs an await'],
  ] as [never, string][])
    expect(() => load(state)).toThrow(
      `: state: expected a state, as stateDict() or state() returns, got ${got}`,
    );
});
