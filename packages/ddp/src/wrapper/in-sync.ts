// Proof that replicas have not drifted apart: parameters and buffers are compared bit by bit, by their hashes.
import { createHash } from 'node:crypto';
import type { Group } from '@ringwise/collectives';
import { checkGroup } from '../check.ts';
import { notInSync, unreachableMemory } from '../errors.ts';
import { bytesOf } from '../reducer/memory.ts';
import { type Disagreement, type Entry, firstDisagreement } from './compare.ts';
import {
  frozenParamsOf,
  type GradParam,
  type GradParamSource,
  paramsOf,
  type StateBuffer,
  stateBuffersOf,
} from './grad-param.ts';

type Param = Pick<GradParam, 'name' | 'value' | 'readValue'>;
type Params = GradParamSource | Iterable<Param>;

/**
 * Throws ERR_DDP_NOT_IN_SYNC, with the same sentence on every rank, unless all ranks hold the same parameters, frozen ones
 * included, and the same state buffers bit for bit; of a list, what is listed. Collective. Reads all of them: call it
 * now and then, not in every step.
 */
export async function assertInSync(params: Params, group: Group): Promise<void> {
  const difference = await compare('assertInSync', params, group);
  if (!difference) return;
  const isBuffer = stateBuffersOf(params).some(({ name }) => name === difference.name);
  throw notInSync(difference.name, difference.values, isBuffer ? 'buffer' : 'parameter');
}

/** Whether all ranks hold the same, bit for bit; see assertInSync(). Collective; the same answer on every rank. */
export async function inSync(params: Params, group: Group): Promise<boolean> {
  return (await compare('inSync', params, group)) === null;
}

async function compare(verb: string, params: Params, group: Group): Promise<Disagreement | null> {
  checkGroup(verb, group);
  const all = [...paramsOf<Param>(params, verb), ...frozenParamsOf(params), ...stateBuffersOf(params)];
  const entries = all.map(entryOf);
  return firstDisagreement(group, () => entries);
}

const entryOf = (param: Param | StateBuffer): Entry => [param.name, hashOf(param)];

function hashOf(param: Param): string {
  const { host, device } = param.value;
  const bytes = host ?? param.readValue?.();
  if (bytes === undefined) throw unreachableMemory(param.name, device.kind);
  return `(sha256 ${createHash('sha256').update(bytesOf(bytes)).digest('hex').slice(0, 16)})`;
}
