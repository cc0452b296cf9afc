// The server behind TcpStore. It speaks the protocol of torch's TCPStore, both the current numbering and that of
// torch 1.13, so Python processes can be its clients too, as long as it has no secret.

import { lookup } from 'node:dns/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { checkHost, checkNames, checkPort } from '../check-options.ts';
import { cannotListen, openToAll } from '../errors.ts';
import { isLoopback, loopbackAddress } from '../loopback.ts';
import { checkSecret, type Secret } from '../wire/authentication.ts';
import { newServerState } from './server-state.ts';
import { serveSession } from './session.ts';

export interface ServeStoreOptions {
  /** Address to listen on. Default: that of loopbackAddress(). Anything but loopback needs a secret. */
  readonly host?: string;
  /** Default: 0, a free port, to be read from the result. */
  readonly port?: number;
  /** Clients must prove that they know it. Use at least 16 random bytes; torch's own clients cannot. */
  readonly secret?: Secret;
  /**
   * Called when a client that speaks the protocol but offers no proof of the secret is turned away, as torch's own is;
   * with its address. Not with serveStoreInWorker().
   */
  readonly onPlainClient?: (address: string) => void;
}

export interface StoreServer {
  /** The address listened on. */
  readonly host: string;
  readonly port: number;
  /** Ends all connections and frees the port. The keys are gone. */
  readonly close: () => Promise<void>;
}

const optionNames = ['host', 'port', 'secret', 'onPlainClient'];
// All ranks connect in the same moment; the kernel lowers this to its own limit.
const backlog = 4096;

/** Serves one new, empty store from this thread. Rejects with ERR_STORE_LISTEN when it cannot listen. */
export async function serveStore(options: ServeStoreOptions = {}): Promise<StoreServer> {
  checkNames('serveStore', options, optionNames);
  const { host = loopbackAddress(), port = 0, secret, onPlainClient } = options;
  checkHost('serveStore', host);
  checkPort('serveStore', port, 0);
  checkSecret('serveStore', secret);
  const state = newServerState(secret, onPlainClient);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    serveSession(socket, state);
  });
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException) => reject(cannotListen(host, port, cause));
    server.on('error', fail); // stays: a failed accept() must not end the process
    lookup(host === 'localhost' ? loopbackAddress() : host).then(({ address }) => {
      if (secret === undefined && !isLoopback(address)) reject(openToAll(host));
      else server.listen({ host: address, port, backlog }, resolve);
    }, fail);
  });
  const bound = server.address() as AddressInfo;
  return {
    host: bound.address,
    port: bound.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
