// Makes a table of what a dry run has tried, from the report of vitest.

/** Returns a row per group of tests: what has happened to them, how many they are, and how long they took. */
export function rowsOf({ testResults }) {
  const groups = new Map();
  for (const { assertionResults } of testResults)
    for (const { ancestorTitles, title, status, duration } of assertionResults) {
      const name = ancestorTitles[0] ?? title;
      const group = groups.get(name) ?? { name, passed: 0, failed: 0, skipped: 0, ms: 0 };
      group[status === 'passed' || status === 'failed' ? status : 'skipped'] += 1;
      group.ms += duration ?? 0;
      groups.set(name, group);
    }
  // A file that could not begin has no tests, and must not look as if it had passed.
  const broken = testResults.filter(({ status, assertionResults }) => {
    return status === 'failed' && !assertionResults.some((test) => test.status === 'failed');
  });
  const files = broken.map(({ name }) => ({ name, passed: 0, failed: 1, skipped: 0, ms: 0 }));
  return [...groups.values(), ...files];
}

/** Returns the rows as lines for a terminal. */
export function tableOf(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length), 0);
  return rows
    .map(({ name, passed, failed, skipped, ms }) => {
      const state = failed > 0 ? 'FAILED ' : passed > 0 ? 'passed ' : 'skipped';
      const count = `${passed} of ${passed + failed + skipped}`.padStart(8);
      return `${state}  ${name.padEnd(width)}  ${count}  ${(ms / 1000).toFixed(1).padStart(6)} s`;
    })
    .join('\n');
}
