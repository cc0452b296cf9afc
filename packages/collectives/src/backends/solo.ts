// The backend of a group of one rank: every verb copies or does nothing. A script written for many ranks runs
// on it unchanged, except that it cannot exchange messages. Operations that change nothing leave CUDA memory
// alone; others are staged through host memory, as on the host backend, so init() does not need a CUDA
// driver. Only operations that change nothing can be captured, and they add nothing to the step.
import { allVerbs } from '../all-verbs.ts';
import type { Backend, Operation, Running, Settle, StepCaptures } from '../backend.ts';
import { allocHost } from '../group/buffer.ts';
import { isReducible } from '../reduce-ops.ts';
import { execute } from './arithmetic/execute.ts';
import type { BackendFactory } from './context.ts';
import { needsDevice } from './device/pieces.ts';
import { Staging } from './device/staged.ts';

export function solo(group = 'solo'): Backend {
  const onHost: Backend = {
    contract: 1,
    name: 'solo',
    rank: 0,
    size: 1,
    supports: {
      devices: ['cpu', 'cuda'],
      verbs: allVerbs.filter((verb) => verb !== 'send' && verb !== 'recv'),
      sync: true,
      reduces: isReducible,
    },
    start,
    run,
    alloc: allocHost,
    captures,
    abort: () => {},
    close: async () => {},
  };
  let staging: Staging | null = null;
  const carrierOf = (operation: Operation): Pick<Backend, 'start' | 'run'> => {
    if (isMoved(operation)) staging ??= new Staging(onHost, group, isMoved);
    return staging ?? onHost; // once staging exists, all operations use it, to keep their order
  };
  return {
    ...onHost,
    start: (operation, settle) => carrierOf(operation).start(operation, settle),
    run: (operation) => carrierOf(operation).run(operation),
    close: async () => staging?.close(),
  };
}

export const soloBackend: BackendFactory = async ({ group }) => solo(group);

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
  if (!isUnchanged(operation)) execute([operation]);
}

const captures: StepCaptures = {
  refuses: (operation) => (isUnchanged(operation) ? null : 'a single rank copies it by way of the host'),
  add: (_operation, _step, settle) => ({ join: () => settle(), forget: () => settle() }),
  run: (_run, settle) => () => settle(),
};

const isMoved = (operation: Operation): boolean => !isUnchanged(operation) && needsDevice(operation);

/**
 * Returns whether the operation leaves its buffers as they are: with one rank, all in-place ones without a
 * factor.
 */
function isUnchanged(operation: Operation): boolean {
  switch (operation.verb) {
    case 'allReduce':
    case 'reduce':
      return operation.op !== 'premulSum';
    case 'broadcast':
    case 'barrier':
      return true;
    default:
      return false;
  }
}
