// Makes two hosts on one machine (network namespaces) with one of several links between them, and lists the contenders
// that are measured between them. Needs root. The first half of a job's ranks is on the first host.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeHosts, whyNoNamespaces } from '@ringwise/testing';
import { benchRank, build, buildNative, findTorch } from './build.ts';
import {
  type Case,
  type Found,
  flags,
  foundAmong,
  hasTorch,
  type IsChosen,
  native,
  torch,
} from './contenders.ts';
import { line, together } from './together.ts';

/**
 * Links between the hosts. plain: veth pairs to a bridge. 1g: the same, limited to 1 Gbit/s. wan: a link in user space
 * (link.c) with 1 ms each way and 1 Gbit/s.
 */
export const links = ['plain', '1g', 'wan'] as const;
export type LinkName = (typeof links)[number];

interface End {
  /** Name of the network namespace. */
  readonly name: string;
  readonly address: string;
}

export interface Linked {
  readonly ends: readonly [End, End];
  /** Name of the network interface, the same at both ends. */
  readonly interface: string;
  readonly close: () => Promise<void>;
}

/** Makes the hosts and their link. Throws an error that says why if that is not possible. */
export async function makeLink(link: LinkName): Promise<Linked> {
  const reason = whyNoNamespaces();
  if (reason !== null) throw new Error(`peers: --hosts 2 is not possible: ${reason}`);
  const { hosts, close } = makeHosts(2);
  const [a, b] = [hosts[0]!, hosts[1]!];
  try {
    // All machines measure the same then. Every kernel has reno; bbr paces bursts, whichever library sends them.
    for (const { name } of hosts)
      execFileSync('ip', ['netns', 'exec', name, 'sysctl', '-qw', 'net.ipv4.tcp_congestion_control=reno']);
    if (link === 'wan') return await makeWan(a.name, b.name, close);
    for (const { name } of link === '1g' ? hosts : []) {
      const shape = ['tbf', 'rate', '1gbit', 'burst', '256kb', 'latency', '20ms'];
      execFileSync('tc', ['-n', name, 'qdisc', 'add', 'dev', 'eth0', 'root', ...shape]);
    }
    return { ends: [a, b], interface: 'eth0', close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function makeWan(a: string, b: string, close: () => Promise<void>): Promise<Linked> {
  const program = await build('link');
  if ('missing' in program) throw new Error(`peers: --link wan needs ${program.missing}`);
  const ends: [End, End] = [
    { name: a, address: '10.83.20.1' },
    { name: b, address: '10.83.20.2' },
  ];
  const args = [...ends.flatMap(({ name, address }) => [name, address]), '1000', '1000'];
  const child = spawn(program.path, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const end = () => child.kill('SIGKILL');
  process.once('exit', end);
  const isReady = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'exit').then(() => false),
  ]);
  if (!isReady) throw new Error('peers: --link wan: the link could not be made');
  return {
    ends,
    interface: 'wan0',
    close: async () => {
      process.off('exit', end);
      end();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await close();
    },
  };
}

/** Finds the chosen contenders that can be measured between two hosts; compiles those that are not yet compiled. */
export async function findBetween(
  { ends, interface: device }: Linked,
  nativeFolder: string,
  isChosen: IsChosen,
): Promise<Found> {
  const bench =
    (form: string) =>
    (path: string, { verb, ranks, min, max, seconds }: Case) =>
      spread(ends, ranks, (rank) => [
        ...['env', ...assignments(rankVariables(rank, ranks, ends[0].address))],
        ...[process.execPath, path, verb, '--json', form],
        ...['--min', `${min}`, '--max', `${max}`, '--seconds', `${seconds}`],
      ]);
  /** Flags of collectives_bench, which forks its ranks and moves them into the namespaces itself. */
  const places = [
    '--netns',
    ends.map(({ name }) => name).join(),
    '--addresses',
    ends.map(({ address }) => address).join(),
  ];
  const placed = (path: string, test: Case) =>
    native(path, test, '--per-host', `${test.ranks / ends.length}`, ...places);
  /** Forces an algorithm that treats all ranks alike, as if each were on its own host. */
  const flat = (algorithm: string) => (path: string, test: Case) =>
    test.verb === 'all-reduce' && test.ranks > ends.length
      ? ['env', `RINGWISE_ALGO_ALLREDUCE=${algorithm}`, ...placed(path, test)!]
      : null;
  return foundAmong(
    [
      {
        program: () => buildNative(nativeFolder),
        kind: 'ours',
        commands: { c: placed, 'c-ring': flat('ring'), 'c-two-shot': flat('two-shot') },
      },
      {
        program: () => ({ path: benchRank }),
        kind: 'ours',
        commands: { js: bench('--sync'), 'js-async': bench('--async') },
      },
      {
        program: () => build('openmpi'),
        kind: 'peer',
        commands: { openmpi: (path, test) => openMpi(ends, path, test.ranks, flags(test)) },
      },
      {
        program: () => build('gloo'),
        kind: 'peer',
        commands: {
          gloo: (path, test, folder) =>
            spread(ends, test.ranks, (rank) => [
              ...[
                path,
                '--ranks',
                `${test.ranks}`,
                '--rank',
                `${rank}`,
                '--store',
                folder,
                '--iface',
                device,
              ],
              ...flags(test),
            ]),
        },
      },
      {
        program: () => findTorch(),
        kind: 'peer',
        commands: {
          torch: (path, test, folder) =>
            hasTorch(test)
              ? spread(ends, test.ranks, (rank) => torch(path, test, rank, folder, device))
              : null,
        },
      },
    ],
    isChosen,
  );
}

const assignments = (variables: Record<string, string>) =>
  Object.entries(variables).map(([name, value]) => `${name}=${value}`);

/** Returns the environment variables of one rank, as a launcher would set them. The port is free in a new namespace. */
function rankVariables(rank: number, size: number, master: string): Record<string, string> {
  const perHost = size / 2;
  return {
    RANK: `${rank}`,
    WORLD_SIZE: `${size}`,
    LOCAL_RANK: `${rank % perHost}`,
    LOCAL_WORLD_SIZE: `${perHost}`,
    MASTER_ADDR: master,
    MASTER_PORT: '29500',
    RINGWISE_SECRET: 'of the benchmark',
  };
}

/** Returns one command that runs every rank on its host. */
function spread(ends: readonly End[], ranks: number, argv: (rank: number) => readonly string[]): string[] {
  return together(
    Array.from({ length: ranks }, (_, rank) => {
      const { name } = ends[Math.floor((rank * ends.length) / ranks)]!;
      return ['ip', 'netns', 'exec', name, ...argv(rank)];
    }),
  );
}

function openMpi(ends: readonly End[], path: string, ranks: number, args: readonly string[]): string[] {
  const [master] = ends;
  const network = `${master!.address.replace(/\d+$/, '0')}/24`;
  const agent = fileURLToPath(new URL('./enter-host.sh', import.meta.url));
  const settings = {
    plm_rsh_agent: agent,
    plm_rsh_no_tree_spawn: '1',
    oob_tcp_if_include: network,
    btl_tcp_if_include: network,
  };
  const command = [
    'mpirun.openmpi',
    ...Object.entries(settings).flatMap(([name, value]) => ['--mca', name, value]),
    ...['--bind-to', 'none', '--oversubscribe', '-np', `${ranks}`],
    ...['--host', ends.map(({ address }) => `${address}:${ranks / ends.length}`).join(',')],
    path,
    ...args,
  ];
  const hosts = ends.map(({ name, address }) => `${address}=${name}`).join(' ');
  const inside = `hostname ${master!.name}; exec ${line(command)}`;
  return [
    'env',
    `RINGWISE_HOSTS=${hosts}`,
    'ip',
    'netns',
    'exec',
    master!.name,
    'unshare',
    '-u',
    'sh',
    '-c',
    inside,
  ];
}
