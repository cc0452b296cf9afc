// Writes results.json and results.md from the files that go.sh left in a folder, and prints results.md.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const read = (name) => {
  const path = join(folder, name);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8') || 'null') : null;
};
const info = read('device.json');
const ours = ['ringwise', 'ringwise-ddp', 'ringwise-gpt2'].flatMap((name) => read(`${name}.json`) ?? []);
const theirs = ['torch', 'torch-gpt2'].flatMap((name) => read(`${name}.json`) ?? []);
/** Results of each call of tests() in go.sh. A call that was ended by its time limit has left only a log. */
const tests = ['tensor', 'full-lost', 'full-cuda', 'ddp', 'nccl', 'captured', 'mixed'].flatMap((name) => {
  if (!existsSync(join(folder, `tests-${name}.log`))) return [];
  const report = read(`tests-${name}.json`);
  if (report === null) return [{ name, failures: [`did not end: see tests-${name}.log`] }];
  const { numPassedTests: passed, numFailedTests: failed, numPendingTests: skipped } = report;
  const failures = report.testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  );
  return [{ name, passed, failed, skipped, failures }];
});
/** The log of the C++ tests. The last line of each program counts its tests. */
const log = join(folder, 'cpp.log');
const programs = existsSync(log) ? readFileSync(log, 'utf8').matchAll(/^(\d+) passed, (\d+) failed$/gm) : [];
const cpp = { passed: 0, failed: 0 };
for (const [, passed, failed] of programs) {
  cpp.passed += Number(passed);
  cpp.failed += Number(failed);
}
/** The lines of the part `smoke`. */
const smokeLog = join(folder, 'smoke.log');
const smoke = existsSync(smokeLog) ? readFileSync(smokeLog, 'utf8').trim().split('\n') : [];
const device = info.devices[0]?.name ?? 'none (software device)';
const date = new Date().toISOString().slice(0, 10);
const rows = ours.map((row) => {
  const torch = theirs.find(({ name }) => name === row.name) ?? null;
  return { ...row, torchUs: torch?.us ?? null, ratio: torch ? torch.us / row.us : null };
});
/** Names of the rows that have goals. */
const [eager, captured] = ['eager', 'captured'].map((how) => `MLP 784-512-512-10 step, batch 32, ${how}`);
const enqueued = 'allReduce of 16 float32 by one rank, until it is on the stream';
const us = (from, name) => from.find((row) => row.name === name)?.us ?? Number.NaN;
const rateOf = (name) => ours.find((row) => row.name === name)?.rate ?? Number.NaN;
const withDdp = (how) => `MLP 784-512-512-10 step, batch 32, DDP of one rank, ${how}`;
const gates = [
  ['MLP eager, over PyTorch eager', us(theirs, eager) / us(ours, eager), '>=', 2.5],
  ['MLP captured, over PyTorch eager', us(theirs, eager) / us(ours, captured), '>=', 8],
  ["MLP captured, over PyTorch's CUDA graph", us(theirs, captured) / us(ours, captured), '>=', 1.3],
  ['MLP captured, µs', us(ours, captured), '<=', 35],
  ['DDP of one rank over the bare step, eager', rateOf(withDdp('eager')), '<=', 1.02],
  ['DDP of one rank over the bare step, captured', rateOf(withDdp('captured')), '<=', 1.02],
  [
    "an allReduce's time until it is on the stream, over PyTorch's",
    us(ours, enqueued) / us(theirs, enqueued),
    '<=',
    1,
  ],
]
  .filter(([, value]) => Number.isFinite(value))
  .map(([what, value, sign, goal]) => {
    const isReached = sign === '>=' ? value >= goal : value <= goal;
    return { what, value, goal: `${sign} ${goal}`, isReached };
  });
writeFileSync(
  join(folder, 'results.json'),
  `${JSON.stringify({ date, device, info, smoke, tests, cpp, gates, rows }, null, 2)}\n`,
);

const figure = (value, digits = 1) => (value === null ? '' : value.toFixed(digits));
const table = rows.map(
  ({ name, us, rate, unit, torchUs, ratio }) =>
    `| ${name} | ${figure(us)} | ${rate === null ? '' : `${figure(rate, 2)} ${unit}`} | ${figure(torchUs)} | ${figure(ratio, 2)} |`,
);
const countOf = ({ passed, failed, skipped, failures }) =>
  passed === undefined ? failures[0] : `${passed} passed, ${failed} failed, ${skipped} skipped`;
const version = ({ name, version }) => `${name} ${version || 'missing'}`;
const text = [
  `${date}, ${device}; ${info.libraries.map(version).join(', ')}.`,
  '',
  ...(smoke.length > 0 ? [...smoke.map((line) => `- ${line}`), ''] : []),
  '| tests | |',
  '| --- | --- |',
  ...tests.map((group) => `| ${group.name} | ${countOf(group)} |`),
  ...(cpp.passed + cpp.failed > 0 ? [`| in C++ | ${cpp.passed} passed, ${cpp.failed} failed |`] : []),
  '',
  ...tests.flatMap(({ name, passed, failures }) =>
    passed === undefined ? [] : failures.map((failure) => `- failed (${name}): ${failure}`),
  ),
  ...(gates.length > 0
    ? [
        '| goal | | found |',
        '| --- | --- | --- |',
        ...gates.map((gate) => `| ${gate.what} | ${gate.goal} | ${figure(gate.value, 2)} |`),
        '',
      ]
    : []),
  ...(rows.length > 0
    ? ['| workload | µs | rate | PyTorch µs | PyTorch / ours |', '| --- | --- | --- | --- | --- |', ...table]
    : ['No timings.']),
];
writeFileSync(join(folder, 'results.md'), `${text.join('\n')}\n`);
process.stdout.write(`${text.join('\n')}\n`);
