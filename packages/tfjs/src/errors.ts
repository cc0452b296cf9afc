// Every error message of this package. Messages that concern several ranks are built from data that all ranks have, so
// that all ranks throw the same error.

import { captureDeeply } from './deep-stack.ts';

/** The codes of a TfjsError. The README lists cause and next step of each. */
export type TfjsErrorCode = 'ERR_TFJS_INVALID' | 'ERR_TFJS_MISMATCH' | 'ERR_TFJS_CHANGED' | 'ERR_TFJS_CLOSED';

const marker = Symbol.for('ringwise.TfjsError');

/** The error type of this package. Branch on `code`; the text is for people. */
export class TfjsError extends Error {
  /** Name of the class. */
  override readonly name = 'TfjsError';
  /** Stable code, which programs may compare. */
  readonly code: TfjsErrorCode;

  constructor(code: TfjsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    Object.defineProperty(this, marker, { value: true });
    captureDeeply(this, TfjsError);
  }

  /** Returns whether `error` is a TfjsError, also one of another copy of this package. */
  static is(error: unknown): error is TfjsError {
    return typeof error === 'object' && error !== null && marker in error;
  }
}

export function invalidArgument(what: string, expected: string, got: string): TfjsError {
  return new TfjsError('ERR_TFJS_INVALID', `${what}: expected ${expected}, got ${got}.`);
}

export function notAModel(): TfjsError {
  const expected = 'a compiled tf.LayersModel, or { optimizer, variables }';
  return invalidArgument('dataParallel', expected, 'something else');
}

export function notCompiled(): TfjsError {
  const next = 'Call model.compile() before dataParallel(), which averages the gradients of its optimizer';
  return invalidArgument('dataParallel', 'a compiled model', `one without an optimizer. ${next}`);
}

export function disposed(verb: string, name: string): TfjsError {
  const message = `${verb}: "${name}" is disposed; expected a model that is in use. Build it again, or call dispose() after training.`;
  return new TfjsError('ERR_TFJS_INVALID', message);
}

export function wrappedAlready(what: string): TfjsError {
  const message = `dataParallel: this ${what} is data-parallel already; expected one call, because two would average its gradients twice. Use what the first call returned, or call its close() before.`;
  return new TfjsError('ERR_TFJS_INVALID', message);
}

export function cannotBlock(backend: string): TfjsError {
  const message = `dataParallel: the ${backend} backend cannot block, but TensorFlow.js applies gradients without awaiting; expected a backend that can, such as host. Install the compiled package of @ringwise/collectives for this platform, or average in a loop of your own with averageGradients() of @ringwise/ddp.`;
  return new TfjsError('ERR_TFJS_INVALID', message);
}

export function unknownType(name: string, dtype: string): TfjsError {
  const message = `dataParallel: the variable "${name}" has dtype ${dtype}; expected float32, int32 or bool. Make it another type, or keep it out of the model.`;
  return new TfjsError('ERR_TFJS_INVALID', message);
}

export function notTrainable(name: string, dtype: string): TfjsError {
  const message = `dataParallel: the variable "${name}" has dtype ${dtype}; expected float32, because it trains.`;
  return new TfjsError('ERR_TFJS_INVALID', message);
}

/** The error that all ranks throw if one rank refused its arguments. */
export function refused(message: string, rank: number, cause: unknown): TfjsError {
  return new TfjsError('ERR_TFJS_INVALID', `${message} (on rank ${rank})`, { cause });
}

export function noSavedState(name: string): TfjsError {
  const message = `dataParallel: ${name} of TensorFlow.js cannot save its state, and it has taken steps already; expected a new one, so that all ranks begin with the same state. Compile the model again.`;
  return new TfjsError('ERR_TFJS_INVALID', message);
}

/** `values[r]` describes what rank r has. */
export function differs(verb: string, what: string, values: readonly string[], next: string): TfjsError {
  const message = `${verb}: ${what} differ between ranks: ${byRank(values)}. ${next}`;
  return new TfjsError('ERR_TFJS_MISMATCH', message);
}

export function foreignVariable(verb: string, name: string): TfjsError {
  const message = `${verb}: "${name}" is no variable that dataParallel() was given; expected those, because nothing averages the gradients of others. Pass the variables of the model as varList; if the model has changed since, call close() and dataParallel() again.`;
  return new TfjsError('ERR_TFJS_CHANGED', message);
}

export function otherOptimizer(verb: string): TfjsError {
  const message = `${verb}: the model has another optimizer than when dataParallel() was called; expected the same, because nothing averages the gradients of the new one. Call close() and dataParallel() after compile(), or set model.optimizer.learningRate.`;
  return new TfjsError('ERR_TFJS_CHANGED', message);
}

export function closed(verb: string): TfjsError {
  const message = `${verb}: this was called after close(); expected it before. Call dataParallel() again.`;
  return new TfjsError('ERR_TFJS_CLOSED', message);
}

export function tooFewRows(rows: number, size: number): TfjsError {
  const got = `${rows} for ${size} ranks`;
  return invalidArgument('shard', 'at least one row for each rank', got);
}

export function unevenRows(counts: readonly number[]): TfjsError {
  return invalidArgument('shard', 'tensors with equally many rows', counts.join(' and '));
}

/** Writes which ranks have which value: "4 on ranks 0, 2; 1 on rank 1". */
function byRank(values: readonly string[]): string {
  return [...new Set(values)]
    .map((value) => {
      const ranks = [...values.keys()].filter((rank) => values[rank] === value);
      return `${value} on rank${ranks.length > 1 ? 's' : ''} ${ranks.join(', ')}`;
    })
    .join('; ');
}
