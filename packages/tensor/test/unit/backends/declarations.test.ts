// Tests that every kernel is declared once, is implemented in each kernel set and has cases in the contract suite,
// and that ARCHITECTURE.md lists all files of one op with a kernel.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  denseKernels,
  listKernels,
  parts,
  walkKernels,
} from '../../../src/backends/declarations/declarations.ts';
import {
  type Attribute,
  input,
  kernel,
  type Operand,
  output,
  part,
  type Slot,
  slotsOf,
} from '../../../src/backends/declarations/declare.ts';
import { compiledWriter, interpretedWriter } from '../../../src/backends/native/dense.ts';
import { loadNativeKernels } from '../../../src/backends/native/native.ts';
import { referenceKernels } from '../../../src/backends/reference/index.ts';

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
const names = [...Object.keys(walkKernels), ...Object.keys(denseKernels), ...Object.keys(listKernels)];

/** Members of a kernel set that are not declared. */
const others = [
  ...['name', 'cuda', 'alloc', 'adopt', 'free', 'address', 'borrow', 'write', 'read', 'readAsync'],
  ...['synchronize', 'trim', 'numThreads', 'setNumThreads'],
];

describe('declared kernels', () => {
  test.each([
    ['reference', referenceKernels],
    ['native', loadNativeKernels()],
  ])('are what the %s set has, and nothing else', (_, kernels) => {
    expect(Object.keys(kernels).sort()).toEqual([...names, ...others].sort());
  });

  test('are all called by the contract suite', () => {
    const folder = join(root, 'packages/tensor/test/support/contract');
    const suite = readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), 'utf8'))
      .join('\n');
    const called = new Set(Array.from(suite.matchAll(/kernels\.(\w+)\(/g), ([, name]) => name));
    expect(names.filter((name) => !called.has(name))).toEqual([]);
  });

  test('name sizes by their extents, after the attributes of a base', () => {
    const base = part({ a: input('rows cols') }, { attributes: { isPerRow: 'flag' } });
    const declared = kernel(
      'any',
      {
        out: output('isPerRow ? rows : 1'),
        sums: output('2 cols+extra 3'),
        at: input('window.height', 'int64'),
      },
      { base, attributes: { scale: 'number' } },
    );
    expect(Object.entries(declared.attributes)).toEqual([
      ['rows', 'size'],
      ['cols', 'size'],
      ['isPerRow', 'flag'],
      ['extra', 'size'],
      ['scale', 'number'],
    ]);
    expect(Object.keys(declared.operands)).toEqual(['a', 'out', 'sums', 'at']);
  });

  test('pass groups and streams as several numbers, one behind the other', () => {
    const at = (slots: readonly Slot[]) => slots.map(({ name, at }) => [name, at]);
    const slots = slotsOf(parts.ConvSizes.attributes);
    expect(at(slots).at(-1)).toEqual(['window', 4]);
    expect(at(slots.at(-1)!.members).at(-1)).toEqual(['padLeft', 15]);
    expect(at(slotsOf(denseKernels.dropout.attributes))).toEqual([
      ['count', 0],
      ['p', 1],
      ['stream', 2],
    ]);
    expect(at(slotsOf(denseKernels.random.attributes)).at(-1)).toEqual(['high', 6]);
  });

  // The limits are kMostDenseOperands and kMostNumbers of native/node/tensor/tensor_state.h.
  test('have no more operands and numbers than a call can pass', () => {
    for (const { operands, attributes } of Object.values(denseKernels)) {
      expect(Object.keys(operands).length).toBeLessThanOrEqual(12);
      expect(slotsOf({ ...attributes, end: 'size' }).at(-1)!.at).toBeLessThanOrEqual(24);
    }
  });
});

describe('the call of a native kernel', () => {
  let last = 0;
  const next = (): number => ++last;

  function operandFor({ form }: Operand, isGiven: boolean): unknown {
    if (!isGiven && (form === 'optional' || form === 'mask')) return null;
    if (!isGiven && form === 'number') return next();
    const strides = form === 'heads' || form === 'mask' ? [next(), next(), next(), next()] : null;
    return { memory: { handle: next() }, offset: next(), strides };
  }

  function valueFor(attribute: Attribute, isGiven: boolean): unknown {
    if (attribute === 'flag') return isGiven;
    if (attribute === 'stream') return { seed: next(), offset: next(), ...(isGiven ? { live: next() } : {}) };
    if (typeof attribute === 'string') return next();
    if (attribute.kind === 'choice') return attribute.names.at(isGiven ? -1 : 0);
    const members = Object.entries(attribute.members);
    return Object.fromEntries(members.map(([name, member]) => [name, valueFor(member, isGiven)]));
  }

  const cases = Object.entries(denseKernels).flatMap(([name, declaration]) =>
    [true, false].map((isGiven) => [name, isGiven, declaration] as const),
  );
  test.each(cases)('%s writes what its declaration says, with all operands: %s', (_, isGiven, declared) => {
    const operands = Object.fromEntries(
      Object.entries(declared.operands).map(([name, operand]) => [name, operandFor(operand, isGiven)]),
    );
    const attributes = Object.fromEntries(
      Object.entries(declared.attributes).map(([name, attribute]) => [name, valueFor(attribute, isGiven)]),
    );
    const [one, other] = [new Float64Array(120).fill(-7), new Float64Array(120).fill(-7)];
    interpretedWriter(one, declared)(operands, attributes);
    compiledWriter(other, declared)(operands, attributes);
    const isAbsent = (i: number): boolean => i < 24 && i % 2 === 1 && one[i - 1] === 0;
    for (const [i, value] of one.entries()) {
      // The binding does not read the offset of an absent operand.
      const operand = i < 24 ? Object.values(operands)[(i - 1) / 2] : undefined;
      if (isAbsent(i) && operand === null) continue;
      expect([i, other[i]]).toEqual([i, value]);
    }
    expect(one.filter((value) => value !== -7).length).toBeGreaterThan(3);
  });
});

describe('the walk through one op', () => {
  const sources = ['packages/tensor/src', 'native/tensor', 'native/node', 'native/generate'];

  function* filesOf(folder: string): Generator<string> {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) yield* filesOf(join(folder, entry.name));
      else yield join(folder, entry.name);
    }
  }

  test('in ARCHITECTURE.md links every source file that makes cumsum, and no other', () => {
    const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
    const section = /### One op: cumsum\n(.*?)\n##/s.exec(text)?.[1] ?? '';
    const listed = Array.from(section.matchAll(/\]\(([^)]+)\)/g), ([, path]) => path!);
    const found = sources
      .flatMap((folder) => [...filesOf(join(root, folder))])
      .filter((path) => {
        const source = readFileSync(path, 'utf8');
        return /(?<!log)cumsum/i.test(source) && !/import \{[^}]*\bcumsum\b/.test(source); // not those that call it
      })
      .map((path) => relative(root, path));
    expect(listed.sort()).toEqual(found.sort());
  });
});
