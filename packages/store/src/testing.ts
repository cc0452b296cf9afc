// The contract of store.ts as tests. The test file of a store, also of one outside this package, calls storeContract()
// with a factory.

import assert from 'node:assert/strict';
import type { StoreErrorCode } from './errors.ts';
import { getIfPresent } from './get-if-present.ts';
import type { Store } from './store.ts';

/** The test runner's functions. Those of vitest, jest and node:test all fit. */
export interface TestRunner {
  /** Groups tests under a name. */
  readonly describe: (name: string, body: () => void) => unknown;
  /** Adds a test. */
  readonly it: (name: string, body: () => Promise<void>) => unknown;
}

/** A store that is empty at first. */
export interface StoreFixture {
  /** Returns a new client of the store; the suite closes it. */
  readonly connect: () => Promise<Store>;
  /** Called once after all clients were closed. */
  readonly close: () => Promise<void>;
}

type Connect = () => Promise<Store>;

/** Defines the tests that every store must pass. `make` is called once per test. */
export function storeContract(name: string, make: () => Promise<StoreFixture>, runner: TestRunner): void {
  const cases = { ...valueCases, ...waitCases, ...orderCases, ...argumentCases };
  runner.describe(`${name}: store contract`, () => {
    for (const [title, run] of Object.entries(cases)) {
      runner.it(title, async () => {
        const fixture = await make();
        const clients: Store[] = [];
        try {
          await run(async () => {
            const client = await fixture.connect();
            clients.push(client);
            return client;
          });
        } finally {
          await Promise.all(clients.map((client) => client.close()));
          await fixture.close();
        }
      });
    }
  });
}

const text = (value: Uint8Array) => new TextDecoder().decode(value);

async function assertRejects(
  call: Promise<unknown>,
  code: StoreErrorCode,
): Promise<Error & { keys: string[] }> {
  const outcome = await call.then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  assert.ok('error' in outcome, `expected ${code}, but the call succeeded`);
  assert.equal(outcome.error.code, code, outcome.error);
  return outcome.error;
}

