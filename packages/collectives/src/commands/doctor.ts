// This package's part of `ringwise doctor`, in a module that the launcher loads by name. It reports how init()
// reads the environment and how much memory is available, and checks the native addon, NCCL, the mpi backend if
// it is chosen, and an exchange between two ranks.
import { kindsOfMpi } from '../backends/mpi.ts';
import type { NativeNccl } from '../backends/native.ts';
import { findNative, loadNative, loadNativeMpi } from '../backends/native.ts';
import { whyUntried } from '../backends/untried.ts';
import { nativeFacts } from '../backends/why-no-native.ts';
import { CollectiveError, unusableNccl } from '../errors.ts';
import type { Env } from '../init/env.ts';
import { planInit } from '../init/plan.ts';
import { builtFile } from '../package-files.ts';

export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'note' | 'wrong';
  readonly text: string;
  /** Advice, if something is wrong. */
  readonly fix?: string;
}

/** Functions of the launcher: runs a module's default export on ranks and returns its results by rank. */
export interface Tools {
  readonly spawn: (
    module: URL,
    options: { readonly nprocs: number; readonly timeoutMs: number },
  ) => Promise<unknown[]>;
}

type About = ReturnType<NativeNccl['about']>;

/** One rank's results of the exchange. */
export interface Exchange {
  readonly backend: string;
  /** Length of the large buffer, and its bytes per time in GB/s (10^9 bytes per second). */
  readonly largeBytes: number;
  readonly largeGBs: number;
  /** Time of a 4-byte allReduce in microseconds. */
  readonly smallUs: number;
  /** Number of wrong elements in the large result. */
  readonly wrong: number;
}

const rankModule = builtFile('doctor-rank.js');
const exchangeTimeoutMs = 60_000;

export async function* examine({ spawn }: Tools): AsyncGenerator<Finding> {
  yield launcherFinding(process.env);
  yield memoryFinding();
  const addon = addonFinding();
  yield addon;
  if (addon.state === 'ok') yield ncclFinding(loadNative().nccl.about());
  if (process.env.RINGWISE_BACKEND === 'mpi') yield mpiFinding(process.env);
  yield await exchangeFinding(spawn);
}

/** Reports which rank and launcher init() would detect in the environment. */
export function launcherFinding(env: Env): Finding {
  const name = 'init()';
  try {
    const { rank, size, via, store } = planInit({}, env);
    if (via === null)
      return { name, state: 'ok', text: 'no launcher in the environment: ringwise run gives ranks theirs' };
    const where = store.kind === 'tcp' ? `, which meet at ${store.host}:${store.port}` : '';
    return { name, state: 'ok', text: `rank ${rank} of ${size} by ${via}${where}` };
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    const fix = error.next ?? 'Put the variables of the launcher right, or unset them.';
    return { name, state: 'wrong', text: error.what, fix };
  }
}

function memoryFinding(): Finding {
  const free = process.availableMemory();
  const text = `${(free / 2 ** 30).toFixed(1)} GiB available`;
  const shared =
    process.platform === 'linux'
      ? '; shared memory of ranks is taken from it, whatever the size of /dev/shm'
      : '';
  return { name: 'memory', state: 'ok', text: `${text}${shared}` };
}

/** A missing addon is wrong where there is a package with it. Elsewhere, and where it is untried, ranks use tcp. */
function addonFinding(): Finding {
  const name = 'coll.node';
  const untried = process.env.RINGWISE_BACKEND === 'host' ? null : whyUntried();
  if (untried !== null)
    return {
      name,
      state: 'note',
      text: `${untried.what}; ranks use the tcp backend`,
      fix: untried.next ?? '',
    };
  try {
    return { name, state: 'ok', text: findNative().path };
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    const { built, platform } = nativeFacts([]);
    const state = built.includes(platform) ? 'wrong' : 'note';
    return { name, state, text: `${error.what}; ranks use the tcp backend`, fix: error.next ?? '' };
  }
}

/** Reports the NCCL library for CUDA memory. A host without devices needs none. */
export function ncclFinding({ devices, driver, library, version, reason }: About): Finding {
  const name = 'nccl';
  if (driver) return { name, state: 'note', text: `not looked for: ${driver}` };
  if (!reason) return { name, state: 'ok', text: `${version} (${library}) for ${devices} devices` };
  return { name, state: 'wrong', text: reason, fix: unusableNccl(name, null, reason).next ?? '' };
}

/**
 * Reports whether the mpi backend can be loaded. It is not run: that needs mpirun, and the launcher starts
 * these ranks.
 */
export function mpiFinding(env: Env): Finding {
  const name = 'mpi';
  try {
    loadNativeMpi(kindsOfMpi(env));
    return {
      name,
      state: 'ok',
      text: 'its addon can be loaded; ranks that use it are started by mpirun, those here use host',
    };
  } catch (error) {
    if (!CollectiveError.is(error)) throw error;
    return { name, state: 'wrong', text: error.what, fix: error.next ?? 'Unset RINGWISE_MPI.' };
  }
}

async function exchangeFinding(spawn: Tools['spawn']): Promise<Finding> {
  const name = 'two ranks';
  try {
    const options = { nprocs: 2, timeoutMs: exchangeTimeoutMs };
    const [first, second] = (await spawn(rankModule, options)) as [Exchange, Exchange];
    const { backend, largeBytes, largeGBs, smallUs } = first;
    const wrong = first.wrong + second.wrong;
    const text =
      `allReduce by ${backend}: ${largeGBs.toFixed(2)} GB/s at ${largeBytes / 2 ** 20} MiB, ` +
      `${smallUs.toFixed(1)} us at 4 bytes`;
    if (wrong === 0) return { name, state: 'ok', text };
    const fix = 'Look at ringwise bench all-reduce on this host; the memory or the addon is broken.';
    return { name, state: 'wrong', text: `${text}; ${wrong} elements are wrong`, fix };
  } catch (error) {
    const fix = 'Put right what is wrong above, then see ringwise bench all-reduce.';
    return { name, state: 'wrong', text: (error as Error).message, fix };
  }
}
