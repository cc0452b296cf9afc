// Tests that every published package, packed and installed alone into an empty project, runs its README's
// first snippet. npm gets only the tarballs: no network, no workspace.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../../support/clean-room.ts';
import { compiled, folderOf, makeProject, pack, run } from '../../support/outside.ts';

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
  'ringwise',
];

function firstSnippet(name: string): string {
  const readme = readFileSync(join(root, folderOf(name), 'README.md'), 'utf8');
  const match = /```(?:js|javascript)\n([\s\S]*?)```/.exec(readme);
  if (!match) throw new Error(`packages/${name}/README.md has no JavaScript snippet`);
  return match[1]!;
}

describe('packed, installed alone', () => {
  let work = '';
  const tarballs = new Map<string, string>();

  beforeAll(() => {
    work = mkdtempSync(join(tmpdir(), 'ringwise-pack-'));
    for (const name of [...packages, ...Object.keys(compiled)]) tarballs.set(name, pack(name, work));
  });
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  it.each(Object.entries(compiled))('%s has its own binaries and no others', (name, expected) => {
    const paths = run('tar', ['tzf', tarballs.get(name)!], work).split('\n');
    const binaries = paths.filter((path) => /\.(node|so)$/.test(path));
    expect(binaries.toSorted()).toEqual(expected.map((file) => `package/${file}`));
  });

  it.each(packages)('%s runs the first snippet of its README', (name) => {
    const project = join(work, `use-${name}`);
    makeProject(project, [name], (need) => tarballs.get(need)!);
    writeFileSync(join(project, 'snippet.mjs'), firstSnippet(name));
    expect(run(process.execPath, ['snippet.mjs'], project)).not.toBe('');
  });
});
