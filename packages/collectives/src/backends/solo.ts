// The group of one rank: every verb copies or does nothing. A script written for many ranks runs on it unchanged.
import type { Backend, Operation, Running, Settle } from '../backend.ts';
import { allocHost, elementsOf } from '../buffer.ts';
import { isReducible } from '../reduce-ops.ts';
import type { BackendFactory } from '../registry.ts';
import { reduce, write } from './arithmetic.ts';

export function solo(): Backend {
  return {
    contract: 1,
    name: 'solo',
    rank: 0,
    size: 1,
    supports: {
      devices: ['cpu'],
      verbs: ['allReduce', 'broadcast', 'allGather', 'reduceScatter', 'barrier'],
      sync: true,
      reduces: isReducible,
    },
    start,
    run: execute,
    alloc: allocHost,
    abort: () => {},
    close: async () => {},
  };
}

export const soloBackend: BackendFactory = async () => solo();

function start(operation: Operation, settle: Settle): Running {
  execute(operation);
  let isSettled = false;
  const wait = () => {
    if (!isSettled) settle();
    isSettled = true;
  };
  queueMicrotask(wait);
  return { wait };
}

function execute(operation: Operation): void {
  switch (operation.verb) {
    case 'allReduce':
      if (operation.op === 'premulSum') write(operation.buffer, reduce('premulSum', [operation]));
      break;
    case 'allGather':
      write(operation.output, elementsOf(operation.input));
      break;
    case 'reduceScatter':
      write(operation.output, reduce(operation.op, [{ buffer: operation.input, factor: operation.factor }]));
      break;
  }
}
