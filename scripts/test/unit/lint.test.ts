import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

describe('the typed lint rules', () => {
  it('refuse a Work that is neither awaited nor fenced nor launched with void', async () => {
    const eslint = new ESLint({ cwd: root, ignore: false });
    const [result] = await eslint.lintFiles(['scripts/test/fixtures/forgotten-await.ts']);
    const found = result!.messages.map(({ ruleId, line }) => `${ruleId} in line ${line}`);
    expect(found).toEqual(['@typescript-eslint/no-floating-promises in line 5']);
  });
});
