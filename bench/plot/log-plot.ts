// Draws panels of curves with logarithmic axes as SVG: marks for simulated times, lines for times from formulas.

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Curve {
  readonly name: string;
  readonly marks: readonly Point[];
  readonly line: readonly Point[];
}

export interface Panel {
  readonly title: string;
  readonly curves: readonly Curve[];
  /** As in Plot, where this panel differs. */
  readonly xLabel?: string;
  readonly yLabel?: string;
  readonly xTick?: (x: number) => string;
  readonly yTick?: (y: number) => string;
}

export interface Plot {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Return the label of a tick on an axis. */
  readonly xTick: (x: number) => string;
  readonly yTick: (y: number) => string;
  readonly panels: readonly Panel[];
  /** Default: light. */
  readonly theme?: keyof typeof themes;
}

const themes = {
  light: { paper: '#fff', ink: '#000', grid: '#e5e5e5' },
  dark: { paper: '#0d1117', ink: '#e6edf3', grid: '#30363d' },
};
const colors = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#888888', '#999933'];
const width = 420;
const height = 320;
const margin = { left: 64, right: 12, top: 34, bottom: 44 };
const legendHeight = 22;

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const text = (x: number, y: number, anchor: string, content: string, more = ''): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" ${more}>${escapeText(content)}</text>`;

/** Makes a logarithmic axis from `from` to `to` (pixels) that covers all `values`, with ticks at powers of `base`. */
function axis(values: readonly number[], base: number, from: number, to: number) {
  const log = (value: number): number => Math.log(value) / Math.log(base);
  const low = Math.floor(log(Math.min(...values)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(log(Math.max(...values)) - 1e-9));
  const every = Math.ceil((high - low) / 8);
  const ticks: number[] = [];
  for (let exponent = low; exponent <= high; exponent += every) ticks.push(base ** exponent);
  return { ticks, at: (value: number): number => from + ((log(value) - low) / (high - low)) * (to - from) };
}

function drawPanel(own: Panel, plot: Plot, colorOf: (name: string) => string): string {
  const panel = { ...plot, ...own };
  const { grid } = themes[plot.theme ?? 'light'];
  const points = panel.curves.flatMap((curve) => [...curve.marks, ...curve.line]);
  if (points.length === 0) return '';
  const left = margin.left;
  const right = width - margin.right;
  const top = margin.top;
  const bottom = height - margin.bottom;
  const valuesOf = (key: 'x' | 'y'): number[] => points.map((point) => point[key]);
  const xs = axis(valuesOf('x'), 2, left, right);
  const ys = axis(valuesOf('y'), 10, bottom, top);
  const parts = [text((left + right) / 2, 20, 'middle', panel.title, 'font-weight="bold"')];
  for (const tick of xs.ticks) {
    const x = xs.at(tick);
    parts.push(`<line x1="${x}" y1="${top}" x2="${x}" y2="${bottom}" stroke="${grid}"/>`);
    parts.push(text(x, bottom + 15, 'middle', panel.xTick(tick)));
  }
  for (const tick of ys.ticks) {
    const y = ys.at(tick);
    parts.push(`<line x1="${left}" y1="${y}" x2="${right}" y2="${y}" stroke="${grid}"/>`);
    parts.push(text(left - 6, y + 4, 'end', panel.yTick(tick)));
  }
  parts.push(text((left + right) / 2, height - 10, 'middle', panel.xLabel));
  parts.push(text(-(top + bottom) / 2, 14, 'middle', panel.yLabel, 'transform="rotate(-90)"'));
  for (const curve of panel.curves) {
    const color = colorOf(curve.name);
    const path = curve.line.map((point) => `${xs.at(point.x).toFixed(1)},${ys.at(point.y).toFixed(1)}`);
    if (path.length > 1) parts.push(`<polyline points="${path.join(' ')}" fill="none" stroke="${color}"/>`);
    for (const mark of curve.marks) {
      parts.push(
        `<circle cx="${xs.at(mark.x).toFixed(1)}" cy="${ys.at(mark.y).toFixed(1)}" r="3" fill="${color}"/>`,
      );
    }
  }
  return parts.join('\n');
}

/** Returns the drawing as SVG, with up to three panels side by side in a row. */
export function drawLogPlot(plot: Plot): string {
  const names = [...new Set(plot.panels.flatMap((panel) => panel.curves.map((curve) => curve.name)))];
  const colorOf = (name: string): string => colors[names.indexOf(name) % colors.length]!;
  const columns = Math.min(3, plot.panels.length);
  const rows = Math.ceil(plot.panels.length / columns);
  const head = 30 + legendHeight;
  const parts = [text((columns * width) / 2, 22, 'middle', plot.title, 'font-size="15" font-weight="bold"')];
  const legendStep = (columns * width) / names.length;
  for (const [i, name] of names.entries()) {
    const x = i * legendStep + 12;
    parts.push(`<circle cx="${x}" cy="${head - 8}" r="4" fill="${colorOf(name)}"/>`);
    parts.push(text(x + 8, head - 4, 'start', name));
  }
  for (const [i, panel] of plot.panels.entries()) {
    const at = `translate(${(i % columns) * width} ${head + Math.floor(i / columns) * height})`;
    parts.push(`<g transform="${at}">${drawPanel(panel, plot, colorOf)}</g>`);
  }
  const { paper, ink } = themes[plot.theme ?? 'light'];
  const size = `width="${columns * width}" height="${head + rows * height}"`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="11" fill="${ink}">\n` +
    `<title>${escapeText(plot.title)}</title>\n` +
    `<rect width="100%" height="100%" fill="${paper}"/>\n${parts.join('\n')}\n</svg>\n`
  );
}
