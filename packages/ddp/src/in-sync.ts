// Proof that replicas have not drifted apart: parameters are compared bit by bit, by their hashes.
import { createHash } from 'node:crypto';
import type { BufferView, Group } from '@ringwise/collectives';
import { type Disagreement, firstDisagreement } from './compare.ts';
import { notInSync, unreachableMemory } from './errors.ts';
import { type GradParam, type GradParamSource, paramsOf } from './grad-param.ts';
import { bytesOf } from './memory.ts';

type Params = GradParamSource | Iterable<Pick<GradParam, 'name' | 'value'>>;

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
  const entries = paramsOf(params).map(({ name, value }) => [name, hashOf(name, value)] as const);
  return firstDisagreement(group, entries);
}

function hashOf(name: string, { host, device }: BufferView): string {
  if (host === null) throw unreachableMemory(name, device.kind);
  return `(sha256 ${createHash('sha256').update(bytesOf(host)).digest('hex').slice(0, 16)})`;
}
