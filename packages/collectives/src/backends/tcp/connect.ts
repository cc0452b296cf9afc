// Connects one rank with all others: two connections for each pair, one for control and one for data. The
// higher rank of a pair makes the first, the lower one the second, so that each notices if the other's process has
// ended. Both prove to each other that they belong to the group.
import { timingSafeEqual } from 'node:crypto';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { aborted, CollectiveError, type Failure, peerLost, systemFailure, timedOut } from '../../errors.ts';
import type { BackendContext } from '../context.ts';
import { addressFor, meetPeers, type Peer } from '../meeting.ts';
import { later } from './later.ts';

export interface Connection {
  readonly rank: number;
  readonly control: Socket;
  readonly data: Socket;
}

type Purpose = 'control' | 'data';
const purposes: readonly Purpose[] = ['control', 'data'];
/** Returns which connection `from` makes to `to`. */
const purposeOf = (from: number, to: number): Purpose => (from > to ? 'control' : 'data');

// The first frame on a connection, from both sides: magic, version, purpose, sender, receiver, and the sender's proof.
const magic = 0x54475752; // "RWGT"
const version = 2;
const helloBytes = 48;
/**
 * Milliseconds within which a new connection must send its hello, and the maximum number of unauthenticated
 * connections. A new one beyond that replaces the oldest, preferably one that has sent nothing.
 */
const helloMs = 5_000;
const mostUnproven = 256;
/** Milliseconds for which a refused connection is retried: the peer's listen backlog may be full. */
const refusedMs = 2_000;
const pauseMs = 10;
const quietMs = 5_000;
/** Milliseconds to wait for a peer's data on one connection after its other connection has ended. */
const unreadMs = 500;

type TcpPeer = Peer<{ readonly backend: 'tcp'; readonly host: string; readonly port: number }>;

/**
 * Exchanges addresses through the store and connects to all other ranks. Collective. Resolves with the connections in
 * rank order, paused. Rejects with ERR_COLL_TIMEOUT at the deadline, naming the missing ranks; with ERR_COLL_PEER_LOST
 * if a rank ends meanwhile; and with the errors of the store.
 */
export async function connectAll(context: BackendContext): Promise<Connection[]> {
  const host = await addressFor(context);
  const meeting = new Meeting(context);
  try {
    const port = await meeting.listen(host);
    await meeting.connect(await meetPeers(context, { backend: 'tcp' as const, host, port }));
    return meeting.connections();
  } catch (error) {
    meeting.destroy();
    throw error;
  } finally {
    meeting.stopListening();
  }
}

class Meeting {
  readonly #context: BackendContext;
  readonly #server: Server;
  readonly #peers = new Map<number, TcpPeer>();
  readonly #proven = new Map<number, Partial<Record<Purpose, Socket>>>();
  /** Unauthenticated connections that other processes have made, oldest first, with the hello if it has arrived. */
  readonly #unproven = new Map<Socket, Buffer | null>();
  /** Connections that this rank has initiated. */
  readonly #dialled = new Set<Socket>();
  /** Whether this rank has the proofs of its peers, so that it can check hellos. */
  #canProve = false;
  /** Functions that stop watching the connections that are kept. */
  readonly #release: (() => void)[] = [];
  #isDone = false;
  #onProgress: () => void = () => {};
  #failure: CollectiveError | null = null;

  constructor(context: BackendContext) {
    this.#context = context;
    const options = { allowHalfOpen: true, pauseOnConnect: true };
    this.#server = createServer(options, (socket) => this.#accept(socket));
  }

