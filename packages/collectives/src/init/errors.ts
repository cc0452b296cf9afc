// The error messages of init(), of loading native code, and of joining and shrinking groups.
import { type Failure, local, rankList } from '../errors.ts';

/** Returns a failure of init(). */
function init(what: string, next?: string, peers: readonly number[] = []): Failure {
  return { ...local('ERR_COLL_INIT', 'init', what, next), peers };
}

export function ranksMissing(missing: readonly number[], size: number, timeoutMs: number): Failure {
  return init(
    `${rankList(missing)} of ${size} did not arrive within ${timeoutMs} ms`,
    'Were they started, and do they use the same store and the same number of init() calls?',
    missing,
  );
}

/** `missing` is the failure of ranksMissing(). `ranks` are those of its peers that run PyTorch. */
export function ranksOnGloo(missing: Failure, ranks: readonly number[]): Failure {
  const are = ranks.length === 1 ? 'is' : 'are';
  const what = `${missing.what}; ${rankList(ranks)} ${are} PyTorch with gloo: the store is shared, collectives are not`;
  return init(what, 'See "Python and Node in one job" in docs/launch.md.', missing.peers);
}

/** `first` describes the process that claimed the rank first, if it is known. */
export function rankTwice(rank: number, first?: string): Failure {
  const next = 'Two processes have the same rank, or the store holds the keys of an earlier run.';
  const known = first === undefined ? '' : `: ${first}`;
  return init(`rank ${rank} has arrived already${known}; expected every rank once`, next, [rank]);
}

/** The failure that all other ranks report if two processes have one rank. */
export function twoOfOneRank(rank: number, first: string, second: string): Failure {
  const what = `two processes are rank ${rank}, ${first} and ${second}; expected every rank once`;
  return init(what, 'Give each process a RANK of its own.', [rank]);
}

/** The failure that the other ranks report for a rank that fails with an error of its own. */
export function cannotTakePart(rank: number, { what, next }: Pick<Failure, 'what' | 'next'>): Failure {
  return { ...init(`rank ${rank} cannot take part: ${what}`, next, [rank]), isSecondary: true };
}

export function arrivedLate(rank: number): Failure {
  return init(`rank ${rank} arrived after the others had given up waiting`, 'Start all ranks together.');
}

export function settingsDiffer(
  name: string,
  mine: { readonly rank: number; readonly value: string },
  theirs: { readonly rank: number; readonly value: string },
): Failure {
  const what = `rank ${theirs.rank} was started with ${name} ${theirs.value} but rank ${mine.rank} with ${mine.value}`;
  const isFallback = name === 'backend' && [mine.value, theirs.value].sort().join() === 'auto,tcp';
  const next = isFallback
    ? 'One of them cannot load the native addon: install it there, or set RINGWISE_BACKEND=tcp for all ranks.'
    : undefined;
  return init(what, next, [theirs.rank]);
}

export function noneStays(): Failure {
  const what = 'no rank would stay, as every rank of the group is left out; expected at least one to stay';
  const next =
    'Pass the ranks that are lost as { without }. If calls did not match, none is lost: make a new group with init().';
  return local('ERR_COLL_INVALID', 'shrink', what, next);
}

export function leftBehind(survivors: readonly number[]): Failure {
  const what = `the others have continued without this rank, as ${rankList(survivors)}`;
  return local(
    'ERR_COLL_INIT',
    'shrink',
    what,
    'It arrived too late, or the others considered it lost: end this process.',
  );
}

export function rankOutOfRange(rank: number, size: number, from: string, verb = 'init'): Failure {
  const shown = (value: number) => (Number.isNaN(value) ? 'none' : value);
  const what = `rank and size do not fit (from ${from}); expected 0 <= rank < size, got rank ${shown(rank)}, size ${shown(size)}`;
  const isHalf = Number.isNaN(rank) !== Number.isNaN(size);
  const isPassed = from === 'options' || from === 'url';
  const next = `Pass both${verb === 'init' ? ', or neither: a launcher such as `npx ringwise run` sets them' : ''}.`;
  return { ...init(what, isHalf && isPassed ? next : undefined), verb };
}

export function tooManyRanks(size: number, most: number, from: string): Failure {
  return init(`the job has ${size} ranks (from ${from}); expected at most ${most}`, 'Check WORLD_SIZE.');
}

export function soloForMany(size: number): Failure {
  return init(
    `the backend solo is for one rank; expected 'auto', 'host' or another backend for ${size} ranks`,
    'Check the option backend and RINGWISE_BACKEND. A group of this rank alone: init({ rank: 0, size: 1 }).',
  );
}

export function noLauncher(): Failure {
  return init(
    'env:// found no launcher in the environment; expected RANK and WORLD_SIZE, or the variables of srun or mpirun',
    'Start the script with `npx ringwise run`, or pass rank, size and url.',
  );
}

/**
 * Failure for RANK and WORLD_SIZE of which one is missing or not a whole number, if no other launcher is
 * found.
 */
export function halfALauncher(rank: string | undefined, size: string | undefined): Failure {
  const shown = (value: string | undefined) => (value ? `'${value}'` : 'not set');
  return init(
    `RANK and WORLD_SIZE do not name a rank; expected two whole numbers, got RANK ${shown(rank)}, WORLD_SIZE ${shown(size)}`,
    'Set both, or neither for a group of one; `npx ringwise run` sets them.',
  );
}

