// Tests the parts of the dry run that start no process: what it says of missing binaries, and its table.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { missingBinaries } from '../../release/dry-run/missing.mjs';
import { rowsOf, tableOf } from '../../release/dry-run/table.mjs';

it('compiled packages that lack files are named, and no others', () => {
  const root = mkdtempSync(join(tmpdir(), 'ringwise-missing-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const packageOf = (name: string, isCompiled: boolean, ...files: string[]) => {
    mkdirSync(join(root, name));
    for (const file of files) writeFileSync(join(root, name, file), '');
    return { folder: name, isCompiled, manifest: { name, exports: { './a': './a.node', './b': './b.h' } } };
  };
  const packages = [
    packageOf('whole', true, 'a.node', 'b.h'),
    packageOf('half', true, 'b.h'),
    packageOf('empty', true),
    packageOf('not-compiled', false),
  ];
  expect(missingBinaries(packages, root)).toEqual(['half has no a.node.', 'empty has no a.node, b.h.']);
});

const test = (status: string, title: string, ...ancestorTitles: string[]) => ({
  status,
  title,
  ancestorTitles,
  duration: 1500,
});

it('the table has a row per group, and says what failed or was skipped', () => {
  const rows = rowsOf({
    testResults: [
      {
        name: '/a.test.ts',
        status: 'failed',
        assertionResults: [
          test('passed', 'one', 'npm'),
          test('passed', 'two', 'npm', 'deep'),
          test('failed', 'three', 'pnpm'),
          test('passed', 'four', 'pnpm'),
        ],
      },
      {
        name: '/b.test.ts',
        status: 'passed',
        assertionResults: [test('pending', 'five', 'Node v20'), test('passed', 'gates: sizes')],
      },
    ],
  });
  expect(tableOf(rows)).toBe(
    [
      'passed   npm             2 of 2     3.0 s',
      'FAILED   pnpm            1 of 2     3.0 s',
      'skipped  Node v20        0 of 1     1.5 s',
      'passed   gates: sizes    1 of 1     1.5 s',
    ].join('\n'),
  );
});

it('a file that could not begin is a row that failed', () => {
  const rows = rowsOf({ testResults: [{ name: '/a.test.ts', status: 'failed', assertionResults: [] }] });
  expect(tableOf(rows)).toMatch(/^FAILED {3}\/a\.test\.ts +0 of 1/);
  const skipped = [test('pending', 'one', 'npm')];
  const both = rowsOf({ testResults: [{ name: '/a.test.ts', status: 'failed', assertionResults: skipped }] });
  expect(tableOf(both)).toMatch(/FAILED {3}\/a\.test\.ts/);
});
