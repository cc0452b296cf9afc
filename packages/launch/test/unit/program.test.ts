// Looking up programs as Windows does. The platform is faked in this process.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findProgram } from '../../src/cli/program.ts';

const { platform } = process;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-program-'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/tool.exe'), '', { mode: 0o700 });
});
afterEach(() => {
  Object.defineProperty(process, 'platform', { value: platform });
  rmSync(folder, { recursive: true });
});

it('finds programs on Windows by the variable Path and without their extension', () => {
  const bin = join(folder, 'bin');
  const Path = `${join(folder, 'no such folder')};${bin}`;
  expect(findProgram('tool', { Path })).toBe(null);
  Object.defineProperty(process, 'platform', { value: 'win32' });
  expect(findProgram('tool', { Path })).toBe(join(bin, 'tool.exe'));
  expect(findProgram('tool.exe', { Path })).toBe(join(bin, 'tool.exe'));
  expect(findProgram('other', { Path })).toBe(null);
  expect(findProgram(join(bin, 'tool'), {})).toBe(join(bin, 'tool.exe'));
});
