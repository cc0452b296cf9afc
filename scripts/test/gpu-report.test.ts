import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const report = fileURLToPath(new URL('../../tools/gpu/report.mjs', import.meta.url));

describe('tools/gpu/report.mjs', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-report-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** What the report says of these files. */
  const reported = (files: Record<string, unknown>) => {
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
    const printed = execFileSync(process.execPath, [report, folder], { encoding: 'utf8' });
    expect(readFileSync(join(folder, 'results.md'), 'utf8')).toBe(printed);
    return { printed, json: JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8')) };
  };
  const tests = { numPassedTests: 600, numFailedTests: 1, numPendingTests: 2 };
  const log = 'a\non GPU\n9 passed, 0 failed\nb\non GPU\n4 passed, 1 failed\n';

  test('puts our timings beside those of PyTorch, by name, and adds up the tests', () => {
    const { printed, json } = reported({
      'device.json': { devices: [{ name: 'A GPU' }] },
      'tests.json': tests,
      'cpp.log': log,
      'ringwise.json': [
        { name: 'add', us: 50, unit: 'TB/s', rate: 3.25 },
        { name: 'step', us: 100, unit: '', rate: null },
      ],
      'torch.json': [{ name: 'step', us: 250, unit: '', rate: null }],
    });
    expect(printed).toMatch(
      /, A GPU\. Device tests: 600 passed, 1 failed, 2 skipped; in C\+\+: 13 passed, 1 failed\.\n/,
    );
    expect(printed).toContain('| add | 50.0 | 3.25 TB/s |  |  |\n| step | 100.0 |  | 250.0 | 2.50 |');
    expect(json).toMatchObject({ device: 'A GPU', tests: { failed: 1 }, cpp: { passed: 13, failed: 1 } });
    expect(json.rows[1]).toMatchObject({ torchUs: 250, ratio: 2.5 });
  });

  test('has no figures of a run without a GPU, and says when tests did not run', () => {
    const { printed, json } = reported({ 'device.json': { devices: [] }, 'small.json': [{ name: 'add' }] });
    expect(printed).toContain('none (software device). Device tests: did not run');
    expect(printed).toContain('No timings: there is no GPU.');
    expect(json.rows).toEqual([]);
  });
});
