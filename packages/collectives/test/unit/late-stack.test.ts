// Tests that the stack of an error is put into words only when it is read, and reads like any other stack then.
import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type CollectiveError, loopbackGroups } from '../../src/index.ts';
import { addToStack, stackLate } from '../../src/late-stack.ts';

class OwnError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OwnError';
    stackLate(this);
  }
}

function thrownHere(): OwnError {
  return new OwnError('it broke\ntwice');
}

/** Number of stacks that have become text, which is what Node.js reads source maps for. */
let written = 0;
const { prepareStackTrace } = Error;
beforeEach(() => {
  written = 0;
  Error.prepareStackTrace = (error, sites) => {
    written++;
    return [String(error), ...sites.map((site) => `    at ${site}`)].join('\n');
  };
});
afterEach(() => {
  Error.prepareStackTrace = prepareStackTrace;
});

it('becomes text when it is read first', () => {
  const error = thrownHere();
  addToStack(error, () => ['    at line.ts:1']);
  expect(written).toBe(0);
  const stack = error.stack!;
  expect(stack).toMatch(/^OwnError: it broke\ntwice\n {4}at thrownHere \(.*late-stack\.test\.ts:\d+:\d+\)\n/);
  expect(stack).toMatch(/\n {4}at line\.ts:1$/);
  expect(written).toBe(1);
  expect(error.stack).toBe(stack);
  expect(written).toBe(1);
});

it('what is added sees what is there, before the stack was read and after', () => {
  const error = thrownHere();
  const once = (stack: string) => (stack.includes('line.ts:2') ? [] : ['    at line.ts:2']);
  addToStack(error, once);
  addToStack(error, once);
  const stack = error.stack!;
  expect(stack.split('line.ts:2')).toHaveLength(2);
  addToStack(error, once);
  expect(error.stack).toBe(stack);
  addToStack(error, () => ['    at line.ts:3']);
  expect(error.stack).toBe(`${stack}\n    at line.ts:3`);
});

it('is an ordinary property to programs: hidden, writable, copied and shown with the cause', () => {
  const error = new OwnError('outer', { cause: new Error('inner') });
  expect(Object.keys(error)).toEqual(['name']);
  const text = inspect(error);
  expect(text).toMatch(/^OwnError: outer\n {4}at .*late-stack\.test\.ts/);
  expect(text).toContain('[cause]: Error: inner');
  expect(structuredClone(thrownHere()).stack).toContain('at thrownHere');
  const other = thrownHere();
  other.stack = 'of my own';
  expect(other.stack).toBe('of my own');
  addToStack(other, () => ['more']);
  expect(other.stack).toBe('of my own\nmore');
});

it('the failure of a call that is awaited stays unread until the program reads it', async () => {
  const [a, b] = loopbackGroups(2, { timeoutMs: 60_000 });
  const of = async (call: PromiseLike<unknown>): Promise<CollectiveError> =>
    await call.then(
      () => Promise.reject(new Error('it succeeded')),
      (error: CollectiveError) => error,
    );
  const before = written;
  const errors = await Promise.all([
    of(a!.allReduce(new Float32Array(1))),
    of(b!.allReduce(new Float32Array(2))),
  ]);
  expect(written).toBe(before);
  for (const error of errors) expect(error.stack).toContain('late-stack.test.ts');
  expect(written).toBeGreaterThan(before);
});
