// The server of the live page. All URLs are below /<token>/, so that clients that do not know the URL get nothing and
// the page needs no cookies. Before anything else, it refuses requests from another Origin, and requests whose Host
// header is a name that a foreign DNS server may have pointed at this machine (DNS rebinding).

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { pageFailed } from '../errors.ts';
import type { Message } from './feed.ts';
import { pageFiles } from './page-files.ts';

export interface UiAddress {
  readonly host: string;
  /** Port to listen on; 0 picks a free one. */
  readonly port: number;
}

export interface UiServer {
  /** URL of the page, with the token. */
  readonly url: string;
  /** Sends changes to all readers of the page. */
  readonly send: (message: Message) => void;
  readonly hasReaders: () => boolean;
  /** Delivers what was sent before, then ends the server. */
  readonly close: () => Promise<void>;
}

export interface UiSources {
  /** Returns the whole state, for a new reader. */
  readonly whole: () => Message;
  readonly prometheus: () => string;
}

const maxReaders = 32;
/** Limit of connections that have sent no request with the token yet. Beyond it, the oldest one is closed. */
const maxPending = 64;
/** Time limit of a request: from its first byte, or from accepting its connection, to its last byte. */
const requestTimeoutMs = 10_000;
const checkEveryMs = 2_000;
/**
 * A reader with more unsent data than this is disconnected; its browser reconnects and gets the whole state.
 */
const maxWaitingBytes = 8 << 20;
const closeMs = 1_000;

const safety = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
};

/** Starts the server. Rejects with ERR_LAUNCH_PAGE if it cannot listen. */
export async function serveUi(
  { host, port }: UiAddress,
  sources: UiSources,
  token = randomBytes(16).toString('hex'),
): Promise<UiServer> {
  const files = pageFiles();
  const readers = new Set<ServerResponse>();
  const pending = new Set<Socket>(); // the oldest first
  const limits = {
    maxHeaderSize: 8_192,
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
  };
  const server = createServer(limits, (request, response) => {
    for (const [name, value] of Object.entries(safety)) response.setHeader(name, value);
    const refused = refusal(request, host, token);
    if (refused) return refuse(response, ...refused);
    pending.delete(request.socket);
    const name = request.url!.slice(token.length + 2).split('?')[0]!;
    const file = files.get(name);
    if (file) response.setHeader('Content-Type', file.type).end(file.content);
    else if (name === 'metrics') {
      response.setHeader('Content-Type', 'text/plain; version=0.0.4').end(sources.prometheus());
    } else if (name === 'events') listen(response);
    else refuse(response, 404, 'There is no such page.');
  });

  server.on('connection', (socket: Socket) => {
    pending.add(socket);
    socket.once('close', () => pending.delete(socket));
    if (pending.size > maxPending) [...pending][0]!.destroy();
  });

  function listen(response: ServerResponse): void {
    if (readers.size >= maxReaders) {
      refuse(response, 503, 'Too many readers.');
      return;
    }
    response.setHeader('Content-Type', 'text/event-stream');
    response.once('close', () => readers.delete(response));
    response.on('error', () => {});
    const everything = asEvent(sources.whole());
    readers.add(response);
    response.write(everything);
  }

  server.listen(port, host);
  await once(server, 'listening').catch((cause: unknown) => {
    throw pageFailed(host, port, cause);
  });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${nameOf(host)}:${bound}/${token}/`,
    send: (message) => {
      const event = asEvent(message);
      for (const reader of readers) {
        if (reader.writableLength > maxWaitingBytes) reader.destroy();
        else reader.write(event);
      }
    },
    hasReaders: () => readers.size > 0,
    close: async () => {
      for (const reader of readers) reader.end();
      const closed = new Promise((resolve) => server.close(resolve));
      const timer = setTimeout(() => server.closeAllConnections(), closeMs);
      server.closeIdleConnections();
      await closed;
      clearTimeout(timer);
    },
  };
}

/** Returns the host name for a browser, for an address that the server listens on. */
function nameOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return hostname();
  return host.includes(':') ? `[${host}]` : host;
}

const asEvent = (message: Message) => `data: ${JSON.stringify(message)}\n\n`;

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain', Connection: 'close' }).end(`${text}\n`);
}

/** Returns why a request is refused, or null if it is accepted. */
function refusal(
  { method, url = '', headers }: IncomingMessage,
  host: string,
  token: string,
): [number, string] | null {
  if (!isKnownHost(headers.host ?? '', host)) return [403, 'Unknown Host.'];
  if (headers.origin !== undefined && headers.origin !== `http://${headers.host}`)
    return [403, 'Other origin.'];
  if (!isEqual(url.split('/')[1] ?? '', token) || url[token.length + 1] !== '/')
    return [403, 'No token: open the whole address that ringwise printed.'];
  if (method !== 'GET') return [405, 'Only GET.'];
  return null;
}

/**
 * Returns whether a Host header is an IP address or one of our own names, which a foreign DNS server cannot
 * point here.
 */
function isKnownHost(header: string, bound: string): boolean {
  const name = header.replace(/:\d*$/, '').toLowerCase();
  const known = ['localhost', bound, hostname()].some((own) => own.toLowerCase() === name);
  return known || isIP(name.replace(/^\[|\]$/g, '')) !== 0;
}

function isEqual(given: string, token: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}
