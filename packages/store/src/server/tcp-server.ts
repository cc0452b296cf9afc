// The server for TcpStore. It implements the protocol of torch's TCPStore, with the current request numbers
// and those of torch 1.13, so that Python processes can be clients as well if it has no secret.

import { lookup } from 'node:dns/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { checkHost, checkNames, checkPort } from '../check-options.ts';
import { cannotListen, openToAll, shortSecret } from '../errors.ts';
import { isLoopback, loopbackAddress } from '../loopback.ts';
import { checkSecret, type Secret } from '../wire/authentication.ts';
import { newServerState } from './server-state.ts';
import { serveSession } from './session.ts';

/** Options of serveStore(). serveStoreInWorker() takes all but `onPlainClient`. */
export interface ServeStoreOptions {
  /**
   * Address to listen on. Default: that of loopbackAddress(). Any address other than loopback requires a
   * secret.
   */
  readonly host?: string;
  /** Port to listen on. Default: 0, which picks a free port; read it from the result. */
  readonly port?: number;
  /**
   * Secret; clients must prove that they know it. Use at least 16 random bytes. torch's own clients cannot connect
   * then.
   */
  readonly secret?: Secret;
  /**
   * Called with the address of a client that speaks the protocol but is rejected because it offers no proof
   * of the secret, as torch's clients do. Not available with serveStoreInWorker().
   */
  readonly onPlainClient?: (address: string) => void;
}

/** A running server of a store. */
export interface StoreServer {
  /** The address that the server listens on. */
  readonly host: string;
  /** Port on which the server listens. */
  readonly port: number;
  /** Ends all connections and frees the port. The keys are lost. */
  readonly close: () => Promise<void>;
}

const optionNames = ['host', 'port', 'secret', 'onPlainClient'];

/** Characters or bytes of a secret below which a program that reaches the port might guess it. */
const leastSecret = 16;
// Number of connections that wait to be accepted: all ranks connect at the same time. The kernel may reduce it.
const backlog = 4096;

/**
 * Serves one new, empty store from this thread. Rejects with ERR_STORE_LISTEN if it cannot listen.
 *
 * @example
 * ```ts
 * const server = await serveStore(); // on loopback, at a free port
 * const client = await TcpStore.connect({ host: server.host, port: server.port });
 * await client.set('key', 'value');
 * ```
 */
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
    server.on('error', fail); // not removed: a failed accept() must not end the process
    lookup(host === 'localhost' ? loopbackAddress() : host).then(({ address }) => {
      if (!isLoopback(address)) {
        if (secret === undefined) {
          reject(openToAll(host));
          return;
        }
        if (secret.length < leastSecret)
          process.emitWarning(shortSecret(host, secret.length), { code: 'RINGWISE_SHORT_SECRET' });
      }
      server.listen({ host: address, port, backlog }, resolve);
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
