// Draws what bench/plot.ts has measured: times of an all-reduce against its size, and samples per second with DDP
// against the number of ranks.
import { type Curve, drawLogPlot } from './log-plot.ts';

/** A line of bench/peers.ts: the median time of a call in µs, by contender. */
export interface TimeRow {
  readonly ranks: number;
  readonly bytes: number;
  readonly us: Readonly<Record<string, number>>;
}

/** A line of bench/ddp-peers.ts: samples per second of all ranks, of ours and of each PyTorch. */
export interface RateRow {
  readonly ranks: number;
  readonly ours: number;
  readonly peers: readonly number[];
}

/** All that a plot shows, and how it was measured. Stored beside the pictures. */
export interface Measurement {
  readonly command: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly load: number;
    readonly node: string;
  };
  readonly allReduce: readonly TimeRow[];
  readonly ddp: readonly RateRow[];
}

const names: Readonly<Record<string, string>> = {
  js: 'ringwise',
  openmpi: 'Open MPI',
  mpich: 'MPICH',
  gloo: 'Gloo',
  torch: 'PyTorch (Gloo)',
};

const curve = (name: string, points: Curve['marks']): Curve => ({ name, marks: points, line: points });

function timeCurves(rows: readonly TimeRow[]): Curve[] {
  return Object.entries(names).flatMap(([key, name]) => {
    const points = rows
      .filter(({ us }) => us[key] !== undefined)
      .map(({ bytes, us }) => ({ x: bytes, y: us[key]! }));
    return points.length > 0 ? [curve(name, points)] : [];
  });
}

function rateCurves(rows: readonly RateRow[]): Curve[] {
  const theirs = rows.filter(({ peers }) => peers.length > 0);
  const best = theirs.map(({ ranks, peers }) => ({ x: ranks, y: Math.max(...peers) }));
  const ours = curve(
    names.js!,
    rows.map(({ ranks, ours }) => ({ x: ranks, y: ours })),
  );
  return best.length > 0 ? [ours, curve(names.torch!, best)] : [ours];
}

/** Returns a number of bytes or of samples in short: 64K, 4M. `base` is 1024 or 1000. */
function short(value: number, base: number): string {
  const power = Math.min(2, Math.floor(Math.log(value) / Math.log(base) + 1e-9));
  return `${Number((value / base ** Math.max(0, power)).toPrecision(3))}${['', 'K', 'M'][Math.max(0, power)]}`;
}

/** Returns the SVG of a measurement. */
export function drawPeers({ allReduce, ddp, machine }: Measurement, theme: 'light' | 'dark'): string {
  const disturbed =
    machine.load > 2.5 ? `, disturbed by other programs (load ${machine.load.toFixed(0)})` : '';
  return drawLogPlot({
    theme,
    title: `Measured in turns, on ${machine.cores} cores${disturbed}`,
    ...{ xLabel: '', yLabel: '', xTick: String, yTick: String },
    panels: [
      {
        title: 'all-reduce among 2 processes: less is better',
        ...{ xLabel: 'bytes', yLabel: 'µs a call', xTick: (bytes) => short(bytes, 1024) },
        curves: timeCurves(allReduce),
      },
      {
        title: 'training an MLP with DDP: more is better',
        ...{ xLabel: 'processes', yLabel: 'samples/s', yTick: (rate) => short(rate, 1000) },
        curves: rateCurves(ddp),
      },
    ],
  });
}
