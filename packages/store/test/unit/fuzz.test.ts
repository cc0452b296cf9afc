import { afterEach, expect, it } from 'vitest';
import { Fuzzer, type Mode, modes } from '../support/fuzz.ts';

const warnings: Error[] = [];
const note = (warning: Error) => warnings.push(warning);
process.on('warning', note);
afterEach(() => {
  // A session that finds an internal error emits a warning.
  expect(warnings.splice(0)).toEqual([]);
});

it.each(modes)('takes 10,000 frames of any kind and goes on serving (%s)', async (mode: Mode) => {
  const fuzzer = new Fuzzer(20261121 + modes.indexOf(mode));
  while (fuzzer.frames < 10_000) fuzzer.session(mode);
  await new Promise((resolve) => setImmediate(resolve));
  expect(fuzzer.serves()).toBe(true);
  // The server accepts most frames of authenticated clients, but not all.
  if (mode !== 'outsider') expect(fuzzer.survived / fuzzer.frames).toBeGreaterThan(0.5);
  expect(fuzzer.sessions).toBeGreaterThan(10_000 / 40);
});

it('sends as many frames in as many sessions for the same seed', () => {
  const [one, two] = [new Fuzzer(7), new Fuzzer(7)];
  for (const fuzzer of [one, two]) while (fuzzer.frames < 500) fuzzer.session('new');
  expect(one.sessions).toBe(two.sessions);
  expect(one.frames).toBe(two.frames);
});
