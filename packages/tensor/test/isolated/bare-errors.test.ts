// Calls every function, method, layer and optimiser with arguments of wrong types: whatever is thrown must be a
// TensorError with a code, and a sentence, as a TypeError of JavaScript's own names no function and no next step.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TensorError } from '../../src/errors.ts';
import * as tensors from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';

const { ones, tensor, Tensor } = tensors;

/** Values of other types than those that a function takes. Large sizes are left out: they exhaust the memory. */
const odd: readonly unknown[] = [
  ...[undefined, null, Number.NaN, -1, 1.5, 2, 'x', true, {}, [], [1, 2], Symbol('s'), 3n, new Date(0)],
  ...[() => 1, new Float32Array(2), ones([2, 3]), ones([0, 3]), ones([]), tensor([true, false])],
];

type Call = (...args: unknown[]) => unknown;

/** Describes what a call throws, unless it is an error of ours or the function's own argument threw it. */
async function bareErrorOf(call: Call, args: readonly unknown[]): Promise<string | null> {
  try {
    await call(...args);
    return null;
  } catch (error) {
    return error instanceof TensorError ? null : String(error);
  }
}

/** Returns one line for each list of arguments on which a function fails with an error that is not ours. */
async function bareErrors(
  name: string,
  call: Call,
  lists: readonly (readonly unknown[])[] = [[], ...odd.map((value) => [value])],
): Promise<string[]> {
  const lines: string[] = [];
  for (const args of lists) {
    const error = await bareErrorOf(call, args);
    if (error !== null) lines.push(`${name}(${args.map((arg) => typeof arg).join(', ')}): ${error}`);
  }
  return lines;
}

/** The arguments after a tensor, which most functions take first. */
const second = [[], ...odd.map((value) => [value]), ...odd.map((value) => [ones([2, 3]), value])];

// resultType also takes what only looks like a tensor. BatchNorm and Optimizer are abstract. A Transformer with the
// defaults has 44 million parameters.
const notCalled = new Set(['resultType', 'BatchNorm', 'Optimizer', 'Transformer']);
const isFunction = (entry: [string, unknown]): entry is [string, Call] => typeof entry[1] === 'function';
const isClass = ([name]: [string, unknown]): boolean => /^[A-Z]/.test(name);
const functionsOf = (module: object): [string, Call][] =>
  Object.entries(module)
    .filter(isFunction)
    .filter((entry) => !isClass(entry) && !notCalled.has(entry[0]));
const classesOf = (module: object): [string, new (...args: unknown[]) => object][] =>
  Object.entries(module)
    .filter(isFunction)
    .filter((entry) => isClass(entry) && !notCalled.has(entry[0]))
    .map(([name, made]) => [name, made as unknown as new (...args: unknown[]) => object]);

// Stacks would take most of the time, and no test reads them.
const depth = Error.stackTraceLimit;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = depth;
});

describe('a wrong argument is named in a sentence', () => {
  test.each([...functionsOf(tensors), ...functionsOf(nn), ...functionsOf(optim)])(
    '%s',
    async (name, call) => {
      expect(await bareErrors(name, call, second)).toEqual([]);
    },
  );

  test.each(classesOf(nn))('nn.%s', async (name, Layer) => {
    expect(await bareErrors(`new ${name}`, (...args) => new Layer(...args))).toEqual([]);
    for (const given of [[], [2], [2, 2], [[2]]]) {
      let layer: Partial<nn.Layer>;
      try {
        layer = new Layer(...given);
      } catch {
        continue;
      }
      const { forward } = layer;
      if (forward === undefined) continue;
      expect(await bareErrors(`${name}.forward`, (...args) => forward.apply(layer, args as [never]))).toEqual(
        [],
      );
    }
  });

  test.each(classesOf(optim))('optim.%s', async (name, Optimizer) => {
    expect(await bareErrors(`new ${name}`, (...args) => new Optimizer(...args))).toEqual([]);
  });
});

test('methods of a tensor', async () => {
  const internal = new Set(['constructor', 'convert', 'dispose', 'dropGrad', 'moveTo', 'over']);
  const self = ones([2, 3]);
  const found: string[] = [];
  const seen = new Set<string>();
  for (let proto: object | null = Tensor.prototype; proto && proto !== Object.prototype; ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      if (typeof value !== 'function' || internal.has(name) || seen.has(name)) continue;
      seen.add(name);
      found.push(...(await bareErrors(name, (...args) => value.apply(self, args))));
    }
    proto = Object.getPrototypeOf(proto);
  }
  expect(seen.size).toBeGreaterThan(300);
  expect(found).toEqual([]);
});

test('calls that throw leave no setting behind', () => {
  const x = ones([2], { requiresGrad: true });
  const y = tensors.mul(x, 3).sum();
  y.backward();
  expect(x.grad!.toArray()).toEqual([3, 3]);
  expect(tensors.matmul(ones([2, 2]), ones([2, 2])).dtype).toBe('float32');
});
