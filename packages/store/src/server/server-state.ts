// What all connections of one server share.

import type { Secret } from '../wire/authentication.ts';
import { KeySpace } from './key-space.ts';
import { PendingConnections } from './pending-connections.ts';

/** How many connections may be pending at once. Ranks are admitted within milliseconds, so more of them take turns. */
export const maxPending = 256;
/** How many that were turned away may still be open. */
const maxLeaving = 64;
/** From acceptance to the end of the authentication, or, without a secret, of the first request. */
const admissionTimeoutMs = 10_000;
/** How long a client that was turned away may take to read so. */
const farewellTimeoutMs = 1_000;

export interface ServerState {
  readonly space: KeySpace;
  readonly secret: Secret | undefined;
  readonly onPlainClient: ((address: string) => void) | undefined;
  readonly pending: PendingConnections;
  /** Connections that were turned away and have not closed yet. */
  readonly leaving: PendingConnections;
  /** Clients of torch 1.13 and 2.0, and their silent connections that have passed the deadline. */
  oldClients: number;
  oldWatches: number;
}

export function newServerState(
  secret: Secret | undefined,
  onPlainClient: ((address: string) => void) | undefined = undefined,
): ServerState {
  return {
    space: new KeySpace(),
    secret,
    onPlainClient,
    pending: new PendingConnections(maxPending, admissionTimeoutMs),
    leaving: new PendingConnections(maxLeaving, farewellTimeoutMs),
    oldClients: 0,
    oldWatches: 0,
  };
}
