// What users of PyTorch, NumPy and TensorFlow.js write by habit: each must fail with a sentence that names our call.
import { describe, expect, test } from 'vitest';
import { cat, full, ones, randn, Tensor, tensor, zeros } from '../../../src/index.ts';
import { Linear, type Module, ModuleDict, ModuleList, Sequential } from '../../../src/nn/index.ts';
import { clipGradNorm, clipGradValue, SGD, StepLR } from '../../../src/optim/index.ts';

/** An object that may have any member. */
// biome-ignore lint/suspicious/noExplicitAny: these members are not in the types
const loose = (value: object): any => value;

describe('a tensor', () => {
  const members: readonly (readonly [string, string])[] = [
    ['size', 'shape, and count for the number of elements'],
    ['ndim', 'rank'],
    ['T', 't()'],
    ['requires_grad', 'requiresGrad'],
    ['is_leaf', 'isLeaf'],
    ['is_contiguous', 'isContiguous'],
    ['0', 'at(0)'],
    ['3', 'at(3)'],
    ['-1', 'at(-1)'],
  ];
  test.each(members)('has no property %s', (name, instead) => {
    expect(() => loose(ones([2]))[name]).toThrow(
      `tensor.${name}: there is no member of this name; expected ${instead}`,
    );
  });

  const methods: readonly (readonly [string, string])[] = [
    ['dim', 'the property rank'],
    ['numel', 'the property count'],
    ['requiresGrad_', 'requiresGrad = true'],
    ['clip', 'clamp(min, max)'],
    ['numpy', 'dataSync() for a typed array, or toArray()'],
    ['tolist', 'toArray()'],
    ['cpu', "to('cpu')"],
    ['cuda', "to('cuda')"],
    ['float', "to('float32')"],
    ['long', "to('int64')"],
    ['requires_grad_', 'requiresGrad = true'],
    ['masked_fill', 'maskedFill()'],
    ['retain_grad', 'retainGrad()'],
    ['zero_grad', 'zeroGrad()'],
    ['index_select', 'indexSelect()'],
  ];
  test.each(methods)('has no method %s', (name, instead) => {
    expect(() => loose(ones([2]))[name](0)).toThrow(
      `tensor.${name}(): there is no member of this name; expected ${instead}`,
    );
  });

  test('keeps its own members, and enumerates none of these', () => {
    const x = ones([2, 3]);
    expect([x.shape, x.rank, x.count, x.isLeaf, x.detach().shape]).toEqual([[2, 3], 2, 6, true, [2, 3]]);
    const named: string[] = [];
    for (const name in x) named.push(name);
    expect(named).not.toContain('size');
    expect(JSON.parse(JSON.stringify({ shape: x.shape }))).toEqual({ shape: [2, 3] });
  });

  test('refuses requires_grad where it would only become a property that nothing reads', () => {
    expect(() => {
      loose(ones([2])).requires_grad = true;
    }).toThrow('expected requiresGrad');
  });

  test('refuses an assigned gradient', () => {
    const x = ones([2], { requiresGrad: true });
    x.sum().backward();
    expect(() => {
      loose(x).grad = null;
    }).toThrow('tensor.grad: a gradient cannot be assigned; expected zeroGrad() to drop it');
    expect(x.grad!.toArray()).toEqual([1, 1]);
  });

  test('is no number, but text', () => {
    const x = tensor(2);
    expect(() => Number(x)).toThrow('a tensor is no number');
    expect(() => loose(x) * 2).toThrow('item()');
    expect(() => loose(x) < 3).toThrow('item()');
    expect(`${x}`).toBe(x.toString());
    expect([String(x), [x].join()]).toEqual([x.toString(), x.toString()]);
  });

  test('is not added by +, which would join texts', () => {
    const x = tensor(2);
    let total = 0;
    expect(() => {
      total += loose(x);
    }).toThrow('Use item() for the number of a tensor with one element');
    expect(total).toBe(0);
    expect(() => loose(x) + loose(x)).toThrow('methods such as add');
    // biome-ignore lint/suspicious/noDoubleEquals: what is tested
    expect(() => loose(x) == 2).toThrow('eq and lt');
    // biome-ignore lint/style/useTemplate: the plus is what is tested
    expect(() => 'loss ' + loose(x)).toThrow('Its text is String(tensor), also in a template.');
  });
});