const valueCases: Record<string, (connect: Connect) => Promise<void>> = {
  'shows a value to every client, as bytes of its own': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    const value = Uint8Array.of(0, 255, 10, 47);
    const stored = a.set('k', value);
    value.fill(7);
    await stored;
    const first = await b.get('k');
    assert.deepEqual(first, Uint8Array.of(0, 255, 10, 47));
    first.fill(9);
    assert.deepEqual(await b.get('k'), Uint8Array.of(0, 255, 10, 47));
    assert.equal(first.byteLength, first.buffer.byteLength);
  },
  'stores strings as UTF-8, and the empty value': async (connect) => {
    const store = await connect();
    await store.set('schlüssel/κ/鍵', 'grün 🌱');
    assert.equal(text(await store.get('schlüssel/κ/鍵')), 'grün 🌱');
    await store.set('empty', '');
    assert.deepEqual(await store.get('empty'), new Uint8Array());
    assert.equal(await store.check(['empty']), true);
  },
  'carries values of megabytes': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    const value = Uint8Array.from({ length: 3_000_001 }, (_, index) => index % 251);
    await a.set('big', value);
    assert.equal(Buffer.compare(await b.get('big'), value), 0);
  },
  'replaces a value': async (connect) => {
    const store = await connect();
    await store.set('k', 'one');
    await store.set('k', 'two');
    assert.equal(text(await store.get('k')), 'two');
  },
  'adds to counters kept as decimal text': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    assert.equal(await a.add('n', 5), 5);
    assert.equal(await b.add('n', -7), -2);
    assert.equal(text(await a.get('n')), '-2');
    assert.equal(await a.add('zero', 0), 0);
    assert.equal(await b.check(['zero']), true);
    await b.set('n', '40');
    assert.equal(await a.add('n', 2), 42);
    assert.equal(await a.add('large', Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  },
  'gives each of many concurrent adds its own sum': async (connect) => {
    const clients = [await connect(), await connect(), await connect()];
    const sums = await Promise.all(
      Array.from({ length: 60 }, (_, index) => clients[index % clients.length]!.add('n', 1)),
    );
    assert.deepEqual(
      sums.toSorted((x, y) => x - y),
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
  },
  'refuses to add to a value that is no number': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    await a.set('word', 'five');
    // A TCP server can only end the connection here.
    await assert.rejects(a.add('word', 1));
    assert.equal(text(await b.get('word')), 'five');
  },
  'swaps only what is expected': async (connect) => {
    const store = await connect();
    assert.equal(text(await store.compareSet('k', 'x', 'y')), 'x');
    assert.equal(await store.check(['k']), false);
    assert.equal(text(await store.compareSet('k', '', 'first')), 'first');
    assert.equal(text(await store.compareSet('k', 'other', 'second')), 'first');
    assert.equal(text(await store.compareSet('k', 'first', 'second')), 'second');
    assert.equal(text(await store.get('k')), 'second');
  },
  'reads a key without waiting for it': async (connect) => {
    const store = await connect();
    assert.equal(await getIfPresent(store, 'k'), null);
    assert.equal(await store.check(['k']), false);
    await store.set('k', '');
    assert.equal(text((await getIfPresent(store, 'k'))!), '');
    await store.set('k', 'value');
    assert.equal(text((await getIfPresent(store, 'k'))!), 'value');
    assert.equal(text(await store.get('k')), 'value');
    await assertRejects(getIfPresent(store, ''), 'ERR_STORE_ARGUMENT');
  },
  'lets exactly one of several swaps win': async (connect) => {
    const clients = [await connect(), await connect(), await connect()];
    const results = await Promise.all(
      clients.map((client, index) => client.compareSet('leader', '', `rank ${index}`)),
    );
    const winner = text(await clients[0]!.get('leader'));
    assert.deepEqual(results.map(text), [winner, winner, winner]);
  },
  appends: async (connect) => {
    const store = await connect();
    await store.append('log', 'ab');
    await store.append('log', 'cd');
    assert.equal(text(await store.get('log')), 'abcd');
  },
  'checks, deletes and counts keys': async (connect) => {
    const store = await connect();
    const before = await store.numKeys();
    await store.set('a', '1');
    assert.equal(await store.check(['a', 'b']), false);
    await store.add('b', 1);
    assert.equal(await store.check(['a', 'b']), true);
    assert.equal(await store.check([]), true);
    assert.equal(await store.numKeys(), before + 2);
    assert.equal(await store.delete('a'), true);
    assert.equal(await store.delete('a'), false);
    assert.equal(await store.check(['a']), false);
    assert.equal(await store.numKeys(), before + 1);
  },
  'reads and writes many keys at once, in order': async (connect) => {
    const store = await connect();
    await store.multiSet(
      new Map<string, Uint8Array | string>([
        ['x', '1'],
        ['y', Uint8Array.of(2, 2)],
        ['z', ''],
      ]),
    );
    const values = await store.multiGet(['z', 'y', 'x', 'y']);
    assert.deepEqual(
      values.map((value) => [...value]),
      [[], [2, 2], [49], [2, 2]],
    );
    await store.multiSet(new Map());
    assert.deepEqual(await store.multiGet([]), []);
  },
};

