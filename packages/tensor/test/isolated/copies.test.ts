// Tests what a program is told that has two copies of this package, as npm may install for packages that need it.
import { expect, it, vi } from 'vitest';

async function copyOfPackage() {
  vi.resetModules();
  const [tensors, nn, optim] = await Promise.all([
    import('../../src/index.ts'),
    import('../../src/nn/index.ts'),
    import('../../src/optim/index.ts'),
  ]);
  return { ...tensors, ...nn, ...optim };
}

const first = await copyOfPackage();
const second = await copyOfPackage();

it.each([
  ['an operand', () => first.ones([2]).add(second.ones([2]))],
  ['a tensor', () => first.crossEntropy(second.ones([2, 3]), first.tensor([0n, 1n]))],
  ['a list of tensors', () => first.cat([first.ones([1]), second.ones([1])])],
  ['an input of a layer', () => new first.Linear(2, 1).forward(second.ones([1, 2]))],
  ['parameters', () => new first.SGD(new second.Linear(2, 1).parameters(), { lr: 1 })],
])('the error names the other copy of the package (%s)', (_, call) => {
  expect(call).toThrow(/got .*a tensor of another copy of @ringwise\/tensor, of which a program needs one/);
});

it('a tensor of the same copy in a wrong place is called a tensor', () => {
  const x = first.ones([2]);
  expect(() => first.manualSeed(x as never)).toThrow(/got a tensor\.$/);
});
