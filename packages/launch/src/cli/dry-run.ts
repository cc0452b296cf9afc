// --dry-run: describes the process of each rank on this host without starting anything.

import { firstStart, slotEnvironment } from '../agent/env.ts';
import { type Machine, planRanks, type RankBinding } from '../agent/plan.ts';
import { describeMeeting } from '../rendezvous/rendezvous.ts';
import type { Program } from './program.ts';
import type { RunOptions } from './run-options.ts';

/**
 * Describes the first round with the maximum number of hosts, assuming that each has as many ranks as this
 * one.
 */
export async function describePlan(
  { meeting, runId, role, maxRestarts, elastic }: RunOptions,
  nproc: number,
  program: Program,
  machine: Machine,
  bindings: readonly RankBinding[],
): Promise<string> {
  const { nodeRank, maxNodes } = meeting;
  const share = {
    nproc,
    firstRank: nodeRank * nproc,
    worldSize: maxNodes * nproc,
    groupRank: nodeRank,
    groupWorldSize: maxNodes,
  };
  const isPython = program.isPython === true;
  const rendezvous = await describeMeeting(meeting, { runId, isPython }, program.env);
  const facts = { ...firstStart, role, maxRestarts };
  const { minRanks } = elastic ?? { minRanks: null };
  // The address of the store that a launcher keeps ready is not known before the run.
  const first = { incarnation: 0, standby: null };
  const extras = (localRank: number) =>
    minRanks === null
      ? {}
      : { env: slotEnvironment({ ...first, slot: share.firstRank + localRank, minRanks }) };
  const specs = planRanks(share, program, rendezvous, machine, facts, extras, bindings);
  return specs
    .map(({ rank, command, args, env }) => {
      const changed = Object.entries(env).filter(([name, value]) => program.env[name] !== value);
      const lines = changed.map(
        ([name, value]) => `  ${name}=${name === 'MASTER_PORT' && value === '0' ? '(a free one)' : value}`,
      );
      return `rank ${rank}: ${[...command, ...args].join(' ')}\n${lines.join('\n')}\n`;
    })
    .join('');
}
