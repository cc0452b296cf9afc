import { describe, expect, test } from 'vitest';
import { ones, scope, type Tensor, zeros } from '../../../src/index.ts';
import { Module, ParameterDict, ParameterList } from '../../../src/nn/index.ts';

class Net extends Module {
  readonly list = new ParameterList([ones([2]), zeros([3])]);
  readonly dict = new ParameterDict({ scale: ones([1]) });

  forward(x: Tensor): Tensor {
    return x.mul(this.dict.get('scale')!).add(this.list.at(0)!);
  }
}

describe('ParameterList and ParameterDict', () => {
  test('name their parameters as PyTorch does, and are trained, saved and loaded', () => {
    scope(() => {
      const net = new Net();
      net.list.push(ones([4]));
      net.dict.set('shift', zeros([1]));
      const names = ['list.0', 'list.1', 'list.2', 'dict.scale', 'dict.shift'];
      expect(net.namedParameters().map(([name]) => name)).toEqual(names);
      expect([...net.list].map(({ shape }) => shape)).toEqual([[2], [3], [4]]);
      expect([...net.dict].map(([name]) => name)).toEqual(['scale', 'shift']);
      net
        .forward(ones([2]))
        .sum()
        .backward();
      expect(net.list.at(0)!.grad!.toArray()).toEqual([1, 1]);
      const other = new Net();
      other.list.push(zeros([4]));
      other.dict.set('shift', ones([1]));
      other.loadStateDict(net.stateDict());
      expect([other.list.at(-1)!.toArray(), other.dict.get('shift')!.toArray()]).toEqual([[1, 1, 1, 1], [0]]);
      expect([net.list.length, net.list.at(5), net.dict.get('none')]).toEqual([3, undefined, undefined]);
    });
  });

  test('refuse what is no float tensor', () => {
    scope(() => {
      expect(() => new ParameterList([zeros([2], { dtype: 'int64' })])).toThrow(/int64/);
      expect(() => new ParameterDict({ a: 3 as never })).toThrow();
    });
  });
});
