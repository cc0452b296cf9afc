// Tests that `ringwise/NAME` gives what `@ringwise/NAME` gives, for every entry of every package.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** Entries that run a command when they are imported, or that only the command `ringwise` imports. */
const commands = [
  'collectives/bench',
  'collectives/doctor',
  'collectives/flight',
  'collectives/plan',
  'launch/cli',
  'tensor/doctor',
];

const read = (path: string): { readonly exports: Readonly<Record<string, unknown>> } =>
  JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as never;

const names = ['collectives', 'data', 'ddp', 'elastic', 'formats', 'launch', 'store', 'tensor'];

/** The entries of all packages, such as tensor/nn. */
const entries = names
  .flatMap((name) => {
    const subpaths = Object.keys(read(`../../../${name}/package.json`).exports);
    return subpaths.filter((path) => path !== './package.json').map((path) => name + path.slice(1));
  })
  .filter((entry) => !commands.includes(entry));

it('ringwise exports an entry of its own for each entry of each package', () => {
  const own = Object.keys(read('../../package.json').exports)
    .filter((path) => path !== '.' && path !== './package.json')
    .map((path) => path.slice(2));
  expect(own.toSorted()).toEqual(entries.toSorted());
});

it.each(entries)('ringwise/%s has the same exports as the package', async (entry) => {
  // One after the other: vitest may load a module twice if it is imported twice at the same time.
  const ours = (await import(`ringwise/${entry}`)) as Record<string, unknown>;
  const theirs = (await import(`@ringwise/${entry}`)) as Record<string, unknown>;
  expect(Object.keys(theirs).length).toBeGreaterThan(0);
  expect(Object.keys(ours)).toEqual(Object.keys(theirs));
  for (const name of Object.keys(theirs)) expect(ours[name]).toBe(theirs[name]);
});

it.each(entries)('classes of ringwise/%s have the names under which they are exported', async (entry) => {
  const exported = Object.entries((await import(`ringwise/${entry}`)) as Record<string, unknown>);
  const classes = exported.filter(([, value]) => typeof value === 'function' && /^class\b/.test(`${value}`));
  const named = classes.map(([name, value]) => [name, (value as { readonly name: string }).name]);
  expect(named).toEqual(classes.map(([name]) => [name, name]));
});
