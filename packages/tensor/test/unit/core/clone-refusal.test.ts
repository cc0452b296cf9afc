// Tests that tensors cannot be sent to other ranks or threads as objects, where they would have no methods.
import { serialize } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { noGrad, tensor } from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';

const refusal = /a tensor; send its toArray\(\) or dataSync\(\)/;

describe('structured clone', () => {
  test.each([
    ['a tensor', () => tensor([1, 2])],
    ['a view', () => tensor([[1], [2]]).t()],
    ['a result with a graph', () => tensor([1], { requiresGrad: true }).mul(2)],
    ['a tensor in a record', () => ({ step: 3, losses: [noGrad(() => tensor(1))] })],
    ['a module', () => new Linear(1, 1)],
  ])('refuses %s', (_, make) => {
    const value = make();
    expect(() => structuredClone(value)).toThrow(refusal);
    expect(() => serialize(value)).toThrow(refusal);
  });

  test('takes what the error asks for', () => {
    const x = tensor([1, 2]);
    expect(structuredClone(x.toArray())).toEqual([1, 2]);
    expect(structuredClone(x.dataSync())).toEqual(Float32Array.of(1, 2));
  });
});
