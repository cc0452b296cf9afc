// results.json and results.md from what go.sh left in a folder.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const read = (name) => {
  const path = join(folder, name);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8') || 'null') : null;
};
const info = read('device.json');
const tests = read('tests.json');
const [ours, theirs] = [read('ringwise.json') ?? [], read('torch.json') ?? []];
const counts = tests && {
  passed: tests.numPassedTests,
  failed: tests.numFailedTests,
  skipped: tests.numPendingTests,
};
/** The last line of each C++ program. */
const log = join(folder, 'cpp.log');
const programs = existsSync(log) ? readFileSync(log, 'utf8').matchAll(/^(\d+) passed, (\d+) failed$/gm) : [];
const cpp = { passed: 0, failed: 0 };
for (const [, passed, failed] of programs) {
  cpp.passed += Number(passed);
  cpp.failed += Number(failed);
}
const device = info.devices[0]?.name ?? 'none (software device)';
const date = new Date().toISOString().slice(0, 10);
const rows = ours.map((row) => {
  const torch = theirs.find(({ name }) => name === row.name) ?? null;
  return { ...row, torchUs: torch?.us ?? null, ratio: torch ? torch.us / row.us : null };
});
writeFileSync(
  join(folder, 'results.json'),
  `${JSON.stringify({ date, device, info, tests: counts, cpp, rows }, null, 2)}\n`,
);

const figure = (value, digits = 1) => (value === null ? '' : value.toFixed(digits));
const table = rows.map(
  ({ name, us, rate, unit, torchUs, ratio }) =>
    `| ${name} | ${figure(us)} | ${rate === null ? '' : `${figure(rate, 2)} ${unit}`} | ${figure(torchUs)} | ${figure(ratio, 2)} |`,
);
const text = [
  `${date}, ${device}. Device tests: ${counts ? `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped` : 'did not run'}; in C++: ${cpp.passed} passed, ${cpp.failed} failed.`,
  '',
  ...(rows.length > 0
    ? ['| workload | µs | rate | PyTorch µs | PyTorch / ours |', '| --- | --- | --- | --- | --- |', ...table]
    : ['No timings: there is no GPU.']),
];
writeFileSync(join(folder, 'results.md'), `${text.join('\n')}\n`);
process.stdout.write(`${text.join('\n')}\n`);