const waitCases: Record<string, (connect: Connect) => Promise<void>> = {
  'get waits until another client sets the key': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    const value = a.get('later');
    await b.set('later', 'here');
    assert.equal(text(await value), 'here');
  },
  'a waiting call holds up no other call of its client': async (connect) => {
    const store = await connect();
    const waits = Array.from({ length: 20 }, (_, index) => store.get(`w${index}`));
    for (let index = 19; index >= 0; index--) {
      await store.set(`w${index}`, String(index));
      assert.equal(text(await waits[index]!), String(index));
    }
    assert.equal(await store.add('n', 1), 1);
  },
  'every mutation wakes the calls that wait for its key': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    const values = a.multiGet(['set', 'add', 'append', 'swap', 'many']);
    await b.set('set', '1');
    await b.add('add', 2);
    await b.append('append', '3');
    await b.compareSet('swap', '', '4');
    await b.multiSet(new Map([['many', '5']]));
    assert.deepEqual((await values).map(text), ['1', '2', '3', '4', '5']);
  },
  'wait names the keys that are missing at its deadline': async (connect) => {
    const store = await connect();
    await store.set('there', '1');
    const error = await assertRejects(
      store.wait(['gone', 'there', 'lost'], { timeoutMs: 40 }),
      'ERR_STORE_TIMEOUT',
    );
    // A PrefixStore's errors name the keys with their prefix.
    assert.deepEqual(
      error.keys.map((key) => key.replace(/^.*\//, '')),
      ['gone', 'lost'],
    );
    assert.match(error.message, /^wait: waited 40 ms; missing 2 of 3 keys: "\S*gone", "\S*lost"/);
    await assertRejects(store.get('gone', { timeoutMs: 0 }), 'ERR_STORE_TIMEOUT');
    await store.wait(['there'], { timeoutMs: 0 });
    // The client still works.
    assert.equal(text(await store.get('there')), '1');
    const later = store.get('gone');
    await store.set('gone', '2');
    assert.equal(text(await later), '2');
  },
  'a signal ends a wait with its reason, and only that one': async (connect) => {
    const store = await connect();
    const stop = new AbortController();
    const reason = new Error('stop');
    const ended = store.wait(['never'], { signal: stop.signal });
    const other = store.wait(['soon']);
    stop.abort(reason);
    await assert.rejects(ended, (error) => error === reason);
    await assert.rejects(store.get('never', { signal: stop.signal }), (error) => error === reason);
    await store.set('soon', '1');
    await other;
    await store.wait(['soon']);
  },
  'many waits may share a signal, without a warning from Node': async (connect) => {
    const store = await connect();
    const stop = new AbortController();
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on('warning', keep);
    const waits = Array.from({ length: 15 }, () => store.wait(['never'], { signal: stop.signal }));
    const outcomes = Promise.allSettled(waits);
    await store.set('k', 'v');
    stop.abort(new Error('stop'));
    assert.ok((await outcomes).every((outcome) => outcome.status === 'rejected'));
    await new Promise(setImmediate); // warnings come late
    process.off('warning', keep);
    assert.deepEqual(warnings, []);
  },
  'close ends pending waits and later calls, of this client only': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    await a.set('kept', '1');
    const pending = assertRejects(a.get('never'), 'ERR_STORE_CLOSED');
    await a.close();
    await pending;
    await assertRejects(a.set('k', 'v'), 'ERR_STORE_CLOSED');
    await assertRejects(a.get('kept'), 'ERR_STORE_CLOSED');
    await a.close();
    assert.equal(text(await b.get('kept')), '1');
  },
};

const orderCases: Record<string, (connect: Connect) => Promise<void>> = {
  'calls of one client take effect in the order in which they were made': async (connect) => {
    const store = await connect();
    const results = await Promise.all([
      store.set('k', '1'),
      store.add('k', 1),
      store.append('k', '0'),
      store.compareSet('k', '20', 'end'),
      store.check(['k']),
      store.delete('k'),
      store.check(['k']),
    ]);
    assert.equal(results[1], 2);
    assert.equal(text(results[3]), 'end');
    assert.deepEqual(results.slice(4), [true, true, false]);
  },
  'a value that one client has set is at once visible to another': async (connect) => {
    const [a, b] = [await connect(), await connect()];
    for (let turn = 0; turn < 20; turn++) {
      await a.set('turn', String(turn));
      assert.equal(text(await b.get('turn')), String(turn));
    }
  },
};

const argumentCases: Record<string, (connect: Connect) => Promise<void>> = {
  'refuses bad arguments before it does anything': async (connect) => {
    const store = await connect();
    const bad = {} as never;
    await assertRejects(store.set('', 'v'), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.set(bad, 'v'), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.set('k', bad), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.add('k', 0.5), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.add('k', 2 ** 53), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.wait(bad), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.multiSet({ k: 'v' } as never), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.get('k', { timeoutMs: Number.NaN }), 'ERR_STORE_ARGUMENT');
    assert.equal(await store.check(['k']), false);
  },
  'refuses long keys and huge values, which no server would accept': async (connect) => {
    const store = await connect();
    await assertRejects(store.set('k'.repeat(8192), 'v'), 'ERR_STORE_ARGUMENT');
    await assertRejects(store.set('k', new Uint8Array(8 * 2 ** 20 + 1)), 'ERR_STORE_ARGUMENT');
    await store.set('k'.repeat(8000), 'v');
    assert.equal(await store.check(['k'.repeat(8000)]), true);
  },
};
