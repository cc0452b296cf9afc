// Tests what cuda-usage reads from the compiler's text, and that every CUDA kernel has a design.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { designOf } from '../../cuda-usage/designs.mjs';
import { blocksPerMultiprocessor, threadsOf, usageOf } from '../../cuda-usage/text.mjs';

test('registers, spills and shared memory of each kernel are read from the report of the assembler', () => {
  const report = [
    'ptxas info    : 0 bytes gmem, 24 bytes cmem[4]',
    "ptxas info    : Compiling entry function 'first' for 'sm_90'",
    'ptxas info    : Function properties for first',
    '    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads',
    'ptxas info    : Used 80 registers, used 1 barriers, 16 bytes cumulative stack size, 16384 bytes smem',
    "ptxas info    : Compiling entry function 'second' for 'sm_90'",
    'ptxas info    : Function properties for second',
    '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads',
    'ptxas info    : Used 32 registers, used 0 barriers',
  ].join('\n');
  expect([...usageOf(report)]).toEqual([
    ['first', { registers: 80, spilled: 8, stack: 16, shared: 16384 }],
    ['second', { registers: 32, spilled: 0, stack: 0, shared: 0 }],
  ]);
});

test('the threads of a block are read from PTX', () => {
  const ptx =
    '.visible .entry first(\n .param .align 8 .b8 first_param_0[64]\n)\n.maxntid 256, 1, 1\n.minnctapersm 2\n{\n}';
  expect([...threadsOf(ptx)]).toEqual([['first', 256]]);
});

test('registers, shared memory or threads limit the blocks of a multiprocessor', () => {
  const blocks = (threads: number, registers: number, shared: number) =>
    blocksPerMultiprocessor({ threads, registers, shared });
  expect(blocks(256, 32, 0)).toBe(8);
  expect(blocks(256, 80, 0)).toBe(3);
  expect(blocks(256, 128, 0)).toBe(2);
  expect(blocks(256, 255, 0)).toBe(1);
  expect(blocks(256, 32, 100 * 1024)).toBe(2);
  expect(blocks(32, 16, 0)).toBe(32);
});

test('every kernel of the images has a design', () => {
  const images = readFileSync(new URL('../../tensor/cuda/images/images.h', import.meta.url), 'utf8');
  const list = images.slice(images.indexOf('#define RINGWISE_CUDA_KERNELS'));
  const single = [...list.matchAll(/\bX\((\w+), \w+\)/g)].map(([, name]) => name!);
  const stored = [...list.matchAll(/BY_STORED\(X, (\w+), /g)].flatMap(([, name]) =>
    ['float', 'double', 'half', 'bfloat'].map((suffix) => `${name}_${suffix}`),
  );
  expect(single).toContain('map_packs_half');
  expect(stored).toContain('norm_warp_half');
  for (const kernel of [...single, ...stored]) expect(designOf(kernel).expected, kernel).not.toBe('');
  expect(() => designOf('unheard_of')).toThrow(/says nothing about the kernel unheard_of/);
});
