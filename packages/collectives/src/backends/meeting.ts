// Exchanges the addresses of the ranks of a group, and the proofs that they belong to it, for backends that use
// sockets.
import { createHmac, randomBytes } from 'node:crypto';
import { loopbackAddress } from '@ringwise/store';
import { exchange } from '../init/exchange.ts';
import type { BackendContext } from './context.ts';
import { addressTowards, isLoopbackName } from './host-address.ts';

/** Returns the address of this host at which the other ranks of the group reach it. */
export async function addressFor(context: BackendContext): Promise<string> {
  // Ranks that all met at a loopback address are on one machine, even if RINGWISE_HOST_ID separates them.
  const isOneHost = context.localSize === context.size || isLoopbackName(context.masterHost);
  return isOneHost ? loopbackAddress() : await addressTowards(context.masterHost);
}

/** Another rank: the data that it has sent, and the proofs that the two ranks show each other. */
export type Peer<Told> = Told & {
  readonly rank: number;
  /** 32 bytes each: the proof that this rank shows to the peer, and the one that it expects from the peer. */
  readonly mine: Uint8Array;
  readonly theirs: Uint8Array;
};

/**
 * Exchanges one payload of each rank through the store. Collective. Resolves with the other ranks, in rank order. The
 * proofs depend on the job's secret and on random values, so that they are valid for this exchange only.
 */
export async function meetPeers<Told extends object>(
  { group, rank, size, store, timeoutMs, secret }: BackendContext,
  told: Told,
): Promise<Peer<Told>[]> {
  const mine = { ...told, nonce: randomBytes(32).toString('hex') };
  const payload = Buffer.from(JSON.stringify(mine));
  const payloads = await exchange(store, rank, size, payload, timeoutMs, { group, rank, size });
  const cards = payloads.map((bytes) => JSON.parse(Buffer.from(bytes).toString()) as typeof mine);
  const prove = (from: number, to: number) =>
    createHmac('sha256', secret ?? '')
      .update(`ringwise ${from} to ${to}: ${cards[from]!.nonce} ${cards[to]!.nonce}`)
      .digest();
  return cards.flatMap((card, peer) =>
    peer === rank ? [] : [{ ...card, rank: peer, mine: prove(rank, peer), theirs: prove(peer, rank) }],
  );
}
