// Formats the state of a job in Prometheus' text format, version 0.0.4.

import type { JobView, RankView } from '../job-view.ts';

type Labels = Readonly<Record<string, string | number>>;

export function prometheusText(view: JobView): string {
  const ranks = [...view.ranks.values()].sort((a, b) => a.rank - b.rank);
  const label = ({ rank, host }: RankView) => ({ rank, host });
  const each = (value: (rank: RankView) => number | null) =>
    ranks.flatMap((rank): [Labels, number][] => {
      const number = value(rank);
      return number === null ? [] : [[label(rank), number]];
    });
  return [
    metric('ringwise_world_size', 'gauge', 'Ranks of the job.', [[{}, view.worldSize]]),
    metric('ringwise_restarts_total', 'counter', 'How often all ranks were started again.', [
      [{}, view.restarts],
    ]),
    ...membership(view),
    metric(
      'ringwise_rank_up',
      'gauge',
      '1 while the rank runs.',
      each(({ state }) => Number(state === 'running')),
    ),
    metric(
      'ringwise_rank_step',
      'gauge',
      'Its last reported step.',
      each(({ step }) => step),
    ),
    metric(
      'ringwise_rank_memory_bytes',
      'gauge',
      'Its resident memory.',
      each(({ memoryBytes }) => memoryBytes),
    ),
    metric(
      'ringwise_rank_samples_total',
      'counter',
      'Samples that it has reported.',
      each(({ samples }) => samples),
    ),
    metric(
      'ringwise_reported',
      'gauge',
      'What the rank reported last, by name.',
      ranks.flatMap((rank) => [...rank.values].map(([name, value]) => [{ ...label(rank), name }, value])),
    ),
  ].join('');
}

/** Metrics that only elastic jobs have. */
function membership({ membership: { last, losses, leaves, joins } }: JobView): string[] {
  if (last === null) return [];
  return [
    metric('ringwise_view', 'gauge', 'Number of the present view of an elastic job.', [[{}, last.number]]),
    metric('ringwise_members', 'gauge', 'Ranks in the present view.', [[{}, last.ranks]]),
    metric('ringwise_changes_total', 'counter', 'Ranks that were lost, that left, and that joined.', [
      [{ change: 'lost' }, losses],
      [{ change: 'left' }, leaves],
      [{ change: 'joined' }, joins],
    ]),
  ];
}

function metric(name: string, type: string, help: string, samples: (readonly [Labels, number])[]): string {
  const lines = samples.map(([labels, value]) => `${name}${labelText(labels)} ${numberText(value)}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(`${value}`)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const escaped = (text: string) =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

const numberText = (value: number) => `${value}`.replace('Infinity', 'Inf');
