// The standby store of a launcher of an elastic job, used if the host of the job's store is lost. Views have its
// address, and the ranks move to it by themselves (@ringwise/elastic, membership/job-store.ts).

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveStore, TcpStore } from '@ringwise/store';
import type { Outcome } from '../messages.ts';
import { type Meeting, whereIs } from '../rendezvous.ts';
import { type AdmissionOptions, admitAfterMove } from './admit.ts';

export interface Standby {
  /** Address as `host:port` at which ranks of all hosts reach the store. */
  readonly address: string;
  /**
   * Closes the store. If the job has moved to it, first gives other hosts some time to read the outcome of the job from
   * it; `outcome` is null if it is unknown.
   */
  readonly close: (outcome: Outcome | null) => Promise<void>;
}

export interface StandbyOptions extends Pick<AdmissionOptions, 'maxRanks' | 'keepAlive' | 'onView'> {
  /** Called with the address of the store, for --rdzv-endpoint, when the job has moved to it. */
  readonly onMove: (address: string) => void;
}

/** Milliseconds that a store to which the job has moved stays open after the ranks of its host have ended. */
const lingerMs = 2_000;

/**
 * Opens the store on the interface that routes to the job's store. On the host of the job's store, returns that store.
 */
export async function openStandby(meeting: Meeting, options: StandbyOptions): Promise<Standby> {
  const { masterAddr, masterPort, secret, runId, isHost } = meeting;
  if (isHost) return { address: `${masterAddr}:${masterPort}`, close: async () => {} };
  const host = await addressTowards(masterAddr, masterPort);
  const server = await serveStore({ host, port: 0, ...(secret && { secret }) });
  const address = `${host}:${server.port}`;
  const store = await TcpStore.connect({ host, port: server.port, ...(secret && { secret }) });
  const { onMove, ...rest } = options;
  const shown = whereIs({ masterAddr: host, masterPort: server.port });
  const admission = admitAfterMove(store, { ...rest, runId, onMove: () => onMove(shown) });
  return {
    address,
    close: async (outcome) => {
      const wait = admission.hasMoved() ? sleep(lingerMs) : null;
      await admission.close(outcome);
      await wait;
      await store.close();
      await server.close();
    },
  };
}

/** Returns the address of the interface that routes to a host. Sends nothing. */
async function addressTowards(host: string, port: number): Promise<string> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  try {
    socket.connect(port, host);
    await once(socket, 'connect');
    return socket.address().address;
  } finally {
    socket.close();
  }
}
