// Describes the training of a process. The members keep the description in the store. A process that wants to join
// compares it with its own first, and gives up if they differ; as a member it would end the job.
import { trainsSomethingElse } from '../errors.ts';
import { firstDifference } from '../transfer/headers.ts';
import type { ElasticDdpOptions } from './options.ts';
import { memoriesOf, type TrainedParts } from './trained.ts';

/** Returns the description as JSON: what stays the same on all members as long as the job runs. */
export function describeTraining(parts: TrainedParts, options: Partial<ElasticDdpOptions>): string {
  const { source, optimizer, loader, scaler, generators, extra } = parts;
  const { hook, bucketBytes, firstBucketBytes, unused, broadcastBuffers, syncBatchNorm } = options;
  const shapes = memoriesOf(source).map(({ name, value, shape = [value.count] }) => [
    name,
    `${value.dtype} [${shape.join(', ')}]`,
  ]);
  const { params } = optimizer as { readonly params?: unknown };
  return JSON.stringify({
    model: Object.fromEntries(shapes),
    optimizer: optimizer.constructor.name,
    optimizedParameters: Array.isArray(params) ? params.length : null,
    loader: loader.ledger.description,
    scaler: scaler !== null,
    generators: generators.length,
    extra: Object.fromEntries(Object.keys(extra).map((name) => [name, true])),
    hook: hook === undefined ? null : hook.name,
    options: { bucketBytes, firstBucketBytes, unused, broadcastBuffers, syncBatchNorm },
  });
}

/** Throws ERR_ELASTIC_STATE if the members' description differs from this process's. */
export function checkSameTraining(own: string, theirs: string): void {
  if (own === theirs) return;
  throw trainsSomethingElse(firstDifference(JSON.parse(own), JSON.parse(theirs), 'its', ['here', 'there']));
}
