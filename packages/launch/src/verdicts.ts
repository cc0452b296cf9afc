// How a job may end on a host without the failure of a rank, in words.

import type { Member } from './messages.ts';

export const givenUp =
  'the job goes on without this host: there was no sign of life from it for too long. Start the launcher here again ' +
  'to take part again.';

export const tooLate = 'this host came when the job had ended.';

export const hostTwice = ({ nodeRank }: Member, { host }: Member) =>
  `--node-rank ${nodeRank} was given twice: ${host} has it already. Number the hosts from 0, each once.`;

export const tooFewHosts = (hosts: readonly string[], minNodes: number, withinMs: number) =>
  `${hosts.length} of ${minNodes} hosts came within ${withinMs / 1000} s: ${hosts.join(', ') || 'none'}. Start the ` +
  'launcher on the others, or raise join_timeout in --rdzv-conf.';

export const grown = 'more hosts have come.';

export const waiting = (present: number, minNodes: number, maxNodes: number, why: string | null) => {
  const wanted = minNodes === maxNodes ? `${minNodes} hosts` : `${minNodes} to ${maxNodes} hosts`;
  const there = `${present} ${present === 1 ? 'is' : 'are'} there`;
  return `waiting for ${wanted}, ${there}${why ? `; ${why}` : '.'}`;
};

export const hostLost = (host: string, ranks: string) =>
  `host ${host} with ${ranks} was lost: no sign of life from its launcher. It was killed, or its network is cut off.`;
