// Tests the parts of `ringwise plan` that need no simulation: arguments, units, and the model of a step.
// packages/ringwise, which has the launcher, tests the command itself.
import { describe, expect, it } from 'vitest';
import { parsePlan, UsageError } from '../../../planner/options.ts';
import { bucketsOf, stepTime } from '../../../planner/training-step.ts';
import { parseCount, parseGbit, shownBytes } from '../../../planner/units.ts';

const needed = ['--ranks', '64', '--link', '100g', '--params', '124M', '--step-ms', '80'];
const optionsOf = (...more: string[]) => {
  const options = parsePlan([...needed, ...more]);
  if (options === 'help') throw new Error('unexpected help');
  return options;
};
const mebi = 2 ** 20;

describe('arguments', () => {
  it('have defaults', () => {
    expect(optionsOf()).toMatchObject({
      ranks: 64,
      perHost: 1,
      between: { gbit: 100, latencyUs: 20, overheadUs: 1 },
      inside: { gbit: 80, latencyUs: 1, overheadUs: 0.2 },
      params: 124e6,
      dtype: 'float32',
      wire: 'full',
      stepMs: 80,
      backwardShare: 0.67,
      buckets: [mebi, 5 * mebi, 25 * mebi, 50 * mebi, 100 * mebi],
    });
  });

  it('give hosts or ranks per host, with dashes or underscores', () => {
    expect(optionsOf('--per_host', '8').perHost).toBe(8);
    expect(optionsOf('--hosts', '4').perHost).toBe(16);
    expect(optionsOf('--buckets', '25M,1M,25M').buckets).toEqual([mebi, 25 * mebi]);
  });

  it.each([
    [['--link', '100GB'], /--link expects bits per second, as 100g, 2\.5g or 800m, got 100GB\./],
    [['--link', '100'], /--link expects bits per second/],
    [
      ['--params', '124MB'],
      /--params expects a number of parameters, as 124M, 1\.5B or 7000000, got 124MB\./,
    ],
    [['--step-ms', '80ms'], /--step-ms expects a plain number of milliseconds from 0\.001 to .*, got 80ms\./],
    [['--latency-us', '1ms'], /--latency-us expects a plain number of microseconds/],
    [['--ranks', '1'], /--ranks expects a whole number from 2 to 16384, got 1\./],
    [['--per-host', '3'], /--per-host expects a number that divides 64 ranks evenly, got 3\./],
    [['--per-host', '8', '--hosts', '8'], /--hosts and --per-host exclude each other/],
    [['--per-host', '64'], /all 64 ranks on one host use no link; expected two hosts or more/],
    [['--dtype', 'int8'], /--dtype expects one of float32, float16, bfloat16, float64, got int8\./],
    [
      ['--dtype', 'float16', '--wire', 'int8'],
      /--wire int8 rounds float32; expected --dtype float32, got float16\./,
    ],
    [['--backward-share', '67'], /--backward-share expects a plain number from 0 to 1, got 67\./],
    [['--buckets', '1M,,2M'], /--buckets expects sizes in bytes, as 1M,25M,100M, got an empty word\./],
    [['--buckets', '2'], /--buckets expects sizes in bytes/],
    [['--foo'], /: unknown flag --foo\. See/],
    [['--latency-ms', '1'], /: unknown flag --latency-ms; did you mean --latency-us\./],
    [['--nnodes', '2'], /: unknown flag --nnodes; expected --hosts\./],
    [['extra'], /extra/],
  ])('%j is explained', (more, sentence) => {
    expect(() => optionsOf(...more)).toThrow(UsageError);
    expect(() => optionsOf(...more)).toThrow(sentence);
    expect(() => optionsOf(...more)).toThrow(/^ringwise plan: .*\. See ringwise plan --help\.$/);
  });

  it.each(['--ranks', '--link', '--params', '--step-ms'])('%s must be given', (flag) => {
    const without = needed.filter((_, i) => needed[i] !== flag && needed[i - 1] !== flag);
    expect(() => parsePlan(without)).toThrow(
      `ringwise plan: ${flag} is missing; expected for example ${flag} `,
    );
  });
});

describe('units', () => {
  it.each([
    ['100g', 100],
    ['2.5G', 2.5],
    ['800m', 0.8],
    ['400Gbit/s', 400],
    ['1.6tbps', 1600],
    ['100GB', null],
    ['100B', null],
    ['0g', null],
    ['-1g', null],
    ['', null],
  ])('%j are so many gigabits per second', (text, gbit) => {
    expect(parseGbit(text)).toBe(gbit);
  });

  it.each([
    ['124M', 124e6],
    ['1.5B', 1.5e9],
    ['7000', 7000],
    ['0', null],
    ['1e6', null],
    ['M', null],
  ])('%j is a number of parameters', (text, count) => {
    expect(parseCount(text)).toBe(count);
  });

  it('bytes are shown in binary units', () => {
    expect([4, 1024, 26_214_400, 2 ** 31].map(shownBytes)).toEqual(['4 B', '1 KiB', '25 MiB', '2 GiB']);
  });
});

describe('a step', () => {
  it('has a small first bucket, and the rest in the last one', () => {
    expect(bucketsOf(60 * mebi, 25 * mebi)).toEqual([1, 25, 25, 9].map((size) => size * mebi));
    expect(bucketsOf(3, 25 * mebi)).toEqual([3]);
    expect(bucketsOf(2048, 1024)).toEqual([1024, 1024]);
  });

  it('hides operations behind backward, except what is left at its end', () => {
    // Backward lasts from 20 to 100 and makes a bucket every 20 ms.
    const { stepMs, exposedMs, communicationMs, buckets } = stepTime([1, 1, 1, 1], 100, 0.8, () => 15);
    expect(buckets.map(({ readyMs }) => readyMs)).toEqual([40, 60, 80, 100].map((ms) => expect.closeTo(ms)));
    expect(buckets.map(({ startMs }) => startMs)).toEqual([40, 60, 80, 100].map((ms) => expect.closeTo(ms)));
    expect([stepMs, exposedMs, communicationMs]).toEqual([115, 15, 60].map((ms) => expect.closeTo(ms)));
  });

  it('is bound by communication where operations are longer than what they hide behind', () => {
    const { stepMs, exposedMs, buckets } = stepTime([1, 1, 1, 1], 100, 0.8, () => 50);
    expect(buckets.map(({ startMs }) => startMs)).toEqual([40, 90, 140, 190].map((ms) => expect.closeTo(ms)));
    expect([stepMs, exposedMs]).toEqual([240, 140].map((ms) => expect.closeTo(ms)));
  });

  it('hides nothing if backward takes no time', () => {
    expect(stepTime([1, 1], 100, 0, (bytes) => bytes * 10)).toMatchObject({ stepMs: 120, exposedMs: 20 });
  });
});
