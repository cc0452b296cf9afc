// The host backend: shared memory between the ranks of a host and TCP between hosts, run by a native progress
// thread. This file exchanges addresses; native-lane.ts passes operations to the native group. The design is
// described in native/coll/engine/host_group.h.

import { createHmac, randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { loopbackAddress } from '@ringwise/store';
import type { Verb } from '../all-verbs.ts';
import { allVerbs } from '../all-verbs.ts';
import type { Backend } from '../backend.ts';
import { CollectiveError, withFlightRecords } from '../errors.ts';
import type { FlightEntry } from '../flight/entry.ts';
import { allocHost } from '../group/buffer.ts';
import { callSite } from '../group/call-site.ts';
import { flightFolderNotUsable } from '../init/errors.ts';
import { exchange } from '../init/exchange.ts';
import { isReducible } from '../reduce-ops.ts';
import type { BackendContext, BackendFactory } from './context.ts';
import { Staging } from './device/staged.ts';
import { addressTowards, clockId, hostId, isLoopbackName } from './host-address.ts';
import { loadNative, type NativeGroup, type NativePeer } from './native.ts';
import { abortNative, Lane, verbIndex } from './native-lane.ts';

/** Returns the names of a verb's algorithms between hosts. The first one works for every operation. */
export function algorithmsOf(verb: Verb): readonly string[] {
  return loadNative().algorithms(verbIndex[verb]);
}

/** One rank's addresses, sent to all ranks. */
interface Card {
  readonly hostId: string;
  readonly unixName: string;
  readonly host: string;
  readonly port: number;
  /** Random value, so that the handshake's proofs are valid for this rendezvous only. */
  readonly nonce: string;
}

export const hostBackend: BackendFactory = async (context) => {
  // Ranks that all met at a loopback address are on one machine, even if RINGWISE_HOST_ID separates them.
  const isOneHost = context.localSize === context.size || isLoopbackName(context.masterHost);
  const host = isOneHost ? loopbackAddress() : await addressTowards(context.masterHost);
  const { HostGroup } = loadNative();
  const flightFolder = process.env.RINGWISE_FLIGHT_DIR || null;
  const lane = new Lane(context, (failure) =>
    flightFolder === null ? failure : withFlightRecords(failure, flightFolder),
  );
  const native = new HostGroup(context.rank, context.size, host, lane.call, lane.onEnd, callSite);
  try {
    if (flightFolder !== null) dumpFlight(native, flightFolder, context);
    const peers = await meet(context, native, host);
    await lane.ended(native.connect(peers, context.timeoutMs), 'init');
  } catch (error) {
    native.destroy();
    throw error;
  }
  return hostBackendOf(context, native, lane);
};

function hostBackendOf(context: BackendContext, native: NativeGroup, lane: Lane): Backend {
  let closing: Promise<void> | undefined;
  let lastRecord: string | undefined;
  const leave = async () => {
    await staging.close();
    try {
      await lane.ended(native.close(), 'close');
    } finally {
      lastRecord = native.flightRecord();
      native.destroy();
    }
  };
  const close = () => {
    closing ??= leave();
    return closing;
  };
  const onHost: Backend = {
    contract: 1,
    name: 'host',
    rank: context.rank,
    size: context.size,
    supports: { devices: ['cpu', 'cuda'], verbs: allVerbs, sync: true, reduces: isReducible },
    native,
    ...lane.operate(native),
    // Copying less than a page is faster than sharing it.
    alloc: (count, dtype) => allocHost(count, dtype, (bytes) => (bytes < 4096 ? null : native.alloc(bytes))),
    flightRecord: () => JSON.parse(lastRecord ?? native.flightRecord()) as FlightEntry[],
    abort: (cause) => abortNative(native, cause),
    close,
  };
  const staging = new Staging(onHost, context.group);
  return { ...onHost, start: staging.start, run: staging.run, flightRecord: staging.flightRecord };
}

async function meet(context: BackendContext, native: NativeGroup, host: string): Promise<NativePeer[]> {
  const { rank, size, store, timeoutMs } = context;
  const nonce = randomBytes(32).toString('hex');
  const mine: Card = { hostId: hostId(), unixName: native.unixName, host, port: native.port, nonce };
  const payloads = await exchange(store, rank, size, Buffer.from(JSON.stringify(mine)), timeoutMs);
  const cards = payloads.map((bytes) => JSON.parse(Buffer.from(bytes).toString()) as Card);
  const prove = (from: number, to: number) =>
    createHmac('sha256', context.secret ?? '')
      .update(`ringwise ${from} to ${to}: ${cards[from]!.nonce} ${cards[to]!.nonce}`)
      .digest();
  return cards.flatMap((card, peer) =>
    peer === rank
      ? []
      : [
          {
            ...card,
            rank: peer,
            local: card.hostId === mine.hostId,
            mine: prove(rank, peer),
            theirs: prove(peer, rank),
          },
        ],
  );
}

/** Number of groups of this thread that dump their flight records; makes file names unique. */
let dumped = 0;

function dumpFlight(native: NativeGroup, folder: string, { group, rank, size }: BackendContext): void {
  const head = {
    ringwise: 'flight record',
    group,
    rank,
    size,
    host: hostname(),
    clock: clockId(),
    pid: process.pid,
    thread: threadId,
    index: dumped,
  };
  const name = group.replace(/[^\w.-]+/g, '_');
  const file = join(folder, `ringwise-${name}-rank${rank}-${process.pid}-${dumped++}.json`);
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    native.dumpFlightTo(file, JSON.stringify(head));
  } catch (cause) {
    throw new CollectiveError(
      flightFolderNotUsable(folder, (cause as Error).message),
      { group, rank, size },
      { cause },
    );
  }
}
