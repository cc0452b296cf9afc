// allToAll along dimensions. Its gradient is the same exchange in the opposite direction.

import { oneOfCounts } from '../errors.ts';
import type { Group } from '../group/group.ts';
import type { Differentiable } from './autograd.ts';
import { Call, type Started, shapeText } from './call.ts';
import { unevenDim } from './errors.ts';
import { now, unused } from './gathers.ts';
import type { ExchangeOptions } from './options.ts';
import { checkedSizes, dimOf } from './parts.ts';

interface Plan {
  readonly split: number;
  readonly concat: number;
  /** Length along `split` of the part for each rank. */
  readonly send: readonly number[];
  /** Length along `concat` of the part from each rank. */
  readonly recv: readonly number[];
}

const productOf = (lengths: readonly number[]): number =>
  lengths.reduce((product, length) => product * length, 1);
const sumOf = (lengths: readonly number[]): number => lengths.reduce((sum, length) => sum + length, 0);

/** Starts to send a part of `x` to each rank and to concatenate the parts received from them. */
function exchange<T extends Differentiable>(
  { autograd, group }: Call<T>,
  x: T,
  { split, concat, send, recv }: Plan,
  options: object,
): Started<T> {
  const shape = autograd.shapeOf(x);
  const sizes = shape.map((length, dim) => (dim === split ? send[group.rank]! : length));
  const others = sizes.filter((_, dim) => dim !== concat);
  const rest = productOf(others);
  // Each part has the dimension `concat` first, so that parts received one after the other are concatenated along it.
  let input: T;
  if (split === concat) input = autograd.toFront(x, split);
  else {
    let from = 0;
    const parts = send.map((length) => {
      const own = autograd.untracked(() => autograd.narrow(x, split, from, length));
      from += length;
      const front = autograd.toFront(own, concat);
      autograd.dispose(own);
      return front;
    });
    input = autograd.join(parts);
    for (const each of parts) autograd.dispose(each);
  }
  const output = autograd.empty(x, [sumOf(recv), ...others]);
  const unit = productWithout(shape, split);
  const work = group.allToAll(input, output, {
    ...options,
    sendCounts: send.map((length) => length * unit),
    recvCounts: recv.map((length) => length * rest),
  });
  const result = autograd.fromFront(output, concat);
  return { work, result, temporaries: unused([input, output], result), autograd };
}

/** Returns the product of all sizes except that of dimension `dim`. */
const productWithout = (shape: readonly number[], dim: number): number =>
  productOf(shape.filter((_, index) => index !== dim));

export function allToAll<T extends Differentiable>(group: Group, x: T, options: ExchangeOptions): Started<T> {
  const call = new Call(group, 'allToAll', x, options);
  const { sendSizes, recvSizes } = call.options;
  const [split, concat] = [
    dimOf(call, 'split', call.options.split),
    dimOf(call, 'concat', call.options.concat),
  ];
  const { shape } = call;
  const [length, part] = [shape[split]!, shape[concat]!];
  if ((sendSizes === undefined) !== (recvSizes === undefined)) throw call.error(oneOfCounts(call.verb));
  let send: readonly number[];
  let recv: readonly number[];
  if (sendSizes === undefined) {
    if (length % group.size !== 0)
      throw call.error(unevenDim(call.verb, split, length, group.size, 'sendSizes and recvSizes'));
    send = new Array<number>(group.size).fill(length / group.size);
    recv = split === concat ? send : new Array<number>(group.size).fill(part);
  } else {
    send = checkedSizes(call, 'sendSizes', sendSizes, `together ${length}`, (all) => sumOf(all) === length);
    // The part that a rank sends to itself.
    const kept = split === concat ? send[group.rank]! : part;
    recv = checkedSizes(
      call,
      'recvSizes',
      recvSizes,
      `this rank's being ${kept}`,
      (all) => all[group.rank] === kept,
    );
  }
  call.number(true, shapeText(shape, split, concat), `, ${split} → ${concat}`);
  const plan = { split, concat, send, recv };
  const back = { split: concat, concat: split, send: recv, recv: send };
  const started = exchange(call, x, plan, call.forward);
  const result = call.autograd.record('allToAll', started.result, x, (grad) =>
    now(exchange(call, grad, back, call.backward)),
  );
  return { ...started, result };
}
