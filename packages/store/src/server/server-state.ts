// State that all connections of one server share.

import type { Secret } from '../wire/authentication.ts';
import { KeySpace } from './key-space.ts';
import { PendingConnections } from './pending-connections.ts';

/**
 * Maximum number of connections that are not admitted yet. A job may have more ranks: they are admitted within
 * milliseconds, and a rank that is turned away tries again.
 */
export const maxPending = 256;
/** Maximum number of rejected connections that are still open. */
const maxLeaving = 64;
/** Time in milliseconds from acceptance to the end of the authentication or, without a secret, of the first request. */
const admissionTimeoutMs = 10_000;
/** Time in milliseconds that a rejected client has to read the answer. */
const farewellTimeoutMs = 1_000;

export interface ServerState {
  readonly space: KeySpace;
  readonly secret: Secret | undefined;
  readonly onPlainClient: ((address: string) => void) | undefined;
  /** Connections that are not admitted yet. */
  readonly pending: PendingConnections;
  /** Connections that were rejected and have not closed yet. */
  readonly leaving: PendingConnections;
  /** Number of connected clients of torch 1.13 and 2.0. */
  oldClients: number;
  /** Number of silent connections that were kept beyond the deadline, because such clients open one each. */
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
