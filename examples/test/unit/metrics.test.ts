// Every example that trains calls reportMetrics(), so that `ringwise run --ui` shows its curves at once.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const folder = fileURLToPath(new URL('../../', import.meta.url));
const programs = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !/^(test|node_modules)\/|\/node_modules\//.test(path))
  .map((path): [path: string, text: string] => [path, readFileSync(`${folder}${path}`, 'utf8')])
  .filter(([, text]) => /\.step\(\)|\.backward\(|\.fit\(/.test(text));

it('finds the examples that train', () => {
  expect(programs.length).toBeGreaterThanOrEqual(18);
});

it.each(programs)('%s reports metrics', (_, text) => {
  expect(text).toMatch(/\breportMetrics\(\{/);
});
