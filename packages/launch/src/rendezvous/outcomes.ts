// Messages of a launcher about a job, other than failures of ranks.

import { inspect } from 'node:util';
import type { RankOutcome } from '../agent/rank-process.ts';
import { culpritOf } from '../report/culprit.ts';
import { exitCodeOf, failureReport, rootCause } from '../report/report.ts';
import type { Member, Outcome } from './messages.ts';

/** Reports an error in the coordinator itself. The first line is the whole sentence on the other hosts. */
export const cannotDecide = (error: unknown) =>
  'the launcher cannot decide how the job goes on, so the job was ended. This is a defect of ringwise: please report ' +
  `it with these lines.\n  ${inspect(error).replaceAll('\n', '\n  ')}`;

export const givenUp =
  'the job goes on without this host: there was no sign of life from it for too long. Start the launcher here again ' +
  'to take part again.';

export const tooLate = 'this host came when the job had ended.';

export const hostTwice = ({ nodeRank }: Member, { host }: Member) =>
  `--node-rank ${nodeRank} was given twice: ${host} has it already. Number the hosts from 0, each once.`;

export const tooFewHosts = (hosts: readonly string[], minNodes: number, withinMs: number) =>
  `${hosts.length} of ${minNodes} hosts arrived within ${withinMs / 1000} s: ${hosts.join(', ') || 'none'}. Start the ` +
  'launcher on the others, or raise join_timeout in --rdzv-conf.';

export const grown = 'more hosts have come.';

export const waiting = (present: number, minNodes: number, maxNodes: number, why: string | null) => {
  const wanted = minNodes === maxNodes ? `${minNodes} hosts` : `${minNodes} to ${maxNodes} hosts`;
  const there = `${present} ${present === 1 ? 'is' : 'are'} there`;
  return `waiting for ${wanted}, ${there}${why ? `; ${why}` : '.'}`;
};

export const hostLost = (host: string, ranks: string) =>
  `host ${host} with ${ranks} was lost: no sign of life from its launcher. It was killed, or its network is cut off.`;

/** Names ranks by their numbers, which must be sorted: "rank 3", "ranks 0 to 3" or "ranks 0, 2". */
export function ranks(numbers: readonly number[]): string {
  const [first = 0] = numbers;
  const last = numbers.at(-1) ?? first;
  if (numbers.length < 2) return `rank ${first}`;
  return `ranks ${last - first === numbers.length - 1 ? `${first} to ${last}` : numbers.join(', ')}`;
}

export const reserve = (maxRanks: number) =>
  `all ${maxRanks} ranks of the job have a host: this one waits, and takes over if another one is lost.`;

export const slotAgain = (slot: number, ending: string, restarts: number, maxRestarts: number) =>
  `starting rank ${slot} again after ${ending}, restart ${restarts} of ${maxRestarts}; the others go on.`;

export const tooFewRanks = (ranks: number, minRanks: number) =>
  `${ranks} of at least ${minRanks} ranks are left.`;

export const stateLost =
  'The job cannot go on: no rank with the state of the training is left. Start it again; it resumes from its last snapshot.';

export const failedAfterTraining =
  'The training was over then, so that starting the rank again could not make up for it. The others have ended.';

export const repeated = (times: number, step: number) => `The job was ended: ${failsAgain(times, step)}`;

export const restartsUsed = (maxRestarts: number) =>
  maxRestarts === 0
    ? 'The job was ended: --max-restarts 0 starts no rank again.'
    : `The job was ended: this rank has been started again ${maxRestarts === 1 ? 'once' : `${maxRestarts} times`}, as often as --max-restarts allows.`;

/** Warns that a client of the job's store did not prove the secret, which torch's clients cannot do. */
export const plainClient = (address: string, hasSeveralHosts: boolean) =>
  `a client from ${address} was turned away from the job's store: it did not prove the secret, which PyTorch's cannot. ` +
  (hasSeveralHosts
    ? 'For ranks that are PyTorch let its rank 0 keep a store: in every rank, before init_process_group(), set ' +
      'TORCHELASTIC_USE_AGENT_STORE=False and MASTER_PORT to a free port of the host of rank 0.'
    : 'For ranks that are PyTorch run with an empty RINGWISE_SECRET=: the store then asks for none and takes this host only.');

export const storeLost = (where: string) =>
  `lost the launcher at ${where}, which keeps the job's store. The ranks of this host go on in a store on another host ` +
  'if more than half of the members of the last view do, on three hosts or more, and end if not. From now on each launcher decides for the ranks of its host.';

export const movedHere = (address: string) =>
  `the job goes on in the store of this host. Another host joins with --rdzv-endpoint ${address} instead of the one ` +
  'before, and its other flags as they were.';

export const movedThere = (address: string) =>
  `the job goes on in the store at ${address}, which another host gives as --rdzv-endpoint to join.`;

export const keeperEnded = "the launcher that keeps the job's store has ended.";

export const waitsElsewhere = (where: string, movedTo: string) =>
  `lost the launcher at ${where}, which keeps the job's store. The job goes on in the store at ${movedTo}, where this host waits.`;

export const notAgain = (slot: number, ending: string, why: string) =>
  `rank ${slot} is not started again after ${ending}: ${why}`;

export const endedThere = 'it says that the job has ended.';

export const notFound =
  'the job has ended, or no store to which its ranks have moved was found on the hosts of the last view.';

export const asOftenAsAllowed = (maxRestarts: number) =>
  `--max-restarts ${maxRestarts} allows no more since this launcher decides for it.`;

export const failsAgain = (times: number, step: number) =>
  `this line of the program has failed ${times} times at step ${step}, so another start does not help.`;

/** Returns the outcome of a job on a host without a coordinator: success if the remaining ranks have exited with 0. */
export function withoutStore(outcomes: readonly RankOutcome[], beganNs: bigint, id: string): Outcome {
  const root = outcomes.some(({ exitCode }) => exitCode === 0) ? null : rootCause(outcomes);
  if (root === null) return { exitCode: 0, text: null, blamed: null };
  const text = failureReport(outcomes, beganNs, root);
  return { exitCode: exitCodeOf(root), text, blamed: id, culprit: culpritOf(root) };
}
