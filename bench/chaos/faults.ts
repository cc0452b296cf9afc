// The faults of the chaos bench. Which fault comes when follows from the seed; which process it hits, also from who
// lives.

import { setTimeout as sleep } from 'node:timers/promises';
import { firstFinalAfter, type Job } from './job.ts';
import { nowNs } from './journal.ts';

export const faultKinds = ['kill', 'stop', 'leave', 'launcher', 'cut', 'mute', 'slow'] as const;
export type FaultKind = (typeof faultKinds)[number];

/** Kinds that need a network between the hosts. */
export const networkKinds: readonly FaultKind[] = ['cut', 'mute', 'slow'];

export const faultHelp: Readonly<Record<FaultKind, string>> = {
  kill: 'SIGKILL to a rank',
  stop: 'SIGSTOP to a rank, and SIGCONT after 0.1 to 6 s',
  leave: 'SIGTERM to the launcher of the second host: its ranks leave',
  launcher: 'SIGKILL to the launcher of the second host',
  cut: 'the network of the second host is down for 0.2 to 4 s (not with --hosts 1)',
  mute: 'packets that the second host sends are lost for 0.2 to 4 s, and it still receives (not with --hosts 1)',
  slow: 'the second host sends at 256 kbit/s for 0.2 to 4 s (not with --hosts 1)',
};

export interface Fault {
  readonly kind: FaultKind;
  /** Choose the process, the duration, and the pause before the fault: from 0 to 1. */
  readonly which: number;
  readonly long: number;
  readonly pause: number;
  /** Whether it comes soon, also while ranks are lost or join, instead of when all ranks train again. */
  readonly isEarly: boolean;
}

const ranks = 4;
/** Share of the faults that are early. */
const early = 0.3;
/** How long a fault that is not early waits for all ranks. */
const patienceMs = 20_000;

/** Returns the faults of a run. */
export function planFaults(count: number, kinds: readonly FaultKind[], random: () => number): Fault[] {
  return Array.from({ length: count }, () => ({
    kind: kinds[Math.floor(random() * kinds.length)]!,
    which: random(),
    long: random(),
    pause: random(),
    isEarly: random() < early,
  }));
}

export interface Struck {
  readonly kind: FaultKind;
  readonly atNs: number;
  /** Time from the fault to the first final step that was begun after it; null if there was nothing to strike. */
  readonly recoveryMs: number | null;
  /** While these processes did not work although they were alive: from, to, number. */
  readonly idle: readonly (readonly [number, number, number])[];
}

/**
 * Strikes, and waits until the job makes steps final again. The fault comes at `atMs` of performance.now(); with null,
 * half a second to one and a half after all ranks train, or after the fault before if it is early.
 */
export async function strike(
  job: Job,
  { kind, which, long, pause, isEarly }: Fault,
  atMs: number | null = null,
): Promise<Struck> {
  if (atMs !== null) await sleep(Math.max(0, atMs - performance.now()));
  else {
    const endMs = performance.now() + (isEarly ? 0 : patienceMs);
    await job.until('all ranks', () => job.training.length === ranks || performance.now() > endMs);
    await sleep(500 + 1_000 * pause);
  }
  job.update();
  const { training, members } = job;
  const rank = training[Math.floor(which * training.length)];
  // A job goes on as long as one member is left that has the state, and reaches the store, which is on the first host.
  const othersGoOn = members.some((member) => member !== rank);
  const firstHostGoesOn = members.some(({ host }) => host === 0);
  const atNs = nowNs();
  const idle: [number, number, number][] = [];
  let hasStruck = true;
  if (kind === 'kill') hasStruck = rank !== undefined && othersGoOn && signal(rank.pid, 'SIGKILL');
  else if (kind === 'leave') hasStruck = firstHostGoesOn && job.signalLauncher(1, 'SIGTERM');
  else if (kind === 'launcher') hasStruck = firstHostGoesOn && job.signalLauncher(1, 'SIGKILL');
  else if (kind === 'stop') {
    hasStruck = rank !== undefined && othersGoOn && signal(rank.pid, 'SIGSTOP');
    if (hasStruck) {
      await sleep(100 + 5_900 * long ** 2);
      signal(rank!.pid, 'SIGCONT');
      idle.push([atNs, nowNs(), 1]);
    }
  } else if (!firstHostGoesOn) hasStruck = false;
  else {
    const away = training.filter(({ host }) => host === 1).length;
    job.setLink(kind);
    await sleep(200 + 3_800 * long);
    job.setLink('whole');
    if (kind !== 'slow') idle.push([atNs, nowNs(), away]);
  }
  if (!hasStruck) return { kind, atNs, recoveryMs: null, idle };
  await job.until(`a final step after ${kind}`, () => firstFinalAfter(job, atNs) !== null);
  return { kind, atNs, recoveryMs: (firstFinalAfter(job, atNs)! - atNs) / 1e6, idle };
}

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
