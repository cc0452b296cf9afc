// Starts ranks of the host or tcp backend for a Pool.
import { type PoolStarter, startRanks, values } from '@ringwise/testing';

const module = new URL('./host-ranks.ts', import.meta.url);

/** `node`: the program that stands for node. */
export function hostRanks(areApart = false, node = process.execPath): PoolStarter {
  return ranksOn('host', areApart, node);
}

export function tcpRanks(): PoolStarter {
  return ranksOn('tcp', false, process.execPath);
}

function ranksOn(backend: string, areApart: boolean, node: string): PoolStarter {
  return async (size, port) => {
    const options = { args: [port, backend, areApart], timeoutMs: 300_000, node };
    const ranks = await startRanks(size, module, 'serveScenarios', options);
    return { ended: ranks.results.then(values) };
  };
}
