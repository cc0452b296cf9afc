// elastic(), with which an elastic program begins.
import { constants } from 'node:os';
import { init, refusingMembers } from '@ringwise/collectives';
import { checkInteger, checkOptions, shown } from '../check.ts';
import { badOptions, invalidArgument } from '../errors.ts';
import { type JobAccess, joinJob } from '../membership/join.ts';
import { checkMembership, renamed } from '../membership/options.ts';
import { entriesOf, phasesOf, replayMembership } from '../replay/replay.ts';
import { ElasticJob } from './job.ts';
import { checkLogFile } from './log.ts';
import type { ElasticOptions } from './options.ts';

const names: readonly (keyof ElasticOptions)[] = [
  ...([
    'log',
    'leaveOn',
    'rescueFolder',
    'learn',
    'replay',
    'store',
    'runId',
    'size',
    'min',
    'backend',
    'timeoutMs',
  ] as const),
  ...(['settleMs', 'stallMs', 'lastCallMs', 'joinTimeoutMs', 'connectMs'] as const),
];

const notAwaited = refusingMembers(
  { what: 'job', call: 'elastic()', names: [] },
  ElasticJob.prototype,
  badOptions,
);

/**
 * Makes a job whose training continues when ranks are lost or join; use it in place of init(). Resolves at once. Not
 * collective: this process joins the others only in job.ddp(), so that they do not wait while it loads its data.
 * Rejects with ERR_ELASTIC_INVALID for a wrong option.
 *
 * @example
 * ```ts
 * await using job = await elastic({ min: 1 }); // under ringwise run --elastic
 * const batches = job.loader([{ x: Float32Array.of(1, 2), y: Float32Array.of(3) }], { batchPerRank: 1 });
 * const elasticModel = await job.ddp(net, { optimizer, loader: batches });
 * for await (const step of job.steps(batches, { epochs: 3 })) {
 *   await step.run((batch) => {
 *     const loss = mseLoss(elasticModel.forward(fromHost(batch.x.data, batch.x.shape)), fromHost(batch.y.data));
 *     loss.backward();
 *     return loss.item();
 *   });
 * }
 * ```
 */
export function elastic(options: ElasticOptions = {}): Promise<ElasticJob> {
  return notAwaited(start(options));
}

async function start(options: ElasticOptions): Promise<ElasticJob> {
  checkOptions('elastic', options, names, renamed);
  const {
    log = null,
    leaveOn = 'SIGTERM',
    learn = null,
    rescueFolder = null,
    replay,
    ...membership
  } = options;
  if (log !== null && typeof log !== 'string' && typeof log !== 'function')
    throw invalidArgument('elastic: log', 'the path of a file, or a function', shown(log));
  if (typeof log === 'string') checkLogFile(log);
  if (leaveOn !== null && !isHandled(leaveOn))
    throw invalidArgument(
      'elastic: leaveOn',
      'the name of a signal such as SIGTERM, or null',
      shown(leaveOn),
    );
  if (rescueFolder !== null && (typeof rescueFolder !== 'string' || rescueFolder === ''))
    throw invalidArgument('elastic: rescueFolder', 'the path of a folder', shown(rescueFolder));
  if (learn !== null && typeof learn !== 'boolean')
    throw invalidArgument('elastic: learn', 'true or false', shown(learn));
  for (const [name, count] of Object.entries({ size: options.size, min: options.min }))
    if (count !== undefined) checkInteger(`elastic: ${name}`, count, 1);
  checkMembership('elastic', membership); // here, because joinMembership() checks them in ddp() only
  const entries = replay === undefined ? null : entriesOf(replay);
  const join = async (prepare: (access: JobAccess) => Promise<void>) => {
    if (entries === null) return await joinJob(membership, prepare);
    const { backend } = membership;
    const group = await init(backend === undefined ? {} : { backend: backend as never });
    return await replayMembership(group, phasesOf(entries));
  };
  return new ElasticJob({ join, learn, log, leaveOn, rescueFolder });
}

/** Tells whether a process can handle the signal of this name. */
function isHandled(name: unknown): boolean {
  return typeof name === 'string' && name in constants.signals && name !== 'SIGKILL' && name !== 'SIGSTOP';
}
