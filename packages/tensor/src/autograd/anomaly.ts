// Finds the operation that made the first NaN or infinity. Its result is checked when the operation is recorded, the
// gradients that it sends to its inputs when backward has run it. Results may have −∞, because masks are made of it.

import { kernels } from '../backends/index.ts';
import type { Strided } from '../backends/operands.ts';
import { withStrides } from '../core/layout.ts';
import { allocate } from '../core/memory/storage.ts';
import type { Shape } from '../core/shape.ts';
import { anomalyBackward, anomalyForward } from '../errors.ts';
import type { GradTarget } from './target.ts';

/** The part of a node that is checked. */
interface Checked {
  readonly name: string;
  readonly output: { readonly shape: Shape; readonly strided: Strided };
  readonly inputs: readonly (GradTarget | null)[];
  readonly site: Error | null;
}

/** Returns NaN or +∞ if an element is, else −∞ if one is; null if all are finite. */
function nonFinite(shape: readonly number[], values: Strided): number | null {
  const extreme = (op: 'max' | 'min'): number => {
    const out = allocate('float64', 1, values.memory.device);
    kernels().reduce(
      op,
      shape,
      withStrides(
        out.dense,
        shape.map(() => 0),
      ),
      values,
    );
    const value = Number(out.memory.host[0]);
    out.release();
    return value;
  };
  if (shape.includes(0)) return null;
  const [most, least] = [extreme('max'), extreme('min')];
  return [most, least].find((value) => !Number.isFinite(value)) ?? null;
}

/** Returns an error with the stack of the caller, up to 100 frames, because layers call layers. */
export function siteOf(name: string): Error {
  const limit = Error.stackTraceLimit;
  Reflect.set(Error, 'stackTraceLimit', 100);
  const site = new Error(name);
  Reflect.set(Error, 'stackTraceLimit', limit);
  return site;
}

/** Checks the result of a node, which must have been computed. */
export function checkForward({ name, output, site }: Checked): void {
  const value = nonFinite(output.shape, output.strided);
  if (value !== null && value !== -Infinity) throw anomalyForward(name, value, output.shape, site!);
}

/** Checks the gradients of a node's inputs after the node has sent its contributions to them. */
export function checkBackward({ name, inputs, site, output }: Checked): void {
  if (site === null) return;
  for (const input of inputs) {
    if (!input?.grad) continue;
    const value = nonFinite([input.count], input.grad.dense);
    if (value !== null) throw anomalyBackward(name, value, output.shape, site);
  }
}
