// Runs every JavaScript block of docs/data.md as a program. A block whose first line is a file name becomes that file.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const page = readFileSync(new URL('../../../../docs/data.md', import.meta.url), 'utf8');
const files: (readonly [name: string, code: string])[] = [];
const programs: (readonly [heading: string, code: string])[] = [];
for (const section of page.split(/^## /m)) {
  const [heading] = section.split('\n', 1);
  for (const [, code] of section.matchAll(/^```js\n(.*?)^```$/gms)) {
    const name = /^\/\/ (\S+\.mjs)\n/.exec(code!)?.[1];
    if (name) files.push([name, code!]);
    else programs.push([heading!, code!]);
  }
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'data-docs-'));
  mkdirSync(join(folder, 'node_modules/@ringwise'), { recursive: true });
  symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(folder, 'node_modules/@ringwise/data'));
  for (const [name, code] of files) writeFileSync(join(folder, name), code);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('docs/data.md', () => {
  it('has programs under every heading, and the files that they need', () => {
    const headings = page.match(/^## .*$/gm)!.map((line) => line.slice(3));
    expect(new Set(programs.map(([heading]) => heading))).toEqual(new Set(headings));
    expect(files.map(([name]) => name)).toEqual(['squares.mjs', 'broken.mjs']);
  });

  it.each(programs)('does what it says under "%s"', async (_, code) => {
    const program = join(folder, 'program.mjs');
    writeFileSync(program, code);
    const options = { cwd: folder, timeout: 120_000 };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], options);
    expect([stdout, stderr]).toEqual(['', '']);
  });
});
