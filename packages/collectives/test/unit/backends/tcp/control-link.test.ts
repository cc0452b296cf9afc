// What a control connection still reads when its other end is gone.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { ControlLink } from '../../../../src/backends/tcp/control-link.ts';
import { encode } from '../../../../src/backends/tcp/frames.ts';
import { systemFailure } from '../../../../src/errors.ts';

async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [there] = (await once(server, 'connection')) as [Socket];
  if (here.connecting) await once(here, 'connect');
  server.close();
  return [here, there];
}

it('reads what the peer has said before it ended, also after a write to it has failed', async () => {
  const [here, there] = await socketPair();
  const heard: string[] = [];
  await new Promise<void>((resolve) => {
    const onEnd = (reason: string) => {
      heard.push(reason);
      resolve();
    };
    const link = new ControlLink(here, { onFrame: ({ kind }) => heard.push(kind), onEnd });
    // The peer tells the cause of a failure and ends before it has read everything. This rank, which has not read that
    // yet, says more.
    link.send({ kind: 'question' });
    there.write(encode({ kind: 'cause', failure: systemFailure('barrier', 0, 'the cause') }));
    there.resetAndDestroy();
    link.send({ kind: 'question' });
    link.send({ kind: 'question' });
  });
  expect(heard).toEqual(['cause', expect.stringMatching(/^its connection (broke|closed)/)]);
});