  listen(host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.on('error', ({ message }) => {
        reject(this.#error(systemFailure('init', null, `cannot listen at ${host} (${message})`)));
      });
      this.#server.listen({ port: 0, host, backlog: 4096 }, () => {
        const address = this.#server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : 0);
      });
    });
  }

  /** Resolves when all pairs of this rank are connected. */
  connect(peers: readonly TcpPeer[]): Promise<void> {
    const { timeoutMs, signal, rank } = this.#context;
    signal?.throwIfAborted();
    for (const peer of peers) this.#peers.set(peer.rank, peer);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const { what, ...rest } = timedOut('init', 0, this.#missing, timeoutMs);
        this.#fail({ ...rest, seq: null, what: `${what}, while connecting` });
      }, timeoutMs);
      const stop = () => this.#fail(aborted(rank, String(signal?.reason)));
      signal?.addEventListener('abort', stop, { once: true });
      this.#onProgress = () => {
        if (this.#failure === null && this.#missing.length > 0) return;
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
        this.#isDone = true;
        if (this.#failure === null) resolve();
        else reject(this.#failure);
      };
      this.#canProve = true;
      for (const [socket, hello] of [...this.#unproven]) if (hello !== null) this.#check(socket, hello);
      for (const peer of peers) this.#dial(peer, performance.now());
      this.#onProgress();
    });
  }

  connections(): Connection[] {
    for (const release of this.#release) release();
    return [...this.#peers.keys()].map((rank) => ({ rank, ...this.#proven.get(rank) }) as Connection);
  }

  stopListening(): void {
    this.#server.close();
    for (const socket of [...this.#unproven.keys(), ...this.#dialled]) socket.destroy();
  }

  destroy(): void {
    this.#isDone = true;
    for (const sockets of this.#proven.values()) {
      for (const socket of Object.values(sockets)) socket.destroy();
    }
  }

  get #missing(): number[] {
    return [...this.#peers.keys()].filter((rank) => {
      const sockets = this.#proven.get(rank);
      return sockets?.control === undefined || sockets.data === undefined;
    });
  }

  #dial(peer: TcpPeer, sinceMs: number): void {
    if (this.#isDone) return;
    const purpose = purposeOf(this.#context.rank, peer.rank);
    const socket = dial({ host: peer.host, port: peer.port, allowHalfOpen: true });
    this.#dialled.add(socket);
    let isConnected = false;
    const turnedAway = () => socket.destroy();
    socket.on('connect', () => {
      isConnected = true;
      socket.write(this.#hello(peer, purpose));
      readHello(socket, (hello) => {
        this.#dialled.delete(socket);
        socket.off('end', turnedAway);
        if (this.#proves(hello, peer, purpose)) this.#keep(peer, purpose, socket);
        else this.#lost(peer.rank, 'it could not prove that it belongs to the group');
      });
    });
    let why = '';
    // 'close' follows.
    socket.on('error', ({ message }) => {
      why = ` (${message})`;
    });
    socket.on('end', turnedAway);
    socket.on('close', () => {
      this.#dialled.delete(socket);
      if (isConnected)
        this.#lost(peer.rank, 'it ended, or refused the proof that this rank belongs to the group');
      else if (performance.now() - sinceMs > refusedMs) this.#lost(peer.rank, `it cannot be reached${why}`);
      else setTimeout(() => this.#dial(peer, sinceMs), pauseMs);
    });
  }

  #accept(socket: Socket): void {
    if (this.#unproven.size >= mostUnproven + 2 * this.#context.size) this.#replaceOne();
    this.#unproven.set(socket, null);
    const deadline = later(helloMs, () => socket.destroy());
    socket.on('error', () => {}); // a connection that is not proven does not matter
    socket.on('close', () => {
      deadline.cancel();
      this.#unproven.delete(socket);
    });
    readHello(socket, (hello) => {
      deadline.cancel();
      this.#unproven.set(socket, hello);
      if (this.#canProve) this.#check(socket, hello);
    });
  }

  #replaceOne(): void {
    const [oldest] = this.#unproven.keys();
    const silent = [...this.#unproven].find(([, hello]) => hello === null)?.[0];
    const replaced = silent ?? oldest;
    if (replaced === undefined) return;
    this.#unproven.delete(replaced);
    replaced.destroy();
  }

  /** Keeps a connection whose hello has the proof of a peer; closes others. */
  #check(socket: Socket, hello: Buffer): void {
    const peer = this.#peers.get(hello.readInt32LE(8));
    const { rank } = this.#context;
    if (peer !== undefined) {
      const purpose = purposeOf(peer.rank, rank);
      const isNew = this.#proven.get(peer.rank)?.[purpose] === undefined;
      if (isNew && this.#proves(hello, peer, purpose)) {
        this.#unproven.delete(socket);
        socket.write(this.#hello(peer, purpose));
        this.#keep(peer, purpose, socket);
        return;
      }
    }
    socket.destroy();
  }

  #hello({ rank: to, mine }: TcpPeer, purpose: Purpose): Buffer {
    const hello = Buffer.alloc(helloBytes);
    hello.writeUInt32LE(magic, 0);
    hello.writeUInt8(version, 4);
    hello.writeUInt8(purposes.indexOf(purpose), 5);
    hello.writeInt32LE(this.#context.rank, 8);
    hello.writeInt32LE(to, 12);
    hello.set(mine, 16);
    return hello;
  }

  #proves(hello: Buffer, { rank, theirs }: TcpPeer, purpose: Purpose): boolean {
    return (
      hello.readUInt32LE(0) === magic &&
      hello.readUInt8(4) === version &&
      hello.readUInt8(5) === purposes.indexOf(purpose) &&
      hello.readInt32LE(8) === rank &&
      hello.readInt32LE(12) === this.#context.rank &&
      timingSafeEqual(hello.subarray(16), theirs)
    );
  }

  /** Keeps an authenticated connection, and watches for its end until connections() returns it. */
  #keep({ rank }: TcpPeer, purpose: Purpose, socket: Socket): void {
    for (const event of ['connect', 'error', 'close']) socket.removeAllListeners(event);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, quietMs);
    // If the peer has both connections, it may already have failed or left the group, which group.ts will notice. The
    // peer has both if its hello on the other one has arrived, even if it is still unread.
    const ended = () => {
      if (this.#missing.includes(rank)) later(unreadMs, () => this.#lostIfMissing(rank), false);
    };
    const ignore = () => {}; // 'close' follows
    // The peer may finish connecting before this rank. Data that it sends then is put back, and read later.
    const putBack = (chunk: Buffer) => {
      socket.pause();
      socket.unshift(chunk);
    };
    socket.on('error', ignore).on('close', ended).on('end', ended).on('data', putBack).resume();
    this.#release.push(() => {
      socket.pause();
      socket.off('error', ignore).off('close', ended).off('end', ended).off('data', putBack);
    });
    this.#proven.set(rank, { ...this.#proven.get(rank), [purpose]: socket });
    this.#onProgress();
  }

  #lostIfMissing(rank: number): void {
    if (this.#missing.includes(rank)) this.#lost(rank, 'its connection closed');
  }

  #lost(rank: number, reason: string): void {
    if (!this.#isDone) this.#fail(peerLost('init', null, rank, `${reason}, while connecting`));
  }

  #fail(failure: Failure): void {
    this.#failure ??= this.#error(failure);
    this.#onProgress();
  }

  #error(failure: Failure): CollectiveError {
    const { group, rank, size } = this.#context;
    return new CollectiveError(failure, { group, rank, size });
  }
}

/** Reads the hello, then pauses the socket and puts back the bytes after it. */
function readHello(socket: Socket, onHello: (hello: Buffer) => void): void {
  let got = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    got = Buffer.concat([got, chunk]);
    if (got.length < helloBytes) return;
    socket.off('data', onData);
    socket.pause();
    if (got.length > helloBytes) socket.unshift(got.subarray(helloBytes));
    onHello(got.subarray(0, helloBytes));
  };
  socket.on('data', onData);
  socket.resume();
}
