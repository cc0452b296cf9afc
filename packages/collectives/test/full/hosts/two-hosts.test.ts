// Tests the host backend across hosts, which are network namespaces: one process per rank, no launcher.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Host, type Hosts, makeHosts, whyNoNamespaces } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callNames } from '../../support/calls.ts';
import { allReduceByInt8 } from '../../support/int8-reference.ts';

const program = fileURLToPath(new URL('../../support/two-hosts-ranks.ts', import.meta.url));
const typescript = createRequire(import.meta.url).resolve('tsx');
const reason = whyNoNamespaces();

interface Failed {
  readonly code: string;
  readonly peers: readonly number[];
  readonly what: string;
  readonly secondary: boolean;
  readonly message: string;
}

interface Outcome {
  readonly value?: unknown;
  readonly error?: Failed;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Reads what a process with the program prints. */
class Process {
  readonly outcome: Promise<Outcome>;
  readonly #child: ChildProcess;
  readonly #said = new Set<string>();
  #stderr = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    let last: Omit<Outcome, 'exitCode' | 'signal'> = {};
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const { event, ...outcome } = JSON.parse(line);
      if (event !== undefined) this.#said.add(event);
      else last = outcome;
    });
    child.stderr!.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
    this.outcome = once(child, 'close').then(([exitCode, signal]) => {
      if (this.#stderr !== '') throw new Error(`the process wrote to stderr: ${this.#stderr}`);
      return { ...last, exitCode, signal };
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Waits until the process has printed `event`. */
  async says(event: string): Promise<void> {
    await expect
      .poll(() => this.#said.has(event) || this.#stderr, { timeout: 20_000, interval: 5 })
      .toBe(true);
  }
}

const secret = 'a secret that all ranks of the test share';
const masterPort = 29_500; // free in a new namespace

describe.skipIf(reason !== null)(`two hosts${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  let made: Hosts;
  beforeEach(() => {
    made = makeHosts(2);
  });
  afterEach(() => made.close());

  function start(
    host: Host,
    env: Readonly<Record<string, string>>,
    task: string,
    args: readonly unknown[],
  ): Process {
    const argv = ['--import', typescript, program, task, ...args.map((arg) => JSON.stringify(arg))];
    const { PATH, HOME } = process.env;
    const own = { PATH, HOME, ADDRESS: host.address, ...env };
    return new Process(made.start(host, [process.execPath, ...argv], { env: own }));
  }

  /** Starts ranks on both hosts. `env` may differ between hosts. */
  function startRanks(
    perHost: number,
    task: string,
    args: readonly unknown[] = [],
    env: (host: number) => Readonly<Record<string, string>> = () => ({}),
  ): Process[] {
    return made.hosts.flatMap((host, node) =>
      Array.from({ length: perHost }, (_, local) => {
        const rank = node * perHost + local;
        const launched = {
          RANK: String(rank),
          WORLD_SIZE: String(2 * perHost),
          LOCAL_RANK: String(local),
          LOCAL_WORLD_SIZE: String(perHost),
          MASTER_ADDR: made.hosts[0]!.address,
          MASTER_PORT: String(masterPort),
          RINGWISE_SECRET: secret,
          RINGWISE_TIMEOUT_MS: '20000',
        };
        return start(host, { ...launched, ...env(node) }, task, args);
      }),
    );
  }

  const outcomesOf = (ranks: readonly Process[]) => Promise.all(ranks.map(({ outcome }) => outcome));
  const valuesOf = async (ranks: readonly Process[]) =>
    (await outcomesOf(ranks)).map(({ value, error }) => (error === undefined ? value : error.message));

  for (const sync of [false, true]) {
    it(`give exact results for collectives and messages${sync ? ', also while they block' : ''}`, {
      timeout: 120_000,
    }, async () => {
      const ranks = startRanks(2, 'verbs', [[1, 1000, 300_001], sync]);
      expect(await valuesOf(ranks)).toEqual([[], [], [], []]);
    });
  }

  it('may have one rank each', async () => {
    expect(await valuesOf(startRanks(1, 'verbs', [[1, 1000, 70_001], false]))).toEqual([[], []]);
  });

  it('have the same bits on all ranks', async () => {
    const digests = (await valuesOf(startRanks(2, 'floats', [[1, 1000, 300_001]]))) as string[][];
    expect(new Set(digests[0]).size).toBe(12);
    for (const others of digests) expect(others).toEqual(digests[0]);
  });

  it.each([
    ['bfloat16', false, 1e-4, 2 ** -7],
    ['bfloat16', true, 1e-4, 2 ** -7],
    ['int8', false, 1e-3, 2 ** -5],
    ['int8', true, 1e-3, 2 ** -5],
  ])('may send averages rounded to %s (sync: %s)', async (wire, sync, least, most) => {
    const ranks = await valuesOf(startRanks(2, 'wire', [wire, 300_001, sync]));
    const [[error, digest]] = ranks as [[number, string]];
    expect(error).toBeGreaterThan(least); // full precision would be 1e-7
    expect(error).toBeLessThan(most);
    for (const other of ranks) expect(other).toEqual([error, digest]);
  });

  it.each([false, true])(
    'keep the rounding errors of int8, bit by bit as the reference does (sync: %s)',
    async (sync) => {
      const inputs = Array.from({ length: 3 }, (_, step) =>
        Array.from({ length: 2 }, (_, rank) =>
          Array.from({ length: 1001 }, (_, i) => Math.fround(Math.sin(i * i + step + 5 * rank) ** 9)),
        ),
      );
      const residuals = [0, 1].map(() => new Float32Array(1001));
      const results = inputs.map((input) => {
        const buffers = input.map((values) => Float32Array.from(values));
        allReduceByInt8(buffers, residuals);
        return [...buffers[0]!];
      });
      const ranks = await valuesOf(startRanks(1, 'feedback', [inputs, sync]));
      expect(ranks).toEqual(residuals.map((residual) => ({ results, residual: [...residual] })));
    },
  );

  it('learn small gradients beside a large one by int8 with error feedback, and not without', async () => {
    const [fed] = (await valuesOf(startRanks(1, 'descent', [true]))) as number[];
    expect(fed).toBeLessThan(0.05);
    const [starved] = (await valuesOf(startRanks(1, 'descent', [false]))) as number[];
    expect(starved).toBeGreaterThan(0.9);
  });

  it('are told when ranks round differently', async () => {
    for (const { error } of await outcomesOf(startRanks(2, 'wires'))) {
      expect(error).toMatchObject({
        code: 'ERR_COLL_MISMATCH',
        what: expect.stringMatching(
          /over bfloat16 \(seq 0\) but rank 3 called allReduce sum 1000 × float32 over int8 \(seq 0\)/,
        ),
      });
    }
  });

  it('are all told when a rank passes another length', async () => {
    const outcomes = await outcomesOf(startRanks(2, 'disagree'));
    const [first] = outcomes;
    expect(first!.error).toMatchObject({ code: 'ERR_COLL_MISMATCH', peers: expect.arrayContaining([3]) });
    expect(first!.error!.what).toMatch(
      /^rank [012] called allReduce sum 1000 × float32 \(seq 0\) but rank 3 called allReduce sum 1001 × float32 \(seq 0\)$/,
    );
    for (const { error } of outcomes) expect(error!.what).toBe(first!.error!.what);
  });

  it.each(callNames.map((name, n) => [name, n % 2 === 1] as const))(
    'hear at once of a rank that is killed in the middle of %s (sync: %s)',
    async (name, sync) => {
      const ranks = startRanks(2, 'forever', [name, sync, 20_000]);
      await Promise.all(ranks.map((rank) => rank.says('working')));
      ranks[3]!.signal('SIGKILL');
      const [killed, ...survivors] = (await outcomesOf(ranks)).reverse();
      expect(killed).toMatchObject({ signal: 'SIGKILL' });
      for (const { error } of survivors)
        expect(error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [3], secondary: true });
    },
  );

  for (const sync of [false, true]) {
    it(`report a dead network at the deadline${sync ? ', also while they block' : ''}`, async () => {
      const ranks = startRanks(2, 'forever', ['allReduce', sync, 3_000]);
      await Promise.all(ranks.map((rank) => rank.says('working')));
      await once(made.start(made.hosts[1]!, ['ip', 'link', 'set', 'eth0', 'down']), 'exit');
      for (const { error } of await outcomesOf(ranks)) {
        // The error may name different ranks: a rank that waits for the other host may itself delay a third rank.
        expect(error).toMatchObject({
          code: 'ERR_COLL_TIMEOUT',
          what: expect.stringMatching(/^no answer from/),
        });
      }
    });
  }

  it('notice that the other host has vanished, long before the deadline', { timeout: 60_000 }, async () => {
    const ranks = startRanks(1, 'forever', ['allReduce', false, 40_000]);
    await Promise.all(ranks.map((rank) => rank.says('working')));
    await once(made.start(made.hosts[1]!, ['ip', 'link', 'set', 'eth0', 'down']), 'exit');
    ranks[1]!.signal('SIGKILL'); // its connections end without a packet, because nothing gets out
    const [survivor] = await outcomesOf(ranks);
    expect(survivor!.error).toMatchObject({ code: 'ERR_COLL_PEER_LOST', peers: [1] });
  });

  it('say what to do when they have no secret', async () => {
    for (const { error } of await outcomesOf(startRanks(2, 'sum', [], () => ({ RINGWISE_SECRET: '' })))) {
      expect(error).toMatchObject({
        code: 'ERR_COLL_INIT',
        message: expect.stringContaining('RINGWISE_SECRET'),
      });
    }
  });

  it('say so when their secrets differ', async () => {
    const env = (host: number) =>
      host === 1
        ? { RINGWISE_SECRET: 'another', RINGWISE_TIMEOUT_MS: '3000' }
        : { RINGWISE_TIMEOUT_MS: '3000' };
    const [first, second, ...others] = await outcomesOf(startRanks(2, 'sum', [], env));
    for (const { error } of others) {
      expect(error).toMatchObject({
        code: 'ERR_COLL_INIT',
        message: expect.stringMatching(/different secrets.*same RINGWISE_SECRET/),
      });
    }
    for (const { error } of [first!, second!])
      expect(error).toMatchObject({ code: 'ERR_COLL_INIT', peers: [2, 3] });
  });

  it('meet although programs outside the job talk to their ports', async () => {
    const ranks = startRanks(2, 'sum', [], () => ({ BACKEND: 'on-signal' }));
    await ranks[3]!.says('waiting');
    // The store and ranks 0 and 1 listen on the first host, rank 2 on the second.
    const outsiders = made.hosts.map((host, node) => start(host, {}, 'harass', [node === 0 ? 3 : 1]));
    await Promise.all(outsiders.map((outsider) => outsider.says('harassed')));
    ranks[3]!.signal('SIGUSR2');
    expect(await valuesOf(ranks)).toEqual([6, 6, 6, 6]);
  });

  it('meet when the name of the first is loopback to itself', async () => {
    // Many systems resolve a host's own name to 127.0.1.1. LOCALHOST in capitals stands for such a name here.
    const ranks = startRanks(2, 'sum', [], (host) => (host === 0 ? { MASTER_ADDR: 'LOCALHOST' } : {}));
    expect(await valuesOf(ranks)).toEqual([6, 6, 6, 6]);
  });

  describe('with rules of their own', () => {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'ringwise-tuning-'));
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    function rules(name: string, text: string): Readonly<Record<string, string>> {
      const path = join(folder, name);
      writeFileSync(path, text);
      return { RINGWISE_TUNING: path };
    }

    it('follow them', async () => {
      const env = rules('rules', 'allReduce * hosts 4 * ring\nbroadcast * * * 1K chain\n');
      const ranks = startRanks(2, 'verbs', [[1, 1000, 70_001], false], () => env);
      expect(await valuesOf(ranks)).toEqual([[], [], [], []]);
    });

    it('are told when the rules differ', async () => {
      const same = rules('same', 'allReduce * hosts 4 * ring');
      const other = rules('other', 'allReduce * hosts 4 * ring\nallReduce * flat 2 * tree');
      const outcomes = await outcomesOf(startRanks(2, 'sum', [], (host) => (host === 0 ? same : other)));
      for (const { error } of outcomes) {
        expect(error).toMatchObject({
          code: 'ERR_COLL_MISMATCH',
          what: expect.stringMatching(
            /by ring with RINGWISE_TUNING [0-9a-f]+ but .* by ring with RINGWISE_TUNING/,
          ),
        });
      }
    });

    it('are told what is wrong in them', async () => {
      const env = rules('rules', '# mine\nallReduce * * 4 * rang\n');
      const outcomes = await outcomesOf(startRanks(1, 'sum', [], () => env));
      for (const { error } of outcomes) {
        expect(error!.message).toMatch(
          /rules, line 2: allReduce's algorithm: expected one of .*, got "rang"/,
        );
      }
    });
  });
});
