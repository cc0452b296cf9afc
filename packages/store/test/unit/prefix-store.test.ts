import { describe, expect, it } from 'vitest';
import { MemoryStore, PrefixStore } from '../../src/index.ts';
import { storeContract } from '../../src/testing.ts';

const make = async () => {
  const store = new MemoryStore();
  return { connect: async () => new PrefixStore('p', store), close: () => store.close() };
};

storeContract('PrefixStore', make, { describe, it });

describe('PrefixStore', () => {
  it('puts the innermost prefix first, as torch does', async () => {
    const store = new MemoryStore();
    const nested = new PrefixStore('outer', new PrefixStore('inner', store));
    await nested.set('k', 'v');
    expect(await store.check(['inner/outer/k'])).toBe(true);
    expect(await store.numKeys()).toBe(1);
  });

  it('leaves the store open when it is closed', async () => {
    const store = new MemoryStore();
    const view = new PrefixStore('p', store);
    await view.set('k', 'v');
    await view.close();
    expect(await store.get('p/k')).toEqual(new Uint8Array(Buffer.from('v')));
  });
});
