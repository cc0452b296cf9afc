// Windows that slide along a dimension, as a view.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { scope } from '../../core/context.ts';
import { arange, zeros } from '../../core/creation.ts';
import { denseLayout, type Layout, selected } from '../../core/layout.ts';
import { checkedDim } from '../../core/shape.ts';
import { type Tensor, viewOf } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { narrow, reshape } from './views.ts';

/**
 * Returns windows of `size` elements along `dim`, which begin `step` elements apart: the dimension counts windows, and
 * a new last one the elements of each. Shares memory with `a`; elements occur in several windows if `step` < `size`.
 */
export function unfold(a: Tensor, dim: number, size: number, step: number): Tensor {
  requireTensor('unfold', a);
  const at = checkedDim('unfold', dim, Math.max(1, a.rank));
  const whole = a.rank === 0 ? 1 : a.shape[at]!;
  if (!Number.isSafeInteger(size) || size < 0 || size > whole)
    throw badOption('unfold: size', `an integer from 0 to ${whole}, the size of the dimension`, shown(size));
  if (!Number.isSafeInteger(step) || step < 1) throw badOption('unfold: step', 'an integer ≥ 1', shown(step));
  if (a.rank === 0) return scope(() => narrow(reshape(a, [1]), 0, 0, size));
  const windowed = ({ shape, strides, offset }: Layout): Layout => ({
    shape: [...shape.with(at, Math.floor((whole - size) / step) + 1), size],
    strides: [...strides.with(at, strides[at]! * step), strides[at]!],
    offset,
  });
  const out = viewOf(a, windowed(a.layout));
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  return record('unfold', out, [target], [], (grad, graph) => {
    if (graph) {
      const { grad: own } = graphOf(graph);
      const [count, { dtype, device }] = [own.shape[at]!, own];
      const steps = (n: number, by: number) => arange(0, n, 1, { dtype: 'int64', device }).mul(by);
      const positions = steps(count, step)
        .reshape([count, 1])
        .add(steps(size, 1))
        .reshape([count * size]);
      const order = [...shape.keys()].flatMap((d) => (d === at ? [d, shape.length] : [d]));
      const joined = own.permute(order).reshape(shape.with(at, count * size));
      graphOf(graph).send(target, zeros(shape, { dtype, device }).indexAdd(at, positions, joined));
      return;
    }
    const into = target.open();
    if (!target.isFilled) kernels().copy([target.count], into, 0);
    const windows = windowed(denseLayout(shape));
    const own = denseLayout(windows.shape);
    // The elements at one position of all windows are distinct, so each step writes an element once.
    for (let i = 0; i < size && out.count > 0; i++) {
      const [region, part] = [
        selected(windows, windows.shape.length - 1, i),
        selected(own, own.shape.length - 1, i),
      ];
      const there = { memory: into.memory, offset: into.offset + region.offset, strides: region.strides };
      const given = { memory: grad.memory, offset: grad.dense.offset + part.offset, strides: part.strides };
      kernels().map('add', target.dtype, region.shape, there, there, given);
    }
    target.close();
  });
}
