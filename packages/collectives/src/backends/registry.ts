// Backends by name. Built-in backends are loaded on first use, so that importing this package loads no native
// code.

import { backendNameTaken, CollectiveError } from '../errors.ts';
import { backendNotLoaded, unknownBackend } from '../init/errors.ts';
import { wrongOption } from '../options/errors.ts';
import type { BackendFactory } from './context.ts';
import { loadNative } from './native.ts';
import { whyUntried } from './untried.ts';

/**
 * Loads a backend's factory. Rejects with the reason if this process cannot run the backend, before it waits for other
 * ranks.
 */
type Load = () => Promise<BackendFactory>;

/**
 * Returns a function that imports a module at the first call and returns the same module afterwards. With a registered
 * loader, such as tsx, every import() waits for the loader's thread, even if the module is cached. The ranks of an
 * elastic job look up their backend in each view.
 */
function once<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let module: Module | undefined;
  return async () => (module ??= await load());
}

const solo = once(() => import('./solo.ts'));
const host = once(() => import('./host.ts'));
const tcp = once(() => import('./tcp/tcp.ts'));
const nccl = once(() => import('./nccl/nccl.ts'));
const mpi = once(() => import('./mpi.ts'));

const builtIn = new Map<string, Load>([
  ['solo', async () => (await solo()).soloBackend],
  [
    'host',
    async () => {
      loadNative();
      return (await host()).hostBackend;
    },
  ],
  ['tcp', async () => (await tcp()).tcpBackend],
  [
    'nccl',
    async () => {
      const { ncclBackend, requireNccl } = await nccl();
      requireNccl();
      return ncclBackend;
    },
  ],
  [
    'mpi',
    async () => {
      const { loadMpi, mpiBackend } = await mpi();
      loadMpi();
      return mpiBackend;
    },
  ],
]);
const registered = new Map<string, BackendFactory>();

/**
 * Registers a backend for init({ backend: name }). Every rank must register it. Throws ERR_COLL_INVALID for
 * wrong arguments and if the name is taken.
 */
export function registerBackend(name: string, factory: BackendFactory): void {
  const refuse = (option: string, expected: string, got: unknown) =>
    new CollectiveError(wrongOption('registerBackend', option, expected, got), null);
  if (typeof name !== 'string' || name === '') throw refuse('name', 'a string that is not empty', name);
  if (typeof factory !== 'function') throw refuse('factory', 'a function of a context', factory);
  if (name === 'auto' || builtIn.has(name) || registered.has(name)) {
    throw new CollectiveError(backendNameTaken(name), null);
  }
  registered.set(name, factory);
}

/** A backend that this process can use. */
export interface Found {
  /** The requested name; 'tcp' if 'auto' falls back to it. Must be the same on all ranks. */
  readonly name: string;
  readonly factory: BackendFactory;
  /** Why 'auto' uses tcp. */
  readonly fallback?: CollectiveError;
}

/**
 * Resolves with the named backend, or for 'auto' with the best that can be loaded. Rejects with ERR_COLL_INIT
 * if there is none of the name or it cannot be loaded, and with ERR_COLL_SYSTEM if 'nccl' finds no device or no
 * NCCL that it can use.
 */
export async function findBackend(name: string): Promise<Found> {
  const factory = registered.get(name);
  if (factory !== undefined) return { name, factory };
  if (name === 'auto') return findBest();
  const load = builtIn.get(name);
  if (load === undefined) {
    throw new CollectiveError(unknownBackend(name, [...builtIn.keys(), ...registered.keys()]), null);
  }
  return { name, factory: await loaded(name, load) };
}

async function findBest(): Promise<Found> {
  try {
    const untried = whyUntried();
    if (untried !== null) throw untried;
    loadNative();
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    return { name: 'tcp', factory: await loaded('tcp', builtIn.get('tcp')!), fallback: error };
  }
  const load: Load = async () => (await nccl()).autoBackend;
  return { name: 'auto', factory: await loaded('auto', load) };
}

async function loaded(name: string, load: Load): Promise<BackendFactory> {
  try {
    return await load();
  } catch (cause) {
    if (CollectiveError.is(cause)) throw cause;
    throw new CollectiveError(backendNotLoaded(name, String(cause)), null, { cause });
  }
}
