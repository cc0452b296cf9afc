// The group of one rank: every verb copies or does nothing. A script written for many ranks runs on it unchanged,
// except that there is nobody to exchange messages with.
import { allVerbs } from '../all-verbs.ts';
import type { Backend, Operation, Running, Settle } from '../backend.ts';
import { allocHost } from '../buffer.ts';
import { isReducible } from '../reduce-ops.ts';
import type { BackendFactory } from '../registry.ts';
import { execute } from './execute.ts';

export function solo(): Backend {
  return {
    contract: 1,
    name: 'solo',
    rank: 0,
    size: 1,
    supports: {
      devices: ['cpu'],
      verbs: allVerbs.filter((verb) => verb !== 'send' && verb !== 'recv'),
      sync: true,
      reduces: isReducible,
    },
    start,
    run,
    alloc: allocHost,
    abort: () => {},
    close: async () => {},
  };
}

export const soloBackend: BackendFactory = async () => solo();

function start(operation: Operation, settle: Settle): Running {
  run(operation);
  let isSettled = false;
  const wait = () => {
    if (!isSettled) settle();
    isSettled = true;
  };
  queueMicrotask(wait);
  return { wait };
}

function run(operation: Operation): undefined {
  // What one rank reduces in place stays as it is; only a factor changes it.
  const isUnchanged = operation.verb === 'allReduce' || operation.verb === 'reduce';
  if (!isUnchanged || operation.op === 'premulSum') execute([operation]);
}
