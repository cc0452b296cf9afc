// Starts ranks of the host or tcp backend for a Pool.
import { type PoolStarter, startRanks, values } from '@ringwise/testing';

const module = new URL('./host-ranks.ts', import.meta.url);

export function hostRanks(areApart = false): PoolStarter {
  return ranksOn('host', areApart);
}

export function tcpRanks(): PoolStarter {
  return ranksOn('tcp', false);
}

function ranksOn(backend: string, areApart: boolean): PoolStarter {
  return async (size, port) => {
    const options = { args: [port, backend, areApart], timeoutMs: 300_000 };
    const ranks = await startRanks(size, module, 'serveScenarios', options);
    return { ended: ranks.results.then(values) };
  };
}