/** `launcher` is null if the caller of init() gives the rank. */
export function masterUnknown(name: 'MASTER_ADDR' | 'MASTER_PORT', launcher: string | null): Failure {
  const orUrl = ", or pass url: 'tcp://HOST:PORT', the address at which rank 0 listens";
  return init(
    `${name} is not set and ${launcher ?? 'the caller'} does not tell where rank 0 is`,
    `Set ${name} to the same value for all ranks${launcher === null ? orUrl : ''}.`,
  );
}

export function badMasterPort(port: string): Failure {
  return init(
    `MASTER_PORT is '${port}'; expected a port from 1 to 65535`,
    'Set MASTER_PORT to the same port for all ranks.',
  );
}

export function unknownAlgorithmVariable(name: string, known: readonly string[]): Failure {
  return init(`${name} names no verb; expected one of ${known.join(', ')}`);
}

export function badUrl(url: string, expected: string): Failure {
  return init(`cannot use url '${url}'; expected ${expected}`);
}

export function storeAndUrl(): Failure {
  return init('store and url are both given; expected one of them');
}

export function rankUnknown(): Failure {
  return init('rank and size are unknown; expected both, as options, in the url or from a launcher');
}

export function cannotHost(host: string, port: number, reason: string): Failure {
  return init(
    `rank 0 cannot host the store at ${host}:${port} (${reason})`,
    'An earlier run may hold the port: choose another MASTER_PORT. If a store is served there on purpose, pass it: ' +
      'init({ rank, size, store }).',
  );
}

export function secretMissing(host: string, port: number): Failure {
  return init(
    `the store at ${host}:${port} can be reached from other hosts, and there is no secret`,
    'Set RINGWISE_SECRET to the same long random text for all ranks.',
  );
}

export function secretFileUnread(file: string, reason: string): Failure {
  return init(
    `RINGWISE_SECRET_FILE names ${file}, which has no secret (${reason})`,
    'Write a long random text into it, the same for all ranks.',
  );
}

export function storeFailed(reason: string, verb = 'init'): Failure {
  return { ...init(`the store failed (${reason})`), verb };
}

export function unknownBackend(name: string, known: readonly string[]): Failure {
  const hint = name.toLowerCase() === 'gloo' ? "PyTorch's gloo backend corresponds to 'host' here. " : '';
  return init(
    `no backend named '${name}'; expected auto, ${known.join(', ')}`,
    `${hint}See registerBackend().`,
  );
}

export function backendNotLoaded(name: string, detail: string): Failure {
  return init(`the ${name} backend cannot be loaded: ${detail}`);
}

export function hostUntried(system: string): Failure {
  return init(
    `the native addon of the host backend is built for ${system} and has not been run there yet`,
    'RINGWISE_BACKEND=host uses it anyway.',
  );
}

/** `reason` says why the native addon of this platform cannot be loaded; see backends/why-no-native.ts. */
export function nativeMissing(
  platform: string,
  reason: string,
  tried: readonly string[],
  next: string,
): Failure {
  return init(`there is no native addon for ${platform}: ${reason} (tried ${tried.join('; ')})`, next);
}

/** Error for what the factory of registerBackend() has made. `missing` are members that it lacks. */
export function notABackend(missing: readonly string[] = []): Failure {
  return init(
    'the factory of the backend made something else than a Backend; expected an object with contract: 1 and the members of this type' +
      (missing.length > 0 ? `, got one without ${missing.join(', ')}` : ''),
    'docs/backends.md says what each has to do.',
  );
}

export function nativeMpiMissing(platform: string, tried: readonly string[]): Failure {
  return init(
    `the mpi backend is not available for ${platform} (tried ${tried.join('; ')})`,
    'No release has it, because MPIs have no common ABI. Build it where mpicc is, by npm run build in a checkout of ringwise, and set RINGWISE_NATIVE_PATH to its folder native/build/Release.',
  );
}

export function mpiNotUsable(reason: string): Failure {
  return init(`MPI cannot be used: ${reason}`);
}

export function notOneWorld(sizes: readonly number[], version: string): Failure {
  return init(
    `the ranks do not share one MPI world of ${version}; expected all of them in one, got worlds of ${[...new Set(sizes)].join(', ')} processes`,
    'Start the ranks by the mpirun or srun of that MPI. RINGWISE_MPI=openmpi or mpich says which one that is.',
  );
}

export function srunWithoutMpi(): Failure {
  return init(
    'srun has started this process without an MPI',
    'Call srun with --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH and its kin); srun --mpi=list tells which it has.',
  );
}

export function unknownMpi(got: string): Failure {
  return init(`RINGWISE_MPI names no MPI that ringwise knows; expected openmpi or mpich, got '${got}'`);
}

export function flightFolderNotUsable(directory: string, reason: string): Failure {
  const what = `cannot write to the folder ${directory}, which RINGWISE_FLIGHT_DIR names for flight records: ${reason}`;
  return init(what, 'Set it to a folder that all ranks may write to.');
}
