// Tests what the fields of a module accept that hold parameters, buffers and modules. Before they were checked, an
// assigned tensor left parameters() without a word, and the optimizer trained the old one.
import { describe, expect, test } from 'vitest';
import { memory, ones, scope, type Tensor, zeros } from '../../../src/index.ts';
import {
  BatchNorm1d,
  buffer,
  Conv2d,
  CrossEntropyLoss,
  Embedding,
  LayerNorm,
  Linear,
  Module,
  MultiheadAttention,
  parameter,
} from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

class Net extends Module {
  body: Module | null = new Linear(2, 2);
  scale: Tensor | null = parameter(ones([2]));
  mean: Tensor | null = buffer(zeros([2]), { persistent: false });
  readonly notTrained = zeros([3]);
}

/** Assigns what the type of the field may not allow. */
const assign = (module: object, name: string, value: unknown): void => {
  (module as Record<string, unknown>)[name] = value;
};
const names = (module: Module): string[] => module.namedParameters().map(([name]) => name);

describe('a field that holds a parameter', () => {
  test.each([
    ['weight', () => new Linear(2, 2)],
    ['bias', () => new Linear(2, 2, { bias: false })],
    ['weight', () => new Embedding(3, 2)],
    ['weight', () => new Conv2d(1, 1, 1)],
    ['bias', () => new LayerNorm([2])],
    ['weight', () => new BatchNorm1d(2)],
    ['inProjWeight', () => new MultiheadAttention(2, 1)],
  ])('refuses a plain tensor as %s, also in a layer that was just made', (name, make) => {
    const layer = make();
    const before = Reflect.get(layer, name);
    expect(codeOf(() => assign(layer, name, ones([2, 2])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => assign(layer, name, ones([2, 2]))).toThrow(
      new RegExp(
        `${layer.constructor.name}: field '${name}' holds a parameter, and was assigned a tensor\\. .*parameter\\(tensor\\).*copy_`,
        'u',
      ),
    );
    expect(() => assign(layer, name, 5)).toThrow('was assigned 5');
    expect(Reflect.get(layer, name)).toBe(before);
  });

  test('takes a parameter and null, and has them in parameters()', () => {
    const layer = new Linear(2, 2);
    const weight = parameter(ones([2, 2]));
    layer.weight = weight;
    layer.bias = null;
    expect(layer.parameters()).toEqual([weight]);
    expect(Object.keys(layer.stateDict())).toEqual(['weight']);
    expect(() => assign(layer, 'bias', ones([2]))).toThrow('holds a parameter');
    layer.bias = parameter(ones([2]));
    expect(names(layer)).toEqual(['weight', 'bias']);
  });

  test('is checked in a module of the user from the first search on; a field with a plain tensor never is', () => {
    const net = new Net();
    net.parameters();
    expect(() => assign(net, 'scale', ones([2]))).toThrow("Net: field 'scale' holds a parameter");
    assign(net, 'notTrained', ones([7]));
    expect(net.notTrained.shape).toEqual([7]);
    assign(net, 'body', null);
    expect(names(net)).toEqual(['scale']);
    assign(net, 'scale', new Linear(1, 1));
    expect(names(net)).toEqual(['scale.weight', 'scale.bias']);
  });

  test('a subclass may define the field anew; a frozen module is searched', () => {
    class Constant extends Linear {
      override bias = parameter(zeros([2]));
    }
    expect(names(new Constant(2, 2))).toEqual(['weight', 'bias']);
    expect(names(Object.freeze(new Net()) as Net)).toEqual(['body.weight', 'body.bias', 'scale']);
  });
});

describe('a field that holds a buffer', () => {
  test('makes a buffer of a tensor, which is kept, and saved as the one before', () => {
    const norm = new BatchNorm1d(2);
    const net = new Net();
    net.buffers();
    const count = memory().tensors;
    scope(() => {
      assign(norm, 'runningMean', ones([2]));
      net.mean = ones([2]);
    });
    expect(memory().tensors).toBe(count + 2);
    expect(norm.namedBuffers().map(([name]) => name)).toContain('running_mean');
    expect(norm.stateDict().running_mean!.toArray()).toEqual([1, 1]);
    expect(net.buffers()).toEqual([net.mean]);
    expect(Object.keys(net.stateDict())).not.toContain('mean');
  });

  test('takes a parameter, which is then trained, and null; refuses other values', () => {
    const net = new Net();
    net.buffers();
    expect(() => assign(net, 'mean', [1, 2])).toThrow(
      "Net: field 'mean' holds a buffer, and was assigned [1, 2]",
    );
    net.mean = parameter(ones([2]));
    expect(net.parameters()).toContain(net.mean);
    expect(names(net)).toContain('mean');
    const loss = new CrossEntropyLoss();
    assign(loss, 'weight', ones([2]));
    expect(Object.keys(loss.stateDict())).toEqual(['weight']);
  });
});

describe('a field that holds a module', () => {
  test('refuses tensors and numbers; takes modules, arrays, and what has a forward', () => {
    const net = new Net();
    net.train();
    expect(() => assign(net, 'body', ones([2]))).toThrow(
      "Net: field 'body' holds a module, and was assigned a tensor. Expected a module, or null.",
    );
    expect(() => assign(net, 'body', 3)).toThrow('was assigned 3');
    assign(net, 'body', [new Linear(1, 1)]);
    expect(names(net)).toEqual(['body.0.weight', 'body.0.bias', 'scale']);
    assign(net, 'body', { forward: (x: Tensor) => x });
    expect(names(net)).toEqual(['scale']);
  });
});
