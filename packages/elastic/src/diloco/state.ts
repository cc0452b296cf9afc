// The contents of a snapshot of diloco(), as plain data and typed arrays.
import type { TypedArray } from '@ringwise/collectives';
import { type PerRank, perRank } from '@ringwise/ddp';
import { badState } from './errors.ts';
import type { Fragment } from './fragment.ts';

/** The state of one fragment, equal on all ranks. */
export interface DilocoFragmentState {
  /** The global values of its parameters, in order. */
  readonly global: readonly Float32Array[];
  /** The state of the outer optimizer: its tensors by name, and the rest; null with 'average'. */
  readonly outer: {
    readonly tensors: Readonly<Record<string, TypedArray>>;
    readonly rest: Readonly<Record<string, unknown>>;
  } | null;
}

/** The state of one rank, one element for each fragment. */
export interface DilocoOwnState {
  /** Samples that this rank has used since the last average. */
  readonly samples: readonly number[];
  /** The local values of each parameter; null for a fragment whose local values equal the global ones. */
  readonly local: readonly (readonly Float32Array[] | null)[];
  /** The rounding errors of the 'int8' wire; null without. */
  readonly residuals: readonly (Float32Array | null)[];
}

/** State of a DiLoCo, for saveSnapshot(). */
export interface DilocoState {
  /** Inner steps so far. */
  readonly steps: number;
  /** Averages that have been applied. */
  readonly averages: number;
  /** State of each fragment, equal on all ranks. */
  readonly fragments: readonly DilocoFragmentState[];
  /** This rank's own part. May be left out, for another number of ranks. */
  readonly own?: PerRank<DilocoOwnState> | DilocoOwnState;
}

const perRankMark: unique symbol = Symbol.for('ringwise.perRank') as never;

/** Returns the state of all fragments. Its arrays are copies. */
export function savedState(
  fragments: readonly Fragment[],
  counters: { readonly steps: number; readonly averages: number },
): DilocoState {
  return {
    ...counters,
    fragments: fragments.map(({ globals, outer }) => {
      const global = globals.map((values) => values.slice());
      if (outer === null) return { global, outer: null };
      const { names, rest } = outer.plain();
      const memory = outer.memory();
      const tensors = Object.fromEntries(names.map((name, i) => [name, memory[i]!.slice()]));
      return { global, outer: { tensors, rest: JSON.parse(rest) as Record<string, unknown> } };
    }),
    own: perRank({
      samples: fragments.map(({ samples }) => samples),
      local: fragments.map((fragment) =>
        isLocal(fragment) ? fragment.locals.map((values) => values.slice()) : null,
      ),
      residuals: fragments.map(({ residual }) => residual?.slice() ?? null),
    }),
  };
}

/** Returns whether local values differ from the global ones in any bit. */
function isLocal({ locals, globals }: Fragment): boolean {
  return locals.some((local, i) => Buffer.compare(bytesOf(local), bytesOf(globals[i]!)) !== 0);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);

/**
 * Copies a state into the fragments, and their parameters. Returns the counters. Throws ERR_ELASTIC_INVALID before
 * anything is changed if it does not fit.
 */
export function restoreState(
  fragments: readonly Fragment[],
  state: DilocoState,
): { readonly steps: number; readonly averages: number } {
  const { steps, averages } = state ?? {};
  if (
    ![steps, averages].every((count) => Number.isSafeInteger(count) && count! >= 0) ||
    !Array.isArray(state.fragments)
  )
    throw badState('expected the result of stateDict(), got something else');
  if (state.fragments.length !== fragments.length)
    throw badState(`expected ${fragments.length} fragments, got ${state.fragments.length}`);
  const own = ownOf(state);
  for (const [f, fragment] of fragments.entries()) check(f, fragment, state.fragments[f]!, own);
  for (const [f, fragment] of fragments.entries()) {
    const { global, outer } = state.fragments[f]!;
    if (outer !== null) {
      const names = Object.keys(outer.tensors).sort();
      // A state from before the first average has no tensors; then complete() drops those of the optimizer.
      const memory = names.length === 0 ? [] : fragment.outer!.memory();
      for (const [i, values] of memory.entries()) values.set(outer.tensors[names[i]!] as never);
      fragment.outer!.complete({ rest: JSON.stringify(outer.rest), names });
    }
    fragment.setGlobals(global);
    fragment.adopt(0);
    fragment.samples = own?.samples[f] ?? 0;
    const local = own?.local[f];
    if (local) fragment.setLocals(local);
    if (fragment.residual !== null)
      fragment.residual.set(own?.residuals[f] ?? new Float32Array(fragment.residual.length));
  }
  return { steps, averages };
}

function ownOf({ own }: DilocoState): DilocoOwnState | null {
  if (own === undefined || own === null) return null;
  return perRankMark in own
    ? (own as unknown as Record<symbol, DilocoOwnState>)[perRankMark]!
    : (own as DilocoOwnState);
}

/** Throws unless the state of fragment `f` fits. Makes the tensors of an outer optimizer that has none yet. */
function check(f: number, fragment: Fragment, state: DilocoFragmentState, own: DilocoOwnState | null): void {
  const counts = fragment.globals.map(({ length }) => length).join(', ');
  const fits = (values: readonly Float32Array[]): boolean =>
    values.map(({ length }) => length).join(', ') === counts;
  const lists = [state.global, own?.local[f] ?? null].filter((list) => list !== null);
  for (const list of lists) {
    if (!fits(list))
      throw badState(
        `fragment ${f} expected parameters of ${counts} elements, got ${list.map(({ length }) => length).join(', ')}`,
      );
  }
  const residual = own?.residuals[f] ?? null;
  if (residual !== null && residual.length !== fragment.flat.length)
    throw badState(
      `fragment ${f} expected rounding errors of ${fragment.flat.length} elements, got ${residual.length}`,
    );
  if ((state.outer === null) !== (fragment.outer === null)) {
    const [expected, got] =
      state.outer === null ? ['an outer optimizer', 'none'] : ["outer: 'average'", 'an outer optimizer'];
    throw badState(`fragment ${f} expected ${expected}, got ${got}`);
  }
  if (state.outer === null) return;
  const names = Object.keys(state.outer.tensors).sort();
  fragment.outer!.prepare({ names, rest: '' });
  const memory = names.length === 0 ? [] : fragment.outer!.memory();
  for (const [i, own] of memory.entries()) {
    const { length } = state.outer.tensors[names[i]!]!;
    if (length !== own.length)
      throw badState(`fragment ${f} expected ${names[i]} of ${own.length} elements, got ${length}`);
  }
}
