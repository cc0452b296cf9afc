// Every name of PyTorch is here under its name in camelCase or the one in `renamed`, or stands with its reason in the
// table "Functions and layers of PyTorch that are missing" of docs/tensor.md, which names nothing that is here.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import * as optim from '../../../src/optim/index.ts';
import { functions, linearAlgebra, modules, optimizers } from './pytorch.ts';

/** What has another name here. Paths with Tensor are methods, with x properties of tensors. */
const renamed: Readonly<Record<string, string>> = {
  as_tensor: 't.tensor',
  from_numpy: 't.fromHost',
  numel: 'x.count',
  var: 't.variance',
  logsumexp: 't.logSumExp',
  logsigmoid: 't.logSigmoid',
  binary_cross_entropy: 't.bce',
  binary_cross_entropy_with_logits: 't.bceWithLogits',
  affine_grid_generator: 't.affineGrid',
  new_tensor: 't.tensor',
  fill: 'Tensor.fill_',
  is_tensor: 't.Tensor',
  rsub: 't.sub',
  fold: 't.col2im',
};

const camelCase = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** Returns whether something has this path in the package. */
function exists(path: string): boolean {
  const roots: Record<string, object> = {
    ...{ t, nn, optim, Tensor: t.Tensor.prototype },
    x: t.zeros([1]),
  };
  const [root, ...rest] = path.split('.') as [string, ...string[]];
  let holder: object | undefined = roots[root];
  for (const [i, name] of rest.entries()) {
    if (holder === undefined || !(name in holder)) return false;
    if (i < rest.length - 1) holder = (holder as Record<string, object>)[name];
  }
  return holder !== undefined;
}

const isRefused = (name: string): boolean => {
  const { value } = Object.getOwnPropertyDescriptor(t.Tensor.prototype, name) ?? {};
  return typeof value === 'function' && `${value}`.includes('throw refused(');
};

function isHere(name: string): boolean {
  if (name in renamed) return exists(renamed[name]!);
  const own = camelCase(name);
  return exists(`t.${own}`) || (exists(`Tensor.${own}`) && !isRefused(own));
}

const docs = readFileSync(new URL('../../../../../docs/tensor.md', import.meta.url), 'utf8');
const section = docs.slice(docs.indexOf('## Functions and layers of PyTorch that are missing'));
const missing = new Set(
  section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .flatMap((line) => [...line.split('|')[1]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)),
);

const kinds: readonly [string, readonly string[], (name: string) => boolean, number][] = [
  ['functions and methods', functions, isHere, 384],
  ['functions of linalg', linearAlgebra, isHere, 20],
  ['layers', modules, (name) => exists(renamed[name] ?? `nn.${name}`), 140],
  ['optimisers and schedules', optimizers, (name) => exists(renamed[name] ?? `optim.${name}`), 31],
];

describe('the names of PyTorch', () => {
  test.each(kinds)('%s are here, or stand in the table with a reason', (_, names, isKnown, least) => {
    expect(names.filter((name) => !isKnown(name) && !missing.has(name))).toEqual([]);
    expect(names.filter((name) => isKnown(name) && missing.has(name))).toEqual([]);
    expect(names.filter(isKnown).length).toBeGreaterThanOrEqual(least);
  });

  test('the table has no others, and no name has another one for nothing', () => {
    const all = new Set(kinds.flatMap(([, names]) => names));
    expect([...missing].filter((name) => !all.has(name))).toEqual([]);
    expect(Object.keys(renamed).filter((name) => !all.has(name))).toEqual([]);
  });
});
