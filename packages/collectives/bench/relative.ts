// Measures rows relative to the limits of the machine, for `--save` and `--compare`.
import type { Group } from '../src/group/group.ts';
import { type Baseline, type BaselineRow, isRegression, type Setting } from './baseline.ts';
import { Limits } from './limits.ts';
import type { BenchOptions } from './options.ts';
import { isSync, type Row, run } from './run.ts';

export interface RelativeRow extends Row, BaselineRow {}

/** A row that seems to be a regression is measured again so often; the least ratio counts. */
const moreAttempts = 2;

/** Returns what other runs must have in common with this one to be comparable. */
export function settingOf(group: Group, options: BenchOptions): Setting {
  const { verb, dtype, op, alloc } = options;
  return {
    verb: verb.name,
    ranks: group.size,
    backend: group.backend,
    dtype,
    redop: verb.reduces ? op : null,
    form: isSync(options, group) ? 'sync' : 'async',
    alloc,
  };
}

/** Does what run() does, for rows with ratios. Only rank 0 needs the baseline. Collective. */
export async function* runRelative(
  group: Group,
  options: BenchOptions,
  baseline: Baseline | null,
  goOn: () => boolean,
): AsyncGenerator<RelativeRow> {
  const limits = new Limits(group);
  const relative = async (once: () => Promise<Row>): Promise<RelativeRow> => {
    const row = await once();
    const limitUs = await limits.at(row.bytes);
    return { ...row, limitUs, ratio: row.p50Us / limitUs };
  };
  const best = async (once: () => Promise<Row>): Promise<RelativeRow> => {
    let row = await relative(once);
    for (let attempt = 0; attempt < moreAttempts; attempt++) {
      const isSlow = Uint8Array.of(baseline !== null && isRegression(baseline, row) ? 1 : 0);
      await group.broadcast(isSlow);
      if (isSlow[0] === 0) break;
      const next = await relative(once);
      row = { ...(next.ratio < row.ratio ? next : row), wrong: row.wrong + next.wrong };
    }
    return row;
  };
  try {
    yield* run(group, options, goOn, best);
  } finally {
    await limits.close();
  }
}
