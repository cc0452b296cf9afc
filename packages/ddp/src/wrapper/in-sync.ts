// Checks that replicas have not diverged: compares parameters and buffers bit by bit, by their hashes.
import { createHash } from 'node:crypto';
import type { Group } from '@ringwise/collectives';
import { checkGroup } from '../check.ts';
import { notAValue, notInSync, unreachableMemory } from '../errors.ts';
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
 * Checks that all ranks have bitwise equal parameters (also frozen ones) and state buffers, or equal members
 * of a list. Throws ERR_DDP_NOT_IN_SYNC otherwise, with the same message on every rank. Collective. Reads all
 * values, so call it now and then, not in every step.
 */
export async function assertInSync(params: Params, group: Group): Promise<void> {
  const difference = await compare('assertInSync', params, group);
  if (!difference) return;
  const isBuffer = stateBuffersOf(params).some(({ name }) => name === difference.name);
  throw notInSync(difference.name, difference.values, isBuffer ? 'buffer' : 'parameter');
}

/**
 * Resolves with whether all ranks have bitwise equal values; see assertInSync(). Collective; the same result
 * on every rank.
 */
export async function inSync(params: Params, group: Group): Promise<boolean> {
  return (await compare('inSync', params, group)) === null;
}

async function compare(verb: string, params: Params, group: Group): Promise<Disagreement | null> {
  checkGroup(verb, group);
  const all = [...paramsOf<Param>(params, verb), ...frozenParamsOf(params), ...stateBuffersOf(params)];
  const entryOf = (param: Param | StateBuffer, position: number): Entry => {
    if (typeof param?.name !== 'string' || typeof param.value !== 'object') throw notAValue(verb, position);
    return [param.name, hashOf(verb, param)];
  };
  // Computed inside the call, so that an error of one rank ends the call on all ranks.
  return firstDisagreement(group, () => all.map(entryOf));
}

function hashOf(verb: string, param: Param): string {
  const { host, device } = param.value;
  const bytes = host ?? param.readValue?.();
  if (bytes === undefined) throw unreachableMemory(verb, param.name, device.kind);
  return `(sha256 ${createHash('sha256').update(bytesOf(bytes)).digest('hex').slice(0, 16)})`;
}
