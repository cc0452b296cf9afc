// Runs every JavaScript block of docs/tensor.md, and checks that every export that the page names as `t.…` exists.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import * as safetensors from '../../src/files/safetensors/index.ts';
import * as t from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';

const page = readFileSync(new URL('../../../../docs/tensor.md', import.meta.url), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'ringwise-docs-'));
afterAll(() => rmSync(folder, { recursive: true }));

const names = { t, nn, optim, safetensors, assert, folder };
const AsyncFunction = (async () => {}).constructor as new (
  ...source: string[]
) => (...values: unknown[]) => Promise<void>;

/** The blocks, each with the heading above it. */
const blocks = page.split(/^## /m).flatMap((section) => {
  const [heading] = section.split('\n', 1);
  return [...section.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => [heading!, code!] as const);
});

describe('docs/tensor.md', () => {
  it('has blocks', () => {
    expect(blocks.length).toBeGreaterThan(5);
  });

  it.each(blocks)('does what it says under "%s"', async (_, code) => {
    await new AsyncFunction(...Object.keys(names), code)(...Object.values(names));
  });

  it('names what exists', () => {
    const words = page.match(/\bt\.(\w+)/g)!.map((word) => word.slice(2));
    for (const word of new Set(words)) expect(t, word).toHaveProperty(word);
  });
});
