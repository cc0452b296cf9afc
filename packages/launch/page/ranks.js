// The table of ranks, and the format of numbers.

const columns = [
  ['rank', (r) => r.rank, 'number'],
  ['state', (r) => (r.ending ? `${r.state}: ${r.ending}` : r.state), ''],
  ['step', (r) => numberText(r.step), 'number'],
  ['behind', (r) => (r.behind ? `${r.behind} step${r.behind === 1 ? '' : 's'}` : '–'), 'number'],
  ['last report', (r) => (r.silentMs === null ? '–' : `${(r.silentMs / 1000).toFixed(1)} s ago`), 'number'],
  ['samples/s', (r) => numberText(r.samplesPerSecond), 'number wide'],
  ['memory', (r) => (r.memoryBytes === null ? '–' : byteText(r.memoryBytes)), 'number'],
  ['restarts', (r) => r.restarts, 'number wide'],
  ['host', (r) => r.host, 'wide'],
  ['pid', (r) => r.pid, 'number wide'],
];

/** Ranks send reports in batches, so a rank that is behind is marked only if it has been silent for so long. */
const lateMs = 1_000;

export function drawRanks(head, body, ranks) {
  if (head.childElementCount === 0) head.append(...columns.map(([name, , kind]) => cell('th', name, kind)));
  body.replaceChildren(
    ...ranks.map((rank) => {
      const row = document.createElement('tr');
      for (const [name, text, kind] of columns) {
        const mark =
          name === 'state'
            ? rank.state
            : name === 'behind' && rank.behind > 0 && rank.silentMs > lateMs
              ? 'late'
              : '';
        row.append(cell('td', text(rank), `${kind} ${mark}`));
      }
      return row;
    }),
  );
}

function cell(tag, text, className) {
  return Object.assign(document.createElement(tag), { textContent: text, className });
}

export function numberText(value) {
  if (value === null || value === undefined) return '–';
  if (Number.isInteger(value)) return value.toLocaleString('en');
  const digits = Math.abs(value) >= 1000 ? 0 : 4;
  return digits === 0 ? Math.round(value).toLocaleString('en') : `${Number(value.toPrecision(digits))}`;
}

export function byteText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${bytes >= 100 ? Math.round(bytes) : Number(bytes.toPrecision(3))} ${units[unit]}`;
}

/** Formats a duration: 75,000 ms is 1:15. */
export function durationText(ms) {
  const seconds = Math.floor(ms / 1000);
  const two = (value) => `${value}`.padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}
