// Cases of recurrent layers, and of packed and padded sequences.
import type { Arg, Ref } from '../../case.ts';
import { type Draft, floats, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

type State = Record<string, Ref>;
type Options = Record<string, Arg>;

/** Draws a parameter: dense float32, as modules hold it. */
const parameter = (d: Draft, ...shape: number[]): Ref => d.tensor(shape, { domain: 'share', views: false });

const input = (d: Draft, shape: readonly number[], least = 0.03): Ref =>
  d.tensor(shape, { domain: 'coarse', ...(d.draws.chance(least) ? { dtype: 'float64' } : {}) });

const gatesOf: Readonly<Record<string, number>> = { RNN: 1, LSTM: 4, GRU: 3 };

function cellState(
  d: Draft,
  gates: number,
  ins: number,
  hidden: number,
  hasBias: boolean,
  end = '',
  projSize = 0,
): State {
  const state: State = {
    [`weight_ih${end}`]: parameter(d, gates * hidden, ins),
    [`weight_hh${end}`]: parameter(d, gates * hidden, projSize || hidden),
  };
  if (hasBias) {
    state[`bias_ih${end}`] = parameter(d, gates * hidden);
    state[`bias_hh${end}`] = parameter(d, gates * hidden);
  }
  if (projSize > 0) state[`weight_hr${end}`] = parameter(d, projSize, hidden);
  return state;
}

interface Drawn {
  readonly ins: number;
  readonly hidden: number;
  /** The widths of the states. */
  readonly widths: readonly number[];
  readonly options: Options;
  /** Layers times directions. */
  readonly cells: number;
  readonly state: State;
  readonly batchFirst: boolean;
}

/** Draws the options and the state of a recurrent layer. */
function layer(d: Draft, name: string): Drawn {
  const { draws } = d;
  const [ins, hidden, numLayers] = [draws.int(1, 3), draws.int(1, 3), draws.pick([1, 1, 2, 3])];
  const [hasBias, isBoth, batchFirst] = [draws.chance(0.7), draws.chance(0.4), draws.chance(0.4)];
  const projSize = name === 'LSTM' && hidden > 1 && draws.chance(0.3) ? draws.int(1, hidden - 1) : 0;
  const width = projSize || hidden;
  const options: Options = {
    ...(projSize > 0 ? { projSize } : {}),
    ...(numLayers === 1 ? {} : { numLayers }),
    ...(hasBias ? {} : { bias: false }),
    ...(isBoth ? { bidirectional: true } : {}),
    ...(batchFirst ? { batchFirst } : {}),
    ...(name === 'RNN' && draws.chance(0.5) ? { nonlinearity: draws.pick(['relu', 'tanh']) } : {}),
  };
  const state: State = {};
  for (let at = 0; at < numLayers; at++) {
    for (let direction = 0; direction <= Number(isBoth); direction++) {
      const own = at === 0 ? ins : width * (1 + Number(isBoth));
      const end = `_l${at}${direction === 1 ? '_reverse' : ''}`;
      Object.assign(state, cellState(d, gatesOf[name]!, own, hidden, hasBias, end, projSize));
    }
  }
  const cells = numLayers * (1 + Number(isBoth));
  return { ins, hidden, widths: [width, hidden], options, cells, state, batchFirst };
}

const optionsOrNothing = (options: Options): Arg => (Object.keys(options).length > 0 ? options : nothing);

/** Draws no state, or one state, or the two of an LSTM. */
function states(d: Draft, name: string, lead: readonly number[], widths: readonly number[]): Arg[] {
  if (d.draws.chance(0.4)) return [];
  const [h, c] = widths;
  const one = (width: number): Ref => d.tensor([...lead, width], { domain: 'coarse' });
  return name.startsWith('LSTM') ? [[one(h!), one(c!)]] : [one(h!)];
}

const recurrent =
  (name: string) =>
  (d: Draft): void => {
    const { draws } = d;
    const { ins, hidden, widths, options, cells, state, batchFirst } = layer(d, name);
    const isBatched = draws.chance(0.8);
    const [time, batch] = [
      draws.int(Number(draws.chance(0.95)), 4),
      draws.int(Number(draws.chance(0.95)), 3),
    ];
    const wrong = Number(draws.chance(0.04));
    const lead = isBatched ? (batchFirst ? [batch, time] : [time, batch]) : [time];
    const x = input(d, [...lead, ins + wrong]);
    const more = Number(draws.chance(0.04));
    const own = isBatched
      ? states(d, name, [cells, batch + more], widths)
      : states(
          d,
          name,
          [cells],
          widths.map((width) => width + more),
        );
    d.callModule(name, [ins, hidden, optionsOrNothing(options)], state, [x, ...own], draws.chance(0.5));
  };

/** Draws lengths of 1 to `most`, in most cases from the longest to the shortest. */
function lengthsOf(d: Draft, batch: number, most: number): [lengths: number[], isSorted: boolean] {
  const lengths = Array.from({ length: batch }, () => d.draws.int(1, most));
  if (d.draws.chance(0.5)) lengths.sort((a, b) => b - a);
  return [lengths, lengths.every((length, i) => i === 0 || length <= lengths[i - 1]!)];
}

/** Records the packing of a drawn input. Returns the size of its batch. */
function packed(
  d: Draft,
  width: readonly number[],
  dtype: 'float32' | 'any' = 'any',
  hasMisfits = false,
): number {
  const { draws } = d;
  const [time, batch] = [draws.int(1, 4), draws.int(1, 4)];
  const batchFirst = draws.chance(0.5);
  const [lengths, isSorted] = lengthsOf(d, batch, time);
  if (hasMisfits && d.index % 4 === 1) {
    lengths[0] = time + 1;
    d.tags.add('length beyond the time');
  }
  const shape = [...(batchFirst ? [batch, time] : [time, batch]), ...width];
  const x = d.tensor(shape, dtype === 'any' ? { dtype: draws.pick(floats) } : { domain: 'coarse' });
  const mustSort = !isSorted && draws.chance(0.95);
  const options: Options = {
    ...(batchFirst ? { batchFirst } : {}),
    ...(mustSort || draws.chance(0.3) ? { enforceSorted: false } : {}),
  };
  const own: Arg = draws.chance(0.3) ? d.given(lengths, [batch], 'int64', false) : lengths;
  const args: Arg[] = [x, own, ...(Object.keys(options).length > 0 ? [options] : [])];
  d.steps.push({ op: 'nn.packPaddedSequence', via: 'function', args });
  return batch;
}

/** A reference to the first result of step `i`, once all inputs are drawn. */
const stepResult = (d: Draft, i: number): Ref => ({ $: d.inputs.length + i });

const ofPacked =
  (name: string) =>
  (d: Draft): void => {
    const { ins, hidden, widths, options, cells, state } = layer(d, name);
    const batch = packed(d, [ins], 'float32');
    const own = states(d, name, [cells, batch], widths);
    const { batchFirst: _, ...rest } = options;
    d.callModule(name, [ins, hidden, optionsOrNothing(rest)], state, [stepResult(d, 0), ...own]);
  };

const cell =
  (name: string) =>
  (d: Draft): void => {
    const { draws } = d;
    const [ins, hidden, hasBias] = [draws.int(1, 3), draws.int(1, 3), draws.chance(0.7)];
    const options: Options = {
      ...(hasBias ? {} : { bias: false }),
      ...(name === 'RNNCell' && draws.chance(0.5) ? { nonlinearity: draws.pick(['relu', 'tanh']) } : {}),
    };
    const state = cellState(d, gatesOf[name.replace('Cell', '')]!, ins, hidden, hasBias);
    const lead = draws.chance(0.8) ? [draws.int(0, 3)] : [];
    const x = input(d, [...lead, ins + Number(draws.chance(0.04))]);
    const width = hidden + Number(draws.chance(0.04));
    const own = states(d, name, lead, [width, width]);
    d.callModule(name, [ins, hidden, optionsOrNothing(options)], state, [x, ...own]);
  };

function padPacked(d: Draft): void {
  const { draws } = d;
  packed(d, draws.pick([[], [2], [2, 1]]));
  const options: Options = {
    ...(draws.chance(0.4) ? { batchFirst: true } : {}),
    ...(draws.chance(0.4) ? { paddingValue: -1.5 } : {}),
    ...(draws.chance(0.3) ? { totalLength: draws.pick([2, 5, 6]) } : {}),
  };
  const args = [stepResult(d, 0), optionsOrNothing(options)].filter((arg) => arg !== nothing);
  d.steps.push({ op: 'nn.padPackedSequence', via: 'function', args });
}

function sequencesOf(d: Draft, least: number): Ref[] {
  const { draws } = d;
  const rest = draws.pick([[], [2], [1, 2]]);
  const dtype = draws.pick(floats);
  return Array.from({ length: draws.int(1, 4) }, () =>
    d.tensor([draws.int(least, 3), ...rest, ...(draws.chance(0.03) ? [2] : [])], { dtype }),
  );
}

function pad(d: Draft): void {
  const { draws } = d;
  const options: Options = {
    ...(draws.chance(0.4) ? { batchFirst: true } : {}),
    ...(draws.chance(0.4) ? { paddingValue: 2 } : {}),
    ...(draws.chance(0.4) ? { paddingSide: draws.pick(['left', 'right']) } : {}),
  };
  const args = [sequencesOf(d, 0), optionsOrNothing(options)].filter((arg) => arg !== nothing);
  d.steps.push({ op: 'nn.padSequence', via: 'function', args });
}

function pack(d: Draft): void {
  const own = sequencesOf(d, 1);
  d.steps.push({ op: 'nn.packSequence', via: 'function', args: [own, { enforceSorted: false }] });
}

const layers = ['RNN', 'LSTM', 'GRU'];

export const sequences: Makers = {
  ...Object.fromEntries(layers.map((name) => [`nn.${name}`, { draw: recurrent(name), count: 16 }])),
  ...Object.fromEntries(layers.map((name) => [`nn.${name} packed`, { draw: ofPacked(name), count: 8 }])),
  ...Object.fromEntries(layers.map((name) => [`nn.${name}Cell`, { draw: cell(`${name}Cell`), count: 8 }])),
  'nn.packPaddedSequence': { draw: (d) => void packed(d, [2], 'any', true), count: 20 },
  'nn.padPackedSequence': { draw: padPacked, count: 12 },
  'nn.padSequence': { draw: pad, count: 10 },
  'nn.packSequence': { draw: pack, count: 6 },
};
