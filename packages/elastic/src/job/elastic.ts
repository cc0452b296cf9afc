// The entry of an elastic program.
import { checkOptions, shown } from '../check.ts';
import { invalidArgument } from '../errors.ts';
import { ElasticJob } from './job.ts';
import type { ElasticOptions } from './options.ts';

const names: readonly (keyof ElasticOptions)[] = [
  ...(['log', 'leaveOn', 'store', 'runId', 'size', 'min', 'backend', 'timeoutMs'] as const),
  ...(['settleMs', 'stallMs', 'lastCallMs', 'joinTimeoutMs', 'connectMs'] as const),
];

/**
 * Makes a job whose training goes on when ranks are lost or join, instead of init(). Resolves at once. The process
 * joins the other ones in job.ddp(), when it has everything that it needs, so that they never wait for its data.
 *
 * @example
 * ```ts
 * await using job = await elastic({ min: 1 }); // under ringwise run --elastic
 * const loader = job.loader(dataset, { globalBatch: 64, microBatch: 16 });
 * const model = await job.ddp(net, { optimizer, loader });
 * for await (const step of job.steps(loader, { epochs: 3 })) {
 *   await step.run((batch) => {
 *     const loss = lossOf(model, batch);
 *     loss.backward();
 *     return loss.item();
 *   });
 * }
 * ```
 */
export async function elastic(options: ElasticOptions = {}): Promise<ElasticJob> {
  checkOptions('elastic', options, names);
  const { log = null, leaveOn = 'SIGTERM', ...membership } = options;
  if (log !== null && typeof log !== 'string' && typeof log !== 'function')
    throw invalidArgument('elastic: log', 'the path of a file, or a function', shown(log));
  if (leaveOn !== null && typeof leaveOn !== 'string')
    throw invalidArgument('elastic: leaveOn', 'the name of a signal, or null', shown(leaveOn));
  return new ElasticJob({ membership, log, leaveOn });
}
