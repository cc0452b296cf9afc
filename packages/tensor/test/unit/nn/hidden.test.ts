// The warning of parameters that a module does not find.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ones } from '../../../src/index.ts';
import { buffer, Linear, Module, ModuleDict, ModuleList, parameter } from '../../../src/nn/index.ts';

let warnings: NodeJS.ErrnoException[];
const note = (warning: Error): void => void warnings.push(warning);
beforeEach(() => {
  warnings = [];
  process.on('warning', note);
});
afterEach(() => {
  process.off('warning', note);
});

/** Returns what is warned of when the parameters of the module are read twice. */
async function warned(module: Module): Promise<string[]> {
  module.parameters();
  module.parameters();
  await new Promise(setImmediate);
  for (const { code } of warnings as { code?: string }[]) expect(code).toBe('RINGWISE_HIDDEN_PARAMETER');
  return warnings.map(({ message }) => message);
}

test('names the class, the field and what holds the parameters, once for each class', async () => {
  class InObject extends Module {
    readonly layers = { up: new Linear(2, 2) };
  }
  class InMap extends Module {
    readonly layers = new Map([['up', new Linear(2, 2)]]);
  }
  class InSet extends Module {
    readonly weights = new Set([parameter(ones([2]))]);
  }
  const net = new ModuleList([new InObject(), new InObject(), new InMap()]);
  expect(await warned(net)).toEqual([
    'InObject: the field layers holds parameters in an object, where a module does not look for them; so they are ' +
      'neither trained nor saved. Use an array, ModuleList, ModuleDict or ParameterDict of @ringwise/tensor/nn.',
    expect.stringMatching(/^InMap: the field layers holds parameters in a Map,/),
  ]);
  expect((await warned(new InSet())).at(-1)).toMatch(/^InSet: the field weights holds parameters in a Set,/);
});

test('names a tensor that requires a gradient and is no parameter', async () => {
  class Scaled extends Module {
    readonly scale = ones([1], { requiresGrad: true });
  }
  expect(await warned(new Scaled())).toEqual([
    'Scaled: the tensor in the field scale requires a gradient and is no parameter; so it is neither trained nor saved. ' +
      'Make it one: this.scale = parameter(tensor).',
  ]);
});

test('says nothing of parameters that are found elsewhere, of options, and of other tensors', async () => {
  class Net extends Module {
    readonly up = new Linear(2, 2);
    readonly blocks = new ModuleDict({ down: new Linear(2, 2) });
    readonly list = [new Linear(2, 2)];
    readonly byName = new Map<string, unknown>([['up', this.up]]);
    readonly options = { width: 2, names: ['a'], mask: ones([2]) };
    readonly mean = buffer(ones([2]));
    readonly weight = parameter(ones([2]));
    readonly frozen = { teacher: new Linear(2, 2).requiresGrad_(false) };
    readonly #hidden = new Linear(2, 2);
    last = this.#hidden.weight.mul(2);
  }
  expect(await warned(new Net())).toEqual([]);
});
