// Starts a Slurm cluster of two nodes on this machine, without munge, systemd or cgroups. It needs root and Slurm's
// programs: installed, or extracted from Debian's packages below the folder that RINGWISE_TEST_SLURM names:
//   apt-get download slurm-wlm slurm-client slurmctld slurmd slurm-wlm-basic-plugins libslurm38; dpkg -x each.deb DIR
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@ringwise/testing';

export interface SlurmPaths {
  readonly root: string;
  /** Suffix of the program names. Debian's packages use "-wlm". */
  readonly suffix: string;
}

export interface Slurm {
  readonly srun: string;
  readonly env: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

export function findSlurm(): SlurmPaths | null {
  if (process.getuid?.() !== 0) return null;
  const extracted = process.env.RINGWISE_TEST_SLURM;
  const candidates = [
    ...(extracted ? [{ root: extracted, suffix: '-wlm' }] : []),
    { root: '/', suffix: '-wlm' },
    { root: '/', suffix: '' },
  ];
  return candidates.find(({ root, suffix }) => existsSync(join(root, `usr/sbin/slurmctld${suffix}`))) ?? null;
}

/** Starts the cluster with its state below `folder`. Resolves when both nodes are idle; throws after 30 s. */
export async function startSlurm({ root, suffix }: SlurmPaths, folder: string): Promise<Slurm> {
  const library = join(root, 'usr/lib/x86_64-linux-gnu');
  const state = join(folder, 'slurm');
  // Each node needs its own temporary folder: PMIx names its files there by the job, so the nodes' files would collide.
  for (const each of ['state', 'tmp.n1', 'tmp.n2']) mkdirSync(join(state, each), { recursive: true });
  const file = join(state, 'slurm.conf');
  const [control, ...nodes] = [await freePort(), await freePort(), await freePort()];
  writeFileSync(file, configuration(join(library, 'slurm-wlm'), state, control!, nodes));
  const env = { SLURM_CONF: file, LD_LIBRARY_PATH: `${library}:${join(library, 'slurm-wlm')}` };
  const program = (name: string) => join(root, `usr/sbin/${name}${suffix}`);
  const start = (name: string, ...args: string[]) =>
    spawn(program(name), ['-D', ...args], { env: { ...process.env, ...env }, stdio: 'ignore' });
  const stepper = program('slurmstepd');
  const daemons = [
    start('slurmctld'),
    start('slurmd', '-N', 'n1', '-d', stepper),
    start('slurmd', '-N', 'n2', '-d', stepper),
  ];
  const close = async () => {
    for (const daemon of daemons) await stopped(daemon);
  };
  const sinfo = join(root, `usr/bin/sinfo`);
  const endMs = performance.now() + 30_000;
  for (;;) {
    const { stdout } = spawnSync(sinfo, ['-h', '-o', '%T %D'], { env, encoding: 'utf8', timeout: 10_000 });
    if (stdout?.trim() === 'idle 2') return { srun: join(root, 'usr/bin/srun'), env, close };
    if (performance.now() > endMs) {
      await close();
      throw new Error(`Slurm's nodes were not idle within 30 s: ${stdout}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function stopped(daemon: ChildProcess): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return;
  daemon.kill('SIGKILL');
  await once(daemon, 'exit');
}

function configuration(plugins: string, state: string, control: number, nodes: readonly number[]): string {
  const host = hostname();
  const node = (name: string, port: number) =>
    `NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${port} CPUs=2 RealMemory=500 State=UNKNOWN`;
  return `ClusterName=ringwise
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmUser=root
SlurmdUser=root
PluginDir=${plugins}
StateSaveLocation=${state}/state
SlurmdSpoolDir=${state}/spool.%n
TmpFS=${state}/tmp.%n
SlurmctldPidFile=${state}/ctld.pid
SlurmdPidFile=${state}/slurmd.%n.pid
SlurmctldLogFile=${state}/ctld.log
SlurmdLogFile=${state}/slurmd.%n.log
SlurmctldPort=${control}
SlurmctldHost=${host}(127.0.0.1)
${node('n1', nodes[0]!)}
${node('n2', nodes[1]!)}
PartitionName=p Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
`;
}
