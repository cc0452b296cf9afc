import { describe, it } from 'vitest';
import { MemoryStore } from '../../src/index.ts';
import { storeContract } from '../../src/testing.ts';

const make = async () => {
  const store = new MemoryStore();
  return { connect: async () => store.clone(), close: () => store.close() };
};

storeContract('MemoryStore', make, { describe, it });
