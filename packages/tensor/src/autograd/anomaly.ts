// Looks for the operation that made the first NaN or infinity. What an operation gave is checked when it is recorded,
// what its gradient gave when backward has run it. −∞ is let through forwards, because masks are made of it.

import { kernels } from '../backends/index.ts';
import type { Strided } from '../backends/operands.ts';
import { withStrides } from '../core/layout.ts';
import type { Shape } from '../core/shape.ts';
import { allocate } from '../core/storage.ts';
import { anomalyBackward, anomalyForward } from '../errors.ts';
import type { GradTarget } from './target.ts';

/** The part of a node that is checked. */
interface Checked {
  readonly name: string;
  readonly output: { readonly shape: Shape; readonly strided: Strided };
  readonly inputs: readonly (GradTarget | null)[];
  readonly site: Error | null;
}

/** NaN, +∞ or −∞ among the elements; the first two of them before the third. Null where all are finite. */
function oddity(shape: readonly number[], values: Strided): number | null {
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

/** The stack of the caller, also where it is deep: layers call layers. */
export function siteOf(name: string): Error {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 100;
  const site = new Error(name);
  Error.stackTraceLimit = limit;
  return site;
}

export function checkForward({ name, output, site }: Checked): void {
  const value = oddity(output.shape, output.strided);
  if (value !== null && value !== -Infinity) throw anomalyForward(name, value, output.shape, site!);
}

/** After a node has run: what it sent on. */
export function checkBackward({ name, inputs, site, output }: Checked): void {
  if (site === null) return;
  for (const input of inputs) {
    if (!input?.grad) continue;
    const value = oddity([input.count], input.grad.dense);
    if (value !== null) throw anomalyBackward(name, value, output.shape, site);
  }
}
