import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const report = fileURLToPath(new URL('../../../tools/gpu/report.mjs', import.meta.url));

describe('tools/gpu/report.mjs', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ringwise-report-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Writes these files into the folder and returns the report's text and JSON. */
  const reported = (files: Record<string, unknown>) => {
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
    const printed = execFileSync(process.execPath, [report, folder], { encoding: 'utf8' });
    expect(readFileSync(join(folder, 'results.md'), 'utf8')).toBe(printed);
    return { printed, json: JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8')) };
  };
  const device = {
    devices: [{ name: 'A GPU' }],
    libraries: [
      { name: 'cublasLt', version: '13.1' },
      { name: 'nccl', version: '' },
    ],
  };
  const tests = {
    ...{ numPassedTests: 600, numFailedTests: 1, numPendingTests: 2 },
    testResults: [
      {
        assertionResults: [
          { status: 'passed', fullName: 'kernels add' },
          { status: 'failed', fullName: 'kernels mul' },
        ],
      },
    ],
  };
  const log = 'a\non GPU\n9 passed, 0 failed\nb\non GPU\n4 passed, 1 failed\n';

  test('puts our timings beside those of PyTorch, by name, and adds up the tests', () => {
    const { printed, json } = reported({
      'device.json': device,
      'tests-tensor.json': tests,
      'tests-tensor.log': '',
      'tests-nccl.log': 'ended by its limit',
      'tests-captured.json': { ...tests, numFailedTests: 0, testResults: [] },
      'tests-captured.log': '',
      'cpp.log': log,
      'smoke.log': 'good: versions (1 s): A GPU\nFAILED: full (9 s): no error\n',
      'ringwise.json': [
        { name: 'add', us: 50, unit: 'TB/s', rate: 3.25 },
        { name: 'MLP 784-512-512-10 step, batch 32, eager', us: 100, unit: '', rate: null },
      ],
      'torch.json': [{ name: 'MLP 784-512-512-10 step, batch 32, eager', us: 220, unit: '', rate: null }],
    });
    expect(printed).toMatch(/, A GPU; cublasLt 13\.1, nccl missing\.\n/);
    expect(printed).toContain('| tensor | 600 passed, 1 failed, 2 skipped |\n');
    expect(printed).toContain('| nccl | did not end: see tests-nccl.log |\n');
    expect(printed).toContain('| captured | 600 passed, 0 failed, 2 skipped |\n');
    expect(printed).toContain('- good: versions (1 s): A GPU\n- FAILED: full (9 s): no error\n\n| tests');
    expect(printed).toContain('| in C++ | 13 passed, 1 failed |\n');
    expect(printed).toContain('- failed (tensor): kernels mul\n');
    expect(printed).toContain('| MLP eager, over PyTorch eager | >= 2.5 | 2.20 |\n');
    expect(printed).toContain('| add | 50.0 | 3.25 TB/s |  |  |\n');
    expect(printed).toContain('step, batch 32, eager | 100.0 |  | 220.0 | 2.20 |\n');
    expect(json).toMatchObject({ device: 'A GPU', cpp: { passed: 13, failed: 1 } });
    expect(json.tests[0]).toMatchObject({ name: 'tensor', failed: 1, failures: ['kernels mul'] });
    expect(json.gates).toEqual([
      { what: 'MLP eager, over PyTorch eager', value: 2.2, goal: '>= 2.5', isReached: false },
    ]);
    expect(json.rows[1]).toMatchObject({ torchUs: 220, ratio: 2.2 });
  });

  test('has no figures of a run without a GPU', () => {
    const { printed, json } = reported({
      'device.json': { devices: [], libraries: [] },
      'small.json': [{ name: 'add' }],
    });
    expect(printed).toContain('none (software device)');
    expect(printed).toContain('No timings.');
    expect(json.rows).toEqual([]);
  });
});
