import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { violationsIn } from '../../checks/arrows.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const packages = [
  'store',
  'collectives',
  'ddp',
  'elastic',
  'formats',
  'tensor',
  'data',
  'launch',
  'tfjs',
  'testing',
  'ringwise',
];
const folders = ['base', 'coll', 'mpi', 'sim', 'tensor', 'capi', 'node'];

describe('the import arrows', () => {
  let tree = '';
  beforeEach(() => {
    tree = mkdtempSync(join(tmpdir(), 'ringwise-arrows-'));
    for (const name of packages) {
      mkdirSync(join(tree, 'packages', name, 'src'), { recursive: true });
      cpSync(join(root, 'packages', name, 'package.json'), join(tree, 'packages', name, 'package.json'));
    }
    for (const folder of folders) mkdirSync(join(tree, 'native', folder), { recursive: true });
  });
  afterEach(() => rmSync(tree, { recursive: true, force: true }));

  const write = (path: string, text: string) => writeFileSync(join(tree, path), text);

  it('hold in this repository', () => {
    expect(violationsIn(root)).toEqual([]);
  });

  it('are reported for a TypeScript import against them', () => {
    write('packages/collectives/src/a.ts', "import { tensor } from '@ringwise/tensor';\n");
    write('packages/store/src/b.ts', "export * from '../../launch/src/index.ts';\n");
    expect(violationsIn(tree)).toEqual([
      'packages/store/src/b.ts imports ../../launch/src/index.ts, outside its package',
      'packages/collectives/src/a.ts imports tensor',
    ]);
  });

  it('are reported for files that import each other in a circle, types included', () => {
    write('packages/data/src/a.ts', "import type { B } from './b.ts';\nimport './d.ts';\n");
    write('packages/data/src/b.ts', "export { c } from './c.ts';\n");
    write('packages/data/src/c.ts', "const later = () => import('./a.ts');\n");
    write('packages/data/src/d.ts', "import './e.ts';\n");
    write('packages/data/src/e.ts', '');
    expect(violationsIn(tree)).toEqual([
      'packages/data: a circle of imports: src/a.ts → src/b.ts → src/c.ts → src/a.ts',
    ]);
  });

  it('are reported for a dependency against them', () => {
    write('packages/data/package.json', '{ "dependencies": { "@ringwise/store": "workspace:*" } }');
    expect(violationsIn(tree)).toEqual(['packages/data/package.json depends on store']);
  });

  it("are reported for a dependency on another package's compiled part", () => {
    const addon = '@ringwise/tensor-linux-x64';
    write('packages/collectives/package.json', `{ "optionalDependencies": { "${addon}": "workspace:*" } }`);
    expect(violationsIn(tree)).toEqual([
      `packages/collectives/package.json depends on ${addon}, the compiled part of another`,
    ]);
  });

  it('are reported for a C++ include against them', () => {
    write('native/coll/a.cc', '#include "tensor/kernels.h"\n#include <napi.h>\n#include <cuda_runtime.h>\n');
    expect(violationsIn(tree)).toEqual([
      'native/coll/a.cc includes tensor/kernels.h',
      'native/coll/a.cc includes napi.h: only native/node may see Node',
      'native/coll/a.cc includes cuda_runtime.h: only */cuda and nccl may see CUDA',
    ]);
  });
});
