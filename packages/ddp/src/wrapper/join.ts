// Training with uneven inputs: a rank whose loop has ended takes part in the other ranks' reductions, with gradients
// that do not count, until no rank has data. Then all ranks copy the state of the ranks that trained longest, which is
// bitwise equal on them.
import type { Group } from '@ringwise/collectives';
import { checkFunction } from '../check.ts';
import { broadcasts, carrier } from '../reducer/memory.ts';
import type { Reducer } from '../reducer/reducer.ts';
import { runAwaiting } from '../reducer/works.ts';
import type { StateBuffer } from './grad-param.ts';

export type JoinBody<T> = () => T | Promise<T>;

/** Implements DistributedDataParallel.join(). `state` is broadcast to all ranks at the end. */
export async function join<T>(
  reducer: Reducer,
  group: Group,
  state: readonly Pick<StateBuffer, 'value'>[],
  loop: JoinBody<T>,
): Promise<T> {
  checkFunction('join', loop, 'a function that runs the training loop');
  reducer.beginJoin();
  let result: T;
  try {
    result = await loop();
  } catch (error) {
    group.abort(error); // the others would wait for this rank's next participation exchange
    throw error;
  }
  const root = await reducer.takePartWithoutData();
  for (const { value } of state) await runAwaiting(broadcasts([carrier(value)], group, root));
  return result;
}
