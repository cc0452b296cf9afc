// The functions that the ranks of lost-while-connecting.test.ts run, each in a process of its own. One of them ends
// while the others connect with it.
import type { Store } from '@ringwise/store';
import type { BackendFactory } from '../../src/backends/context.ts';
import { hostBackend } from '../../src/backends/host.ts';
import { tcpBackend } from '../../src/backends/tcp/tcp.ts';
import { CollectiveError, init, registerBackend } from '../../src/index.ts';

const timeoutMs = 300_000;
const factories: Record<string, BackendFactory> = { host: hostBackend, tcp: tcpBackend };

function end(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('not reached');
}

/** Registers the backend `name` as one whose `use`, counted from 1, on `rank` gets another context. */
function change(name: string, use: number, rank: number, changed: (store: Store) => Store): void {
  let uses = 0;
  registerBackend('changed', (context) => {
    const isChanged = ++uses === use && context.rank === rank;
    return factories[name]!(isChanged ? { ...context, store: changed(context.store) } : context);
  });
}

/** Returns a store with which this process ends when it reads the addresses of all ranks. */
function endingAtMultiGet(store: Store): Store {
  return new Proxy(store, {
    get(_, name: keyof Store) {
      const member = store[name];
      if (name === 'multiGet') return end;
      return typeof member === 'function' ? member.bind(store) : member;
    },
  });
}

const toldOf = (error: unknown) => {
  if (!CollectiveError.is(error)) throw error;
  return { code: error.code, peers: error.peers, message: error.message };
};

/** The highest rank ends when it has told its address, before it connects. Returns the error of the others. */
export async function endsBeforeItConnects(_: number, name: string) {
  const highest = Number(process.env.WORLD_SIZE) - 1;
  change(name, 1, highest, endingAtMultiGet);
  return await init({ backend: 'changed', timeoutMs }).then(() => null, toldOf);
}

/**
 * Rank 1 is lost, and then rank 2 in shrink(), before it has told its address. Returns the error of the others there,
 * and the ranks of the group that they make then.
 */
export async function endsWhileItShrinks(rank: number, name: string) {
  change(name, 2, 1, end);
  const group = await init({ backend: 'changed', timeoutMs });
  if (rank === 1) end();
  await group.barrier().catch(() => {});
  const told = await group.shrink().then(() => null, toldOf);
  const left = await group.shrink({ without: [1, 2] });
  await left.barrier();
  const { ranks } = left;
  await group.close();
  return { told, ranks };
}
