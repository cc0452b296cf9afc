import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { affectedFolders } from '../../affected.mjs';
import { testedFolders } from '../../parts.mjs';

const root = fileURLToPath(new URL('../../..', import.meta.url));

// Joins the path from parts, because a test whose source has the whole path of a page counts as one that reads it.
const page = (name: string): string => ['docs', name].join('/');

it.each([
  ['packages/data/src/index.ts', ['packages/data', 'packages/elastic', 'packages/ringwise', 'examples']],
  ['packages/ringwise/test/unit/x.test.ts', ['packages/ringwise', 'examples']],
  [page('tensor.md'), ['packages/tensor']],
  [page('absent.md'), []],
  ['vitest.base.ts', testedFolders(root)],
])('a change of %s touches %j', (file, folders) => {
  expect(affectedFolders(root, [file])).toEqual(folders);
});

it('a change of the C++ sources touches all packages that load addons', () => {
  const folders = affectedFolders(root, ['native/coll/plan/choose.cc']);
  expect(folders).toEqual(
    expect.arrayContaining(['native', 'packages/collectives', 'packages/tensor', 'packages/ddp']),
  );
  expect(folders).not.toContain('packages/data');
});