describe('a shape of numbers instead of an array', () => {
  const calls: readonly (readonly [string, (x: Tensor) => unknown, string])[] = [
    ['view', (x) => loose(x).view(3), 'view([3, …])'],
    ['reshape', (x) => loose(x).reshape(3, 2), 'reshape([3, …])'],
    ['permute', (x) => loose(x).permute(1, 0), 'permute([1, …])'],
    ['repeat', (x) => loose(x).repeat(2), 'such as [2]'],
    ['zeros', () => loose(zeros)(3), 'such as [3]'],
    ['zeros of two', () => loose(zeros)(3, 4), 'put all sizes into an array: zeros([2, 3])'],
    ['randn', () => loose(randn)(3, 4), 'put all sizes into an array: randn([2, 3])'],
    ['full', () => loose(full)(3, 4), 'such as [3]'],
    ['cat', (x) => loose(cat)(x, x), 'cat([a, b])'],
  ];
  test.each(calls)('%s', (_, call, advice) => expect(() => call(ones([2, 3]))).toThrow(advice));
});

describe('a model, an optimiser, a schedule', () => {
  const model = new Linear(2, 1);
  const optimizer = new SGD(model.parameters(), { lr: 0.1 });
  const calls: readonly (readonly [string, () => unknown, string])[] = [
    [
      'model.cuda()',
      () => loose(model).cuda(),
      "model.cuda(): there is no member of this name; expected to('cuda')",
    ],
    ['model.state_dict()', () => loose(model).state_dict(), 'expected stateDict()'],
    [
      'model.register_buffer()',
      () => loose(model).register_buffer(),
      'expected a field: this.name = buffer(',
    ],
    ['model.registerBuffer()', () => loose(model).registerBuffer(), 'expected a field: this.name = buffer('],
    ['model.getSubmodule()', () => loose(model).getSubmodule('0'), 'expected namedModules()'],
    ['list.append()', () => loose(new ModuleList()).append(model), 'ModuleList.append(): there is no member'],
    ['list.insert()', () => loose(new ModuleList()).insert(0, model), 'list.items.splice(index, 0, module)'],
    [
      'Sequential.append()',
      () => loose(new Sequential()).append(model),
      'expected all layers in the constructor',
    ],
    ['dict.update()', () => loose(new ModuleDict()).update({}), 'ModuleDict.update(): '],
    ['optimizer.zero_grad()', () => loose(optimizer).zero_grad(), 'optimizer.zero_grad(): '],
    ['optimizer.param_groups', () => loose(optimizer).param_groups, 'expected groups'],
    ['optimizer.paramGroups', () => loose(optimizer).paramGroups, 'expected groups'],
    [
      'schedule.getLastLr()',
      () => loose(new StepLR(optimizer, { stepSize: 1 })).getLastLr(),
      'expected the property lr',
    ],
    [
      'schedule.get_last_lr()',
      () => loose(new StepLR(optimizer, { stepSize: 1 })).get_last_lr(),
      'expected the property lr',
    ],
    [
      'parameters without a call',
      () => new SGD(loose(model).parameters, { lr: 0.1 }),
      'call it: model.parameters()',
    ],
    [
      'the model as parameters',
      () => new SGD(loose(model), { lr: 0.1 }),
      'Pass its parameters: model.parameters().',
    ],
    [
      'a rate instead of options',
      () => new SGD(model.parameters(), loose(0.1 as never)),
      'write { lr: 0.1 }',
    ],
    [
      'clipGradNorm(model)',
      () => clipGradNorm(loose(model), 1),
      'clipGradNorm: params: expected a list of tensors, got an object Linear.',
    ],
    [
      'clipGradValue(nothing)',
      () => clipGradValue(loose(undefined as never), 1),
      'clipGradValue: params: expected a list',
    ],
    ['clipGradNorm of numbers', () => clipGradNorm(loose([1]), 1), 'got 1.'],
  ];
  test.each(calls)('%s', (_, call, advice) => expect(call).toThrow(advice));

  test('may have fields of these names', () => {
    class Mine extends Linear {
      constructor() {
        super(2, 1);
        loose(this).cuda = 5;
        loose(this).state_dict = 6;
      }
    }
    const mine = loose(new Mine()) as Module & { cuda: number; state_dict: number };
    expect([mine.cuda, mine.state_dict, Object.keys(mine).includes('cuda')]).toEqual([5, 6, true]);
  });
});

test.each([
  ['new Tensor([1, 2])', () => new (Tensor as unknown as new (values: number[]) => Tensor)([1, 2])],
  ['new Tensor()', () => new (Tensor as unknown as new () => Tensor)()],
])('%s says which functions make a tensor', (_, make) => {
  expect(make).toThrow(
    'new Tensor(): expected tensor(values), fromHost(typedArray, shape), or a function such as',
  );
});

test('a tensor has no members values and indices, by which programs know the result of topk()', () => {
  const found = [ones([3]), ones([3]).topk(1)].map((each) => 'values' in each && 'indices' in each);
  expect(found).toEqual([false, true]);
});
