// A model whose weights are averages of another model's weights over time.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aFunction, type Check, checkValue, flag } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type DeviceName, deviceOf } from '../../device/device.ts';
import { badOption } from '../../errors.ts';
import { buffer } from '../../nn/buffer.ts';
import { Module } from '../../nn/module.ts';
import { type AvgFn, getSwaMultiAvgFn, type MultiAvgFn } from './averaging.ts';

/** Options of AveragedModel. */
export interface AveragedModelOptions {
  /** Where the averages are kept. Default: where the tensors of the copy are. */
  readonly device?: DeviceName;
  /** How one tensor is averaged. Default null. */
  readonly avgFn?: AvgFn | null;
  /** How all tensors are averaged. Default null; without either function, all models have the same weight. */
  readonly multiAvgFn?: MultiAvgFn | null;
  /** Whether buffers are averaged, too; otherwise they are copied from the model in each update. Default false. */
  readonly useBuffers?: boolean;
}

const functionOrNull: Check = {
  expected: 'a function or null',
  fits: (value) => value === null || aFunction.fits(value),
};
const averagedModelOptions = optionChecks<AveragedModelOptions>({
  device: { expected: 'the name of a device', fits: (value) => typeof value === 'string' },
  ...{ avgFn: functionOrNull, multiAvgFn: functionOrNull, useBuffers: flag },
});

/** A module with a forward of any arguments. */
type Runnable = Module & { forward(...inputs: never[]): unknown };

interface Pair {
  readonly averaged: Tensor;
  readonly current: Tensor;
}

const aModel: Check = { expected: 'a module', fits: (value) => value instanceof Module };

/** Returns the tensors of both models, side by side. Throws unless names and shapes are the same. */
function paired(averaged: readonly [string, Tensor][], current: readonly [string, Tensor][]): Pair[] {
  const all = new Map(current);
  const odd =
    averaged.find(([name, { shape }]) => !sameShape(shape, all.get(name)?.shape ?? [-1]))?.[0] ??
    current.find(([name]) => !averaged.some(([own]) => own === name))?.[0];
  if (odd !== undefined)
    throw badOption('AveragedModel: model', 'a model of the same parameters and buffers', `another '${odd}'`);
  return averaged.map(([name, tensor]) => ({ averaged: tensor.detach(), current: all.get(name)!.detach() }));
}

/**
 * Keeps averages of a model's weights in `copy`, a second model of the same class: SWA (the default), EMA (with
 * `multiAvgFn: getEmaMultiAvgFn(0.999)`) or another average. `copy` gets the values of the model at once. Use the
 * averages by forward(), after updateBn() if there are batch norms.
 */
export class AveragedModel<M extends Runnable = Runnable> extends Module {
  /** The model with the averages. */
  readonly module: M;
  /** Number of calls of updateParameters(): int64, without dimensions. */
  readonly nAveraged: Tensor;
  readonly #avgFn: AvgFn | null;
  readonly #multiAvgFn: MultiAvgFn;
  readonly #useBuffers: boolean;

  constructor(model: M, copy: M, options: AveragedModelOptions = {}) {
    super();
    checkOptions('AveragedModel', options, averagedModelOptions);
    checkValue('AveragedModel: model', model, aModel);
    const isOther = copy instanceof Module && copy !== model;
    if (!isOther) throw badOption('AveragedModel: copy', 'a second model of the same class', 'none');
    const { device, avgFn = null, multiAvgFn = null, useBuffers = false } = options;
    if (avgFn !== null && multiAvgFn !== null)
      throw badOption('AveragedModel: avgFn', 'avgFn or multiAvgFn', 'both');
    const where = device === undefined ? undefined : deviceOf(device, 'AveragedModel');
    const pairs = [
      ...paired(copy.namedParameters(), model.namedParameters()),
      ...paired(copy.namedBuffers(), model.namedBuffers()),
    ];
    for (const { averaged, current } of pairs) copyNear(averaged, current);
    this.module = where === undefined ? copy : copy.to(where);
    this.nAveraged = buffer(zeros([], { dtype: 'int64' }));
    this.#avgFn = avgFn;
    this.#multiAvgFn = multiAvgFn ?? getSwaMultiAvgFn();
    this.#useBuffers = useBuffers;
  }

  protected override *members(): Iterable<[string, unknown]> {
    yield ['module', this.module];
    yield ['n_averaged', this.nAveraged];
  }

  /** Computes with the averages. */
  forward(...inputs: Parameters<M['forward']>): ReturnType<M['forward']> {
    return this.module.forward(...inputs) as ReturnType<M['forward']>;
  }

  /** Adds the current weights of `model` to the averages. The first call copies them. */
  updateParameters(model: M): void {
    checkValue('updateParameters: model', model, aModel);
    scope(() => noGrad(() => this.#update(model)));
  }

  #update(model: M): void {
    const params = paired(this.module.namedParameters(), model.namedParameters());
    const buffers = paired(this.module.namedBuffers(), model.namedBuffers());
    const pairs = this.#useBuffers ? [...params, ...buffers] : params;
    const count = Number(this.nAveraged.item());
    if (count === 0) for (const { averaged, current } of pairs) copyNear(averaged, current);
    else if (this.#avgFn !== null) {
      for (const { averaged, current } of pairs.map(near))
        scope(() => averaged.copy_(this.#avgFn!(averaged, current, count)));
    } else {
      for (const group of groups(pairs.map(near)))
        this.#multiAvgFn(
          group.map(({ averaged }) => averaged),
          group.map(({ current }) => current),
          count,
        );
    }
    if (!this.#useBuffers) for (const { averaged, current } of buffers) copyNear(averaged, current);
    this.nAveraged.add_(1);
  }
}

/** Returns the pair with the current value on the device of the average. */
const near = ({ averaged, current }: Pair): Pair => ({ averaged, current: current.to(averaged.device) });

function copyNear(averaged: Tensor, current: Tensor): void {
  scope(() => noGrad(() => averaged.copy_(current.to(averaged.device))));
}

/** Returns the pairs in groups of one dtype on one device. */
function groups(pairs: readonly Pair[]): Pair[][] {
  const found = new Map<string, Pair[]>();
  for (const pair of pairs) {
    const key = `${pair.averaged.device} ${pair.averaged.dtype}`;
    found.set(key, [...(found.get(key) ?? []), pair]);
  }
  return [...found.values()];
}
