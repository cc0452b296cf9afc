// Compares the package with PyTorch: a seed draws cases of every op, with values and gradients, for both kernel sets.
//
//   RINGWISE_SEED=123, or =random    other cases (only where a Python has PyTorch: RINGWISE_PYTHON, else python3)
//   RINGWISE_CASE=add or add:3       the cases of one op, or one case
//   RINGWISE_STORE_ANSWERS=1         writes oracle/answers, for machines without PyTorch; adds the op of RINGWISE_CASE
import { describe, expect, test, vi } from 'vitest';
import type { Answer, Case } from './case.ts';
import { casesOf, ops } from './cases/index.ts';
import { compare } from './compare.ts';
import { called, exclusions, exported } from './coverage.ts';
import { type Row, readTable, rowFor } from './differences.ts';
import { askOracle, unpackedAnswer } from './oracle/answers.ts';
import { store, storedAnswers, storeOp } from './oracle/stored.ts';
import { answerOf, type Package } from './ours.ts';
import { show } from './show.ts';

const defaultSeed = '1';
const wantedSeed = process.env.RINGWISE_SEED || defaultSeed;
const seed = wantedSeed === 'random' ? String(Math.floor(Math.random() * 2 ** 32)) : wantedSeed;
const wantedCase = process.env.RINGWISE_CASE || '';
const [wantedOp] = wantedCase.split(':');

const all = new Map(ops.map((op) => [op, casesOf(op, seed)]));
const isWanted = ({ name }: Case): boolean =>
  wantedCase === '' || name === wantedCase || name.split(':')[0] === wantedCase;
const cases = [...all.values()].flat().filter(isWanted);

/** Loads the package again with a kernel set. Resolves with null if that set does not load. */
async function load(kernels: 'native' | 'reference'): Promise<Package | null> {
  vi.stubEnv('RINGWISE_KERNELS', kernels);
  vi.resetModules();
  const found = { t: await import('../../../src/index.ts'), nn: await import('../../../src/nn/index.ts') };
  try {
    return found.t.kernelsName() === kernels ? found : null;
  } catch {
    return null;
  } finally {
    vi.unstubAllEnvs();
  }
}

// The oracle runs at the same time as the package.
const oracle = askOracle(cases);
const ours = new Map<string, readonly Answer[]>();
for (const kernels of ['native', 'reference'] as const) {
  const found = await load(kernels);
  if (found !== null)
    ours.set(
      kernels,
      cases.map((one) => answerOf(found, one)),
    );
}
const live = await oracle;
if (live === null && seed !== defaultSeed)
  throw new Error(
    `RINGWISE_SEED=${seed}: answers are stored for seed ${defaultSeed} alone, and no Python with PyTorch was found. Set RINGWISE_PYTHON.`,
  );
const isStoring = process.env.RINGWISE_STORE_ANSWERS === '1';
if (isStoring) {
  if (live === null || seed !== defaultSeed || wantedCase.includes(':'))
    throw new Error(
      'RINGWISE_STORE_ANSWERS: needs PyTorch, the default seed, and all cases or those of an op.',
    );
  if (wantedCase === '') store(live.torch, seed, cases, live.answers);
  else storeOp(live.torch, seed, wantedCase, cases, live.answers);
}
const theirs = (live?.answers ?? storedAnswers(cases)).map((packed) => packed && unpackedAnswer(packed));

const tags = new Set([...all.values()].flat().flatMap((one) => one.tags));
const rows = readTable(tags);
const used = new Set<Row>();

const command = (one: Case): string =>
  `${seed === defaultSeed ? '' : `RINGWISE_SEED=${seed} `}RINGWISE_CASE=${one.name} npx vitest run --project tensor-processes test/processes/pytorch/generator.test.ts`;

/** Returns the differences of a case that no row of the table accepts. */
function unexplained(one: Case, i: number): string[] {
  const answer = theirs[i];
  if (answer === undefined)
    return [`no answer is stored for ${one.name}: run with RINGWISE_STORE_ANSWERS=1 where PyTorch is`];
  const found = new Map<string, string[]>();
  for (const [kernels, answers] of ours) {
    for (const { kind, text } of compare(one, answers[i]!, answer)) {
      const row = rowFor(rows, one, kind);
      if (row) used.add(row);
      else found.set(`${kind}: ${text}`, [...(found.get(`${kind}: ${text}`) ?? []), kernels]);
    }
  }
  return Array.from(
    found,
    ([text, sets]) =>
      `${show(one)}\n  ${sets.join(' and ')} kernels differ in ${text}\n  repeat: ${command(one)}`,
  );
}

const named = wantedCase === '' ? ops : ops.filter((op) => op === wantedOp);
describe(`PyTorch ${live?.torch ?? 'as stored'} and the package agree, seed ${seed}`, () => {
  test.each(named)('%s', (op) => {
    const found = cases.flatMap((one, i) => (one.name.split(':')[0] === op ? unexplained(one, i) : []));
    if (found.length > 0) expect.fail(`${found.length} differences\n${found.slice(0, 8).join('\n')}`);
  });
});

describe.runIf(wantedCase === '')('the cases', () => {
  test('are enough, of all dtypes, and compared on both kernel sets where both are there', () => {
    expect(cases.length).toBeGreaterThanOrEqual(4_000);
    expect(cases.filter(({ name }) => name.startsWith('expression')).length).toBeGreaterThanOrEqual(200);
    expect([...ours.keys()]).toContain('reference');
    expect(new Set(cases.flatMap(({ inputs }) => inputs.map(({ dtype }) => dtype))).size).toBe(8);
  });

  test('call everything that is exported and not excluded with a reason', () => {
    const seen = called(cases);
    expect([...exported].filter((name) => !seen.has(name) && !exclusions.has(name))).toEqual([]);
    expect([...exclusions.keys()].filter((name) => seen.has(name) || !exported.has(name))).toEqual([]);
  });

  // Other seeds may draw no case of a row.
  test.runIf(seed === defaultSeed)('need every row of the table of differences', () => {
    expect(rows.filter((row) => !used.has(row)).map(({ line }) => line)).toEqual([]);
  });

  test.runIf(seed === defaultSeed)('are those that answers are stored for', () => {
    const stored = storedAnswers(cases);
    expect(cases.filter((_, i) => stored[i] === undefined).map(({ name }) => name)).toEqual([]);
  });
});
