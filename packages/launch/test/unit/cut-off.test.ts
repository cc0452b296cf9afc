// Tests launchers whose network is cut when the job has ended: their calls of the store get no answer until the
// deadline of the store, which is longer than these tests may take.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { serveStore, TcpStore } from '@ringwise/store';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSlotAgent } from '../../src/agent/slot-agent.ts';
import { forward } from '../../src/monitor/forward.ts';
import { boxOf, coordinatorBox } from '../../src/rendezvous/coordinate.ts';
import { inbox, Outbox } from '../../src/rendezvous/mailbox.ts';
import { type Order, parseReport } from '../../src/rendezvous/messages.ts';
import { takePart } from '../../src/rendezvous/take-part.ts';

let server: Awaited<ReturnType<typeof serveStore>>;
let network: Server;
let sockets: Socket[];
/** Called with what a client sends; the network is cut from the first time that it returns true. */
let cutsAt: (sent: string) => boolean;
let direct: TcpStore;
let cut: TcpStore;

beforeEach(async () => {
  server = await serveStore();
  sockets = [];
  cutsAt = () => false;
  let isCut = false;
  network = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    sockets.push(client, upstream);
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.on('data', (bytes) => {
      isCut ||= cutsAt(bytes.toString('latin1'));
      if (!isCut) upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (!isCut) client.write(bytes);
    });
  });
  await once(network.listen(0, '127.0.0.1'), 'listening');
  const { port } = network.address() as AddressInfo;
  direct = await TcpStore.connect({ host: '127.0.0.1', port: server.port, timeoutMs: 60_000 });
  cut = await TcpStore.connect({ host: '127.0.0.1', port, timeoutMs: 600_000 });
});

afterEach(async () => {
  await cut.close();
  await direct.close();
  for (const socket of sockets) socket.destroy();
  network.close();
  await server.close();
});

it('a launcher ends although it cannot say goodbye', async () => {
  cutsAt = (sent) => sent.includes('"kind":"bye"');
  const member = { id: 'b', host: 'b', nproc: 1, nodeRank: null };
  const start = () => Promise.reject(new Error('not ordered'));
  const part = takePart({ member, store: cut, where: 'here', keepAlive: null, say: () => {}, start });
  const joined = await inbox(direct, coordinatorBox, parseReport, AbortSignal.timeout(60_000)).next();
  expect(joined.value.kind).toBe('join');
  const outcome = { exitCode: 0, text: null, blamed: null };
  await new Outbox(direct).post(boxOf('b'), { kind: 'finish', outcome } satisfies Order);
  expect(await part.outcome).toEqual(outcome);
});

it('a launcher whose ranks go on without the store ends with the code of a signal that it gets', async () => {
  const member = { id: 'b', host: 'b', nproc: 1, nodeRank: null };
  let hasStarted = () => {};
  const started = new Promise<void>((resolve) => {
    hasStarted = resolve;
  });
  let hasLost = () => {};
  const lost = new Promise<void>((resolve) => {
    hasLost = resolve;
  });
  const command = [process.execPath, '-e', 'setInterval(() => {}, 1000)'];
  const part = takePart({
    ...{ member, store: cut, where: 'here', keepAlive: null, say: hasLost, goesOn: () => true },
    start: () => Promise.reject(new Error('not ordered')),
    slots: {
      open: (tell) =>
        openSlotAgent({
          ...{ shutdownTimeoutMs: 120_000, graceMs: 120_000, onExit: () => {} },
          onEnded: (slot, incarnation, outcome) => tell(slot, incarnation, outcome, null),
        }),
      start: async (agent, { slot, incarnation }) => {
        agent.start({ rank: slot, command, args: [], isNode: false, env: process.env }, incarnation, {});
        hasStarted();
      },
      follow: () => Promise.reject(new Error('no process fails')),
    },
  });
  await inbox(direct, coordinatorBox, parseReport, AbortSignal.timeout(60_000)).next();
  const order = {
    kind: 'slot',
    slot: 0,
    incarnation: 0,
    localRank: 0,
    localWorldSize: 1,
    worldSize: 1,
  } as const;
  await new Outbox(direct).post(boxOf('b'), { ...order, groupRank: 0, groupWorldSize: 1, why: null });
  await started;
  for (const socket of sockets) socket.destroy();
  await lost;
  part.interrupt('SIGTERM');
  expect(await part.outcome).toEqual({ exitCode: 143, text: 'stopped by SIGTERM.', blamed: 'b' });
});

it('a launcher ends although it cannot forward the last events', async () => {
  const forwarding = forward(cut);
  cutsAt = () => true;
  const ended = { kind: 'ended', rank: 0, exitCode: 0, signal: null, hasFailed: false } as const;
  forwarding.observe(ended);
  forwarding.observe(ended);
  await forwarding.close();
});
