// What dataParallel() is given, and the parts of it that ddp() uses.
import {
  buffersSymbol,
  frozenParamsSymbol,
  type GradParam,
  type GradParamSource,
  gradParamsSymbol,
} from '@ringwise/ddp';
import type * as tf from '@tensorflow/tfjs';
import { disposed, invalidArgument, notAModel, notCompiled } from './errors.ts';
import { Copied, Trained } from './variables.ts';

/** The variables of a training loop of one's own, and the optimizer that updates them. */
export interface OptimizedVariables {
  /** The optimizer whose variables they are. */
  readonly optimizer: tf.Optimizer;
  /** In the same order on all ranks. */
  readonly variables: readonly tf.Variable[];
}

type LayerVariable = tf.LayersModel['weights'][number];

/** The parts of a model, in the order of its weights. */
export class Parts implements GradParamSource {
  readonly optimizer: tf.Optimizer;
  readonly trained: readonly Trained[];
  /** Weights of frozen layers: sent once. */
  readonly frozen: readonly Copied[];
  /** Weights that layers change in training, such as running means: those of rank 0 are sent in every step. */
  readonly states: readonly Copied[];
  /** The layers' handles of `trained`, at the same index. Empty for variables without layers. */
  readonly handles: readonly LayerVariable[];

  constructor(source: tf.LayersModel | OptimizedVariables) {
    if (typeof source !== 'object' || source === null) throw notAModel();
    const isModel = 'layers' in source;
    if (isModel && !isCompiled(source)) throw notCompiled();
    this.optimizer = source.optimizer;
    if (typeof this.optimizer?.applyGradients !== 'function') throw notAModel();
    if (!isModel) {
      if (!Array.isArray(source.variables)) throw notAModel();
      this.trained = source.variables.map((variable, i) => new Trained(`variable ${i}`, checked(variable)));
      [this.frozen, this.states, this.handles] = [[], [], []];
    } else {
      const all = weightsOf(source);
      const trains = new Set(source.trainableWeights);
      const own = new Set(source.layers.flatMap(statesOf));
      const describe = (weight: LayerVariable) =>
        `weight ${all.indexOf(weight)} (${weight.originalName.split('/').at(-1)})`;
      const copied = (weight: LayerVariable) =>
        new Copied(describe(weight), checked(weight.read() as tf.Variable));
      this.handles = all.filter((weight) => trains.has(weight));
      this.trained = this.handles.map(
        (weight) => new Trained(describe(weight), checked(weight.read() as tf.Variable)),
      );
      this.states = all.filter((weight) => own.has(weight)).map(copied);
      this.frozen = all.filter((weight) => !trains.has(weight) && !own.has(weight)).map(copied);
    }
    if (this.trained.length === 0)
      throw invalidArgument('dataParallel', 'at least one variable that trains', 'none');
  }

  get all(): readonly Copied[] {
    return [...this.trained, ...this.frozen, ...this.states];
  }

  /** Throws if the model has been disposed of. */
  checkInUse(verb: string): void {
    for (const { name, key } of this.trained) if (key.isDisposed) throw disposed(verb, name);
  }

  [gradParamsSymbol](): Iterable<GradParam> {
    return this.trained;
  }

  [frozenParamsSymbol](): Iterable<Copied> {
    return this.frozen;
  }

  [buffersSymbol](): Iterable<Copied> {
    return this.states;
  }
}

function isCompiled(model: tf.LayersModel): boolean {
  return (model.optimizer as tf.Optimizer | null | undefined) != null;
}

function checked(variable: tf.Variable): tf.Variable {
  if (typeof variable?.assign !== 'function') throw notAModel();
  if (variable.isDisposed) throw disposed('dataParallel', variable.name);
  return variable;
}

/** Returns a model's weights, each once although layers may share them. */
function weightsOf(model: tf.LayersModel): LayerVariable[] {
  const all = [...new Set(model.weights)];
  try {
    for (const weight of all) weight.read(); // throws if it is disposed
  } catch {
    throw disposed('dataParallel', model.name);
  }
  return all;
}

/**
 * Returns the weights that a layer declared as not trainable. `nonTrainableWeights` has those of frozen layers too, and
 * these do not change. Batch normalization changes its own also if it is frozen.
 */
function statesOf(layer: tf.layers.Layer): LayerVariable[] {
  const inner = layer as unknown as {
    readonly layers?: readonly tf.layers.Layer[];
    readonly _nonTrainableWeights?: LayerVariable[];
    readonly layer?: tf.layers.Layer;
    readonly forwardLayer?: tf.layers.Layer;
    readonly backwardLayer?: tf.layers.Layer;
  };
  const nested = [...(inner.layers ?? []), inner.layer, inner.forwardLayer, inner.backwardLayer];
  return [
    ...(inner._nonTrainableWeights ?? []),
    ...nested.filter((each) => each !== undefined).flatMap(statesOf),
  ];
}
