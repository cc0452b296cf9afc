// Checks that importing a package starts no thread, socket or timer, loads no native code and prints nothing.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

function manifest<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as T;
}

/** Returns all entry points of a package except the command, which runs when it is imported. */
function entriesOf(name: string): string[] {
  const { exports } = manifest<{ exports: object }>(`../../node_modules/${name}/package.json`);
  return Object.keys(exports)
    .filter((path) => path !== './package.json' && path !== './cli')
    .map((path) => name + path.slice(1));
}

// Prints the state before and after each import, from node's report and from the kernel's list of threads.
const program = `
  import { readdirSync } from 'node:fs';
  import { readFile } from 'node:fs/promises';
  await readFile('/dev/null'); // starts the threads that node reads modules with
  const seen = () => {
    const { libuv, sharedObjects } = process.report.getReport();
    const handles = libuv.filter((handle) => handle.is_active && handle.is_referenced).length;
    const addons = sharedObjects.filter((file) => file.endsWith('.node')).length;
    return { handles, addons, threads: readdirSync('/proc/self/task').length };
  };
  const start = seen();
  const after = {};
  for (const entry of process.argv.slice(1)) {
    await import(entry);
    after[entry] = seen();
  }
  console.log(JSON.stringify({ start, after }));`;

it('importing the umbrella or any package starts nothing and loads no native code', () => {
  const { dependencies } = manifest<{ dependencies: object }>('../../package.json');
  const umbrella = new URL('../../dist/index.js', import.meta.url).href;
  const entries = [...Object.keys(dependencies).flatMap(entriesOf), umbrella];
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', program, ...entries],
    { cwd: new URL('.', import.meta.url), encoding: 'utf8', timeout: 240_000 },
  );
  expect(stderr).toBe('');
  const { start, after } = JSON.parse(stdout);
  expect(start).toMatchObject({ handles: 0, addons: 0 });
  expect(after).toEqual(Object.fromEntries(entries.map((entry) => [entry, start])));
  expect(status).toBe(0); // the process ended by itself
});
