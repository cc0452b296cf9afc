// The host backend: shared memory between the ranks of a host and TCP between hosts, run by a native progress
// thread. This file exchanges addresses; native-lane.ts passes operations to the native group. The design is
// described in native/coll/engine/host_group.h.

import { accessSync, constants } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { makeFolder } from '@ringwise/store';
import type { Verb } from '../all-verbs.ts';
import { allVerbs } from '../all-verbs.ts';
import type { Backend } from '../backend.ts';
import { CollectiveError, withFlightRecords } from '../errors.ts';
import type { FlightEntry } from '../flight/entry.ts';
import { allocHost } from '../group/buffer.ts';
import { callSite } from '../group/call-site.ts';
import { flightFolderNotUsable } from '../init/errors.ts';
import { isReducible } from '../reduce-ops.ts';
import { untilAborted } from '../until-aborted.ts';
import type { BackendContext, BackendFactory } from './context.ts';
import { Staging } from './device/staged.ts';
import { clockId, hostId } from './host-address.ts';
import { addressFor, meetPeers } from './meeting.ts';
import { loadNative, type NativeGroup, type NativePeer } from './native.ts';
import { abortNative, failureOf, Lane, verbIndex } from './native-lane.ts';
import { withSystemErrors } from './system-errors.ts';

/** Returns the names of a verb's algorithms between hosts. The first one works for every operation. */
export function algorithmsOf(verb: Verb): readonly string[] {
  return loadNative().algorithms(verbIndex[verb]);
}

export const hostBackend: BackendFactory = (context) =>
  withSystemErrors(context, () => makeHostBackend(context));

async function makeHostBackend(context: BackendContext): Promise<Backend> {
  const host = await addressFor(context);
  const { HostGroup } = loadNative();
  const flightFolder = process.env.RINGWISE_FLIGHT_DIR || null;
  const lane = new Lane(context, (failure) =>
    flightFolder === null ? failure : withFlightRecords(failure, flightFolder),
  );
  const native = new HostGroup(context.rank, context.size, host, lane.call, lane.onEnd, callSite);
  try {
    if (flightFolder !== null) dumpFlight(native, flightFolder, context);
    const peers = await meet(context, native, host);
    context.signal?.throwIfAborted();
    await untilAborted(context.signal, lane.ended(native.connect(peers, context.timeoutMs), 'init'));
  } catch (error) {
    native.destroy();
    throw error;
  }
  return hostBackendOf(context, native, lane);
}

const reducing: readonly Verb[] = ['allReduce', 'reduce', 'reduceScatter'];

function hostBackendOf(context: BackendContext, native: NativeGroup, lane: Lane): Backend {
  let closing: Promise<void> | undefined;
  const reproduced = new Set(reducing.filter((verb) => native.reproduces(verbIndex[verb])));
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
    reproduces: (verb) => reproduced.has(verb),
    // Copying less than a page is faster than sharing it.
    alloc: (count, dtype) => allocHost(count, dtype, (bytes) => (bytes < 4096 ? null : native.alloc(bytes))),
    failure: () => {
      const failure = closing === undefined ? native.failure() : null;
      return failure && failureOf(failure, 'init', null);
    },
    losses: () => {
      const losses = closing === undefined ? native.losses() : null;
      return losses && failureOf(losses, 'init', null);
    },
    flightRecord: () => JSON.parse(lastRecord ?? native.flightRecord()) as FlightEntry[],
    abort: (cause) => abortNative(native, cause),
    close,
  };
  const staging = new Staging(onHost, context.group);
  return { ...onHost, start: staging.start, run: staging.run, flightRecord: staging.flightRecord };
}

async function meet(context: BackendContext, native: NativeGroup, host: string): Promise<NativePeer[]> {
  const mine = { hostId: hostId(), unixName: native.unixName, host, port: native.port };
  const peers = await meetPeers(context, mine);
  return peers.map((peer) => ({ ...peer, local: peer.hostId === mine.hostId }));
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
    makeFolder(folder);
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
