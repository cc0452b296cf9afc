import { randomBytes } from 'node:crypto';
import { serveStore } from '@ringwise/store';
import type { Rendezvous } from './env.ts';
import { storeFailed } from './errors.ts';

export interface HostedRendezvous extends Rendezvous {
  readonly close: () => Promise<void>;
}

/** Hosts the store of a new job, under a secret of its own. Port 0 takes a free one. */
export async function hostRendezvous(
  masterAddr: string,
  port: number,
  runId = randomBytes(4).toString('hex'),
): Promise<HostedRendezvous> {
  const secret = randomBytes(32).toString('hex');
  const store = await serveStore({ host: masterAddr, port, secret }).catch((cause: unknown) => {
    throw storeFailed(masterAddr, port, cause);
  });
  return { runId, masterAddr, masterPort: store.port, secret, close: store.close };
}
