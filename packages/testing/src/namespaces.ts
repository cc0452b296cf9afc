// Makes several hosts on one machine: network namespaces with addresses of their own, joined by a bridge in one more
// namespace. Interfaces are created inside the namespaces, so the machine's own network never sees them. Needs Linux,
// root and the `ip` command.
//
// Namespaces outlive the process that made them. Their names carry its pid, and a process that makes new ones first
// removes those of processes that are gone, with everything that still runs in them.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';

export interface Host {
  /** Name of the host's network namespace. */
  readonly name: string;
  /** IPv4 address at which the other hosts reach this one, on its interface eth0. It also has its own loopback. */
  readonly address: string;
}

export interface StartOptions {
  /** The whole environment of the process. Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

export interface Hosts {
  readonly hosts: readonly Host[];
  /** Starts a program on a host. Its pid is that of the program itself; stdout and stderr are pipes. */
  readonly start: (host: Host, argv: readonly string[], options?: StartOptions) => ChildProcess;
  /** Kills what runs on the hosts and removes them. Idempotent. */
  readonly close: () => Promise<void>;
}

const prefix = 'ringwise-test-';

/** Returns null if makeHosts() works here, otherwise the reason why it does not. */
export function whyNoNamespaces(): string | null {
  if (process.platform !== 'linux') return `${process.platform} has no network namespaces`;
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  try {
    removeAll(create(1).names);
    return null;
  } catch (error) {
    const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
    return code === 'ENOENT' ? 'there is no `ip` command (package iproute2)' : (stderr || message).trim();
  }
}

/** Makes `count` hosts, each connected with all others. Throws if whyNoNamespaces() returns a reason. */
export function makeHosts(count: number): Hosts {
  const { hosts, names } = create(count);
  const children = new Set<ChildProcess>();
  let closing: Promise<void> | undefined;
  const close = async () => {
    const ends = [...children].map((child) => once(child, 'exit'));
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(ends);
    removeAll(names);
  };
  return {
    hosts,
    start: (host, argv, { env } = {}) => {
      const child = spawn('ip', ['netns', 'exec', host.name, ...argv], {
        stdio: ['ignore', 'pipe', 'pipe'],
        ...(env !== undefined && { env }),
      });
      if (child.pid !== undefined) children.add(child);
      child.once('exit', () => children.delete(child));
      return child;
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

function create(count: number): { readonly hosts: Host[]; readonly names: string[] } {
  removeLeftovers();
  const job = `${prefix}${process.pid}-${randomBytes(4).toString('hex')}`;
  const bridge = `${job}-bridge`;
  const hosts = Array.from({ length: count }, (_, n) => ({
    name: `${job}-${n}`,
    address: `10.83.19.${n + 1}`,
  }));
  const names = [bridge, ...hosts.map(({ name }) => name)];
  try {
    for (const name of names) {
      ip('netns', 'add', name);
      ip('-n', name, 'link', 'set', 'lo', 'up');
    }
    ip('-n', bridge, 'link', 'add', 'bridge', 'type', 'bridge');
    ip('-n', bridge, 'link', 'set', 'bridge', 'up');
    for (const [n, { name, address }] of hosts.entries()) {
      const port = `port${n}`;
      ip('-n', bridge, 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
      ip('-n', bridge, 'link', 'set', port, 'master', 'bridge', 'up');
      ip('-n', name, 'address', 'add', `${address}/24`, 'dev', 'eth0');
      ip('-n', name, 'link', 'set', 'eth0', 'up');
    }
    return { hosts, names };
  } catch (error) {
    removeAll(names);
    throw error;
  }
}

function removeLeftovers(): void {
  const mine = new RegExp(`^${prefix}(\\d+)-`);
  removeAll(existing().filter((name) => mine.test(name) && !isAlive(Number(mine.exec(name)?.[1]))));
}

/** Kills what still runs in those of the namespaces that exist, and removes them. */
function removeAll(names: readonly string[]): void {
  const present = new Set(existing());
  for (const name of names) {
    if (!present.has(name)) continue;
    for (const pid of ip('netns', 'pids', name).split('\n').filter(Boolean)) kill(Number(pid));
    ip('netns', 'delete', name);
  }
}

function existing(): string[] {
  const lines = ip('netns', 'list').split('\n').filter(Boolean);
  return lines.map((line) => line.split(' ')[0]!); // "name (id: 0)"
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has ended meanwhile.
  }
}

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
