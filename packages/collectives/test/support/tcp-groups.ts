// Groups on the tcp backend whose ranks are all in this process.
import { MemoryStore } from '@ringwise/store';
import type { BackendContext } from '../../src/backends/context.ts';
import { tcpBackend } from '../../src/backends/tcp/tcp.ts';
import { Group } from '../../src/group/group.ts';

export function tcpContext(rank: number, size: number, store = new MemoryStore()): BackendContext {
  const placed = { localRank: rank, localSize: size, masterHost: '127.0.0.1' };
  return { store, rank, size, ...placed, group: 'tcp', timeoutMs: 60_000, secret: 'of the test' };
}

/** Returns groups of `size` ranks, in rank order. */
export function tcpGroups(size: number): Promise<Group[]> {
  const store = new MemoryStore();
  const ranks = Array.from({ length: size }, async (_, rank) => {
    const backend = await tcpBackend(tcpContext(rank, size, store));
    return new Group(backend, { name: 'tcp', timeoutMs: 60_000 });
  });
  return Promise.all(ranks);
}
