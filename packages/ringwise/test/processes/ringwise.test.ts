import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import * as ringwise from '../../src/index.ts';

const manifest = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));

it('re-exports every package that it depends on, under its own name', () => {
  const packages = Object.keys(manifest('../../package.json').dependencies).map((name) =>
    name.replace('@ringwise/', ''),
  );
  expect(Object.keys(ringwise).sort()).toEqual(packages.sort());
  for (const [name, exported] of Object.entries(ringwise))
    expect(Object.keys(exported), name).not.toEqual([]);
});

it('has the command of the launch package', () => {
  const bin = fileURLToPath(new URL('../../bin/ringwise.js', import.meta.url));
  const { stdout, status } = spawnSync(process.execPath, [bin, '--version'], { encoding: 'utf8' });
  expect(stdout).toBe(`${manifest('../../../launch/package.json').version}\n`);
  expect(status).toBe(0);
});
