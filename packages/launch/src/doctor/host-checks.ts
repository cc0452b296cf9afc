// Checks the launcher's requirements on a host: Node.js, a shell, limits, loopback, and the ports of the rendezvous.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { loopbackAddress } from '@ringwise/store';
import { ompThreads } from '../agent/env.ts';
import { thisMachine } from '../agent/machine.ts';
import { diesWithParent } from '../agent/parent-death.ts';
import { hasProcessGroups } from '../agent/process-groups.ts';
import { defaultPorts } from '../cli/meeting-args.ts';
import { type Finding, note, ok, wrong } from './finding.ts';
import { unknownVariables } from './known-variables.ts';

/** The oldest supported version of Node.js, as in `engines` of all packages. */
const oldest = [20, 19] as const;
/** The default limit of open files on most systems. With less, jobs with many ranks run out of file descriptors. */
const fewestFiles = 1024;
const deadlineMs = 5000;

export async function* examineHost(env: NodeJS.ProcessEnv): AsyncGenerator<Finding> {
  yield nodeFinding(process.versions);
  yield ranksFinding(env);
  yield* variablesFinding(env);
  if (hasProcessGroups()) yield shellFinding();
  if (process.platform === 'linux' && (await diesWithParent()).length === 0) {
    yield note(
      'setpriv',
      'no setpriv --pdeathsig (package util-linux): ranks that are not node survive if their launcher and its shell are ' +
        'killed together',
    );
  }
  if (process.platform === 'linux') yield* schedulerFinding(autogroups());
  yield await loopbackFinding();
  yield await portsFinding(Object.values(defaultPorts));
}

/** Returns the kernel's setting `sched_autogroup_enabled`; null if it has none. */
function autogroups(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/sched_autogroup_enabled', 'utf8').trim();
  } catch {
    return null;
  }
}

/**
 * Reports that the kernel shares cores among sessions, if it does. The launcher starts each rank in a session of its
 * own, to end the rank with all its children. A waiting rank that yields then does not give its core to another rank.
 */
export function* schedulerFinding(setting: string | null): Generator<Finding> {
  if (setting !== '1') return;
  yield note(
    'scheduler',
    'the kernel shares cores among sessions, of which each rank is one. Where 8 ranks or more share two cores, small ' +
      'operations may be faster after: sysctl kernel.sched_autogroup_enabled=0',
  );
}

function shellFinding(): Finding {
  const limits = spawnSync('/bin/sh', ['-c', 'ulimit -n; ulimit -l'], {
    encoding: 'utf8',
    timeout: deadlineMs,
  });
  if (!limits.error) return limitsFinding(limits.stdout);
  return wrong(
    'shell',
    'cannot start /bin/sh, which ends ranks if their launcher is killed',
    'Install a POSIX shell there.',
  );
}

export function nodeFinding({ node, modules, napi }: NodeJS.ProcessVersions): Finding {
  const [major, minor] = node.split('.').map(Number) as [number, number];
  const text = `${node} on ${process.platform}-${process.arch}${libc()}, ABI ${modules}, Node-API ${napi}`;
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return ok('node', text);
  return wrong('node', text, `Install Node ${oldest.join('.')} or newer.`);
}

/** Returns ", glibc VERSION" on Linux, because the addons are built for glibc; an empty text elsewhere. */
function libc(): string {
  if (process.platform !== 'linux') return '';
  // Without this the report looks up every network interface in DNS. Node's types lack the member.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  report.excludeNetwork = true;
  const { header } = report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ? `, glibc ${header.glibcVersionRuntime}` : ', no glibc';
}

function ranksFinding(env: NodeJS.ProcessEnv): Finding {
  const { cores, gpus } = thisMachine();
  const visible = env.CUDA_VISIBLE_DEVICES;
  const from = visible === undefined ? '' : ` (CUDA_VISIBLE_DEVICES=${visible})`;
  const threads = env.OMP_NUM_THREADS ?? ompThreads(cores, gpus || cores);
  const started = `--nproc-per-node auto starts ${gpus || cores}, OMP_NUM_THREADS=${threads} each`;
  return ok('ranks', `${cores} cores, ${gpus} GPUs${from}: ${started}`);
}

/** Reports variables that would be silently ignored. */
function* variablesFinding(env: NodeJS.ProcessEnv): Generator<Finding> {
  const unknown = unknownVariables(env).map(
    ({ name, suggestion }) => `${name} is not known${suggestion ? `; did you mean ${suggestion}?` : ''}`,
  );
  if (unknown.length > 0) yield note('variables', unknown.join('\n'));
}

export function limitsFinding(printed: string): Finding {
  const [files, locked] = printed.trim().split('\n') as [string, string | undefined];
  const lockable = locked === undefined || locked === 'unlimited' ? 'unlimited' : `${locked} KiB`;
  const text = `open files ${files} (ulimit -n), locked memory ${lockable} (ulimit -l)`;
  if (files === 'unlimited' || Number(files) >= fewestFiles) return ok('limits', text);
  const how =
    'Raise the hard limit, too: /etc/security/limits.conf, LimitNOFILE= of a systemd unit, docker --ulimit nofile=65536';
  return wrong('limits', text, `${how}.`);
}

async function loopbackFinding(): Promise<Finding> {
  const startMs = performance.now();
  try {
    await answerOnce();
    return ok('loopback', `${loopbackAddress()} answers, ${(performance.now() - startMs).toFixed(1)} ms`);
  } catch (error) {
    const fix = 'Bring the interface up (ip link set lo up), and let no firewall filter it.';
    return wrong('loopback', `${loopbackAddress()} does not answer: ${(error as Error).message}`, fix);
  }
}

/** Connects to a port of this process and reads one byte. */
async function answerOnce(): Promise<void> {
  const signal = AbortSignal.timeout(deadlineMs);
  const server = createServer((socket) => socket.on('error', () => {}).end('.'));
  try {
    server.listen(0, loopbackAddress());
    await once(server, 'listening', { signal });
    const socket = connect((server.address() as AddressInfo).port, loopbackAddress());
    try {
      await once(socket, 'data', { signal });
    } finally {
      socket.destroy();
    }
  } finally {
    server.close();
  }
}

/** Reports ports in use. Only jobs on several hosts need fixed ports; jobs on one host use a free port. */
export async function portsFinding(ports: readonly number[]): Promise<Finding> {
  const taken: string[] = [];
  for (const port of ports) {
    const server = createServer();
    try {
      server.listen(port);
      await once(server, 'listening');
    } catch (error) {
      taken.push(`${port} (${(error as NodeJS.ErrnoException).code})`);
    } finally {
      server.close();
    }
  }
  if (taken.length === 0) return ok('ports', `${ports.join(' and ')}, where several hosts meet, are free`);
  const other = 'for several hosts name another in --rdzv-endpoint or --master-port';
  return note('ports', `cannot listen on ${taken.join(', ')}: ${other}`);
}
