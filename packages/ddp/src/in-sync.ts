// Proof that replicas have not drifted apart: parameters are compared bit by bit, by their hashes.
import { createHash } from 'node:crypto';
import type { Group } from '@ringwise/collectives';
import { type Disagreement, firstDisagreement } from './compare.ts';
import { notInSync, unreachableMemory } from './errors.ts';
import { type GradParam, type GradParamSource, paramsOf } from './grad-param.ts';
import { bytesOf } from './memory.ts';

type Param = Pick<GradParam, 'name' | 'value' | 'readValue'>;
type Params = GradParamSource | Iterable<Param>;

/**
 * Throws ERR_DDP_NOT_IN_SYNC, with the same sentence on every rank, unless all ranks hold the same parameters bit for
 * bit. Collective. Reads all of them: call it now and then, not in every step.
 */
export async function assertInSync(params: Params, group: Group): Promise<void> {
  const difference = await compare(params, group);
  if (difference) throw notInSync(difference.name, difference.values);
}

/** Whether all ranks hold the same parameters bit for bit. Collective; the same answer on every rank. */
export async function inSync(params: Params, group: Group): Promise<boolean> {
  return (await compare(params, group)) === null;
}

function compare(params: Params, group: Group): Promise<Disagreement | null> {
  const entries = paramsOf<Param>(params).map((param) => [param.name, hashOf(param)] as const);
  return firstDisagreement(group, entries);
}

function hashOf(param: Param): string {
  const { host, device } = param.value;
  const bytes = host ?? param.readValue?.();
  if (bytes === undefined) throw unreachableMemory(param.name, device.kind);
  return `(sha256 ${createHash('sha256').update(bytesOf(bytes)).digest('hex').slice(0, 16)})`;
}
