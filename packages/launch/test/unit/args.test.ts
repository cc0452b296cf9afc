import { describe, expect, it } from 'vitest';
import { parseRun } from '../../src/cli/args.ts';
import { oneHost, type RunOptions } from '../../src/cli/run-options.ts';

const parsed = (argv: string[], env = {}) => parseRun(argv, env) as RunOptions;
const message = (argv: string[], env = {}) => {
  try {
    parseRun(argv, env);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('parsed without an error');
};

describe('parseRun', () => {
  it('has the defaults of torchrun', () => {
    expect(parsed(['train.ts'])).toMatchObject({
      script: 'train.ts',
      scriptArgs: [],
      isProgram: false,
      nprocPerNode: '1',
      role: 'default',
      meeting: oneHost,
      runId: undefined,
      maxRestarts: 0,
      shutdownTimeoutMs: 30_000,
      signals: ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'],
      live: { ui: null, isUiKept: false, reportFile: null, metricsFile: null, tensorboardDir: null },
      isDryRun: false,
    });
    expect(parsed(['--nnodes', '2', 'train.ts']).meeting).toMatchObject({
      backend: 'static',
      minNodes: 2,
      maxNodes: 2,
      host: '127.0.0.1',
      port: 29_500,
      joinTimeoutMs: 600_000,
      lastCallMs: 30_000,
    });
  });

  it('leaves everything after the script to the script, as it was written', () => {
    const options = parsed([
      '--nproc-per-node',
      '2',
      'train.ts',
      '--batch_size',
      '32',
      '--help',
      '-x',
      '--',
      'y',
    ]);
    expect(options.nprocPerNode).toBe('2');
    expect(options.script).toBe('train.ts');
    expect(options.scriptArgs).toEqual(['--batch_size', '32', '--help', '-x', '--', 'y']);
  });

  it('takes the URL of a script, but of no program', () => {
    expect(parsed(['file:///home/ann/my%20train.mjs', 'x']).script).toBe('/home/ann/my train.mjs');
    expect(parsed(['--no-python', 'file:///home/ann/train']).script).toBe('file:///home/ann/train');
    expect(message(['file://elsewhere/train.mjs'])).toContain(
      "ringwise run: the script expects a path or a URL of a file, got 'file://elsewhere/train.mjs' (File URL host",
    );
  });

  it('takes the script after a double dash', () => {
    expect(parsed(['--nproc-per-node=2', '--', 'train.ts', 'a']).script).toBe('train.ts');
  });

  it.each([['--nproc_per_node', '2'], ['--nproc-per-node', '2'], ['--nproc_per_node=2']])(
    'reads %s %s',
    (...argv) => {
      expect(parsed([...argv, 'train.ts']).nprocPerNode).toBe('2');
    },
  );

  it.each([['-np', '2'], ['-np=2'], ['-n=2'], ['-n', '2'], ['-n2']])("reads mpirun's %s %s", (...argv) => {
    expect(parsed([...argv, 'train.ts', '-np', '3'])).toMatchObject({
      nprocPerNode: '2',
      scriptArgs: ['-np', '3'],
    });
  });

  it('takes an empty name of the run, of the host or of the log folder for one that is not given', () => {
    const { runId, meeting, output } = parsed(['--rdzv-id=', '--local-addr', '', '--log-dir=', 'train.ts']);
    expect([runId, meeting.localName, output.logDir]).toEqual([undefined, undefined, undefined]);
  });

  it('refuses other empty values', () => {
    expect(message(['--elastic=', 'train.ts'])).toBe(
      'ringwise run: --elastic needs a value; expected --elastic MIN:MAX.',
    );
    expect(message(['--ui=', 'train.ts'])).toContain('--ui needs a value');
    expect(message(['--master-addr=', 'train.ts'])).toBe(
      "ringwise run: --master-addr expects the name or address of host 0, got ''.",
    );
  });

  it('takes an empty variable for one that is not set', () => {
    const env = { PET_REPORT: '', PET_NNODES: '', PET_MODULE: '', PET_ELASTIC: '' };
    expect(parsed(['train.ts'], env)).toMatchObject({
      live: { reportFile: null },
      meeting: oneHost,
      elastic: null,
    });
  });

  it.each<[string[], NodeJS.ProcessEnv, number, number]>([
    [['--elastic'], {}, 1, Number.POSITIVE_INFINITY],
    [['--elastic=2', '--nproc-per-node', '2'], {}, 2, Number.POSITIVE_INFINITY],
    [['--elastic', '2:8', '--nproc-per-node', 'gpu'], {}, 2, 8],
    [['--elastic', '1:1'], {}, 1, 1],
    [[], { PET_ELASTIC: '2:4', PET_NPROC_PER_NODE: '4' }, 2, 4],
    [[], { PET_ELASTIC: '1' }, 1, Number.POSITIVE_INFINITY],
  ])('reads %j with %j as an elastic job', (argv, env, minRanks, maxRanks) => {
    expect(parsed([...argv, 'train.ts', '--elastic', '9'], env)).toMatchObject({
      script: 'train.ts',
      scriptArgs: ['--elastic', '9'],
      elastic: { minRanks, maxRanks },
      maxRestarts: 3,
      graceMs: 30_000,
    });
  });

  it.each([['0:2'], ['3:2'], ['many'], ['2:'], ['-1']])('refuses --elastic=%s', (text) => {
    expect(message([`--elastic=${text}`, 'train.ts'])).toBe(
      `ringwise run: --elastic expects a number of ranks such as 2, or a range such as 2:8, got '${text}'.`,
    );
  });

  it.each([['two'], ['2-8'], ['2:8:1']])('takes the word %s after --elastic for a wrong range', (word) => {
    expect(message(['--elastic', word, 'train.ts', '--epochs', '3'])).toBe(
      `ringwise run: --elastic expects a number of ranks such as 2, or a range such as 2:8, got '${word}'.`,
    );
    expect(parsed(['--elastic', 'train', '--epochs', '3'])).toMatchObject({ script: 'train' });
    expect(parsed(['--elastic', '--no-python', word, 'train.ts'])).toMatchObject({ script: word });
  });

  it('refuses a MIN of --elastic that one host never reaches', () => {
    expect(message(['--elastic', '3', '--nproc-per-node', '2', 'train.ts'])).toBe(
      'ringwise run: --elastic expects at most the ranks of this host, 2 by --nproc-per-node, or --nnodes with more ' +
        "hosts, got '3'.",
    );
    const several = ['--rdzv-backend', 'c10d', '--rdzv-endpoint', 'a:29500', '--nnodes', '1:2'];
    expect(parsed([...several, '--elastic', '3', '--nproc-per-node', '2', 'train.ts'])).toMatchObject({
      elastic: { minRanks: 3 },
    });
  });

  it('has --grace for elastic jobs only', () => {
    expect(parsed(['--elastic', '--grace', '5', '--max-restarts', '0', 'train.ts'])).toMatchObject({
      graceMs: 5_000,
      maxRestarts: 0,
    });
    expect(message(['--grace', '5', 'train.ts'])).toContain('--grace is for --elastic, which was not given.');
  });

  it('reads each flag from its PET_ variable, below the command line', () => {
    const env = {
      PET_NPROC_PER_NODE: '4',
      PET_NNODES: '1:1',
      PET_NODE_RANK: '0',
      PET_MASTER_ADDR: '10.0.0.1',
      PET_MASTER_PORT: '29500',
      PET_RDZV_ID: 'job7',
      PET_SHUTDOWN_TIMEOUT: '5',
    };
    expect(parsed(['train.ts'], env)).toMatchObject({
      nprocPerNode: '4',
      meeting: { host: '10.0.0.1', port: 29500, maxNodes: 1 },
      runId: 'job7',
      shutdownTimeoutMs: 5000,
    });
    expect(parsed(['--nproc-per-node', '2', 'train.ts'], env).nprocPerNode).toBe('2');
  });

  it('lets standalone win over the address of a cluster', () => {
    const env = { PET_NNODES: '4', PET_MASTER_ADDR: '10.0.0.1', PET_MASTER_PORT: '29500' };
    expect(parsed(['--standalone', 'train.ts'], env).meeting).toEqual(oneHost);
    expect(parsed(['--standalone', '--nnodes', '1:4', 'train.ts']).meeting).toEqual(oneHost);
    expect(parsed(['train.ts'], { ...env, PET_STANDALONE: '1' }).meeting).toEqual(oneHost);
    const cluster = parsed(['train.ts'], { ...env, PET_STANDALONE: '0' });
    expect(cluster.meeting).toMatchObject({ maxNodes: 4, host: '10.0.0.1', port: 29500 });
  });

  it.each(['yes', 'on', '2'])('refuses a switch that is %s', (text) => {
    expect(() => parsed(['train.ts'], { PET_STANDALONE: text })).toThrow(
      `ringwise run: PET_STANDALONE expects 1 or 0, got '${text}'.`,
    );
  });

  it('reads the elastic example of torchrun', () => {
    const argv = [
      '--nnodes=1:4',
      '--nproc_per_node=2',
      '--rdzv_id=100',
      '--rdzv_backend=c10d',
      '--max_restarts=3',
    ];
    const conf = '--rdzv_conf=join_timeout=60,last_call_timeout=5,is_host=true,keep_alive_interval=1';
    const options = parsed([...argv, conf, '--rdzv_endpoint=gpu-a', 'train.ts']);
    expect(options).toMatchObject({ runId: '100', maxRestarts: 3 });
    expect(options.meeting).toMatchObject({
      backend: 'c10d',
      minNodes: 1,
      maxNodes: 4,
      host: 'gpu-a',
      port: 29_400,
      isHost: true,
      joinTimeoutMs: 60_000,
      lastCallMs: 5_000,
      keepAliveMs: 1_000,
      keepAliveAttempts: 5,
    });
  });

  it.each([
    ['gpu-a:4711', 'gpu-a', 4711],
    ['[fe80::1]:4711', 'fe80::1', 4711],
    ['[::1]', '::1', 29_400],
  ])('reads the endpoint %s', (endpoint, host, port) => {
    const argv = ['--nnodes', '2', '--rdzv-backend', 'c10d', '--rdzv-endpoint', endpoint, 'x.ts'];
    expect(parsed(argv).meeting).toMatchObject({ host, port });
  });

  it.each([
    [{ SLURM_NODEID: '1', SLURM_STEP_ID: '0' }, 1],
    [{ SLURM_NODEID: '1' }, 0],
    [{ JOB_COMPLETION_INDEX: '1' }, 1],
    [{ JOB_COMPLETION_INDEX: '1', PET_NODE_RANK: '0' }, 0],
  ])("takes this host's index from the scheduler: %j", (env, nodeRank) => {
    expect(parsed(['--nnodes', '2', 'x.ts'], env).meeting.nodeRank).toBe(nodeRank);
  });

  it('names streams as torchrun does', () => {
    const { output } = parsed(['-r', '3', '-t', '0:1,1:2', '--local-ranks-filter', '0,2', 'x.ts']);
    expect(output.redirects(5)).toEqual(['stdout', 'stderr']);
    expect([0, 1, 2].map(output.tee)).toEqual([['stdout'], ['stderr'], []]);
    expect(output.localRanks).toEqual(new Set([0, 2]));
  });

  it('asks for help only before the script', () => {
    expect(parseRun(['-h'], {})).toBe('help');
    expect(parseRun(['--nproc-per-node', '2', '--help'], {})).toBe('help');
  });

  it.each([
    [['--nproc-per-nod', '2'], 'unknown flag --nproc-per-nod; did you mean --nproc-per-node?'],
    [['--nporc-per-node=2'], 'unknown flag --nporc-per-node; did you mean --nproc-per-node?'],
    [['-x', '2'], 'unknown flag -x. See'],
    [['--frobnicate'], 'unknown flag --frobnicate. See ringwise run --help.'],
    [['--start-method', 'fork'], 'this version does not have --start-method yet'],
    [
      ['-m', 'package.train'],
      '-m names a module of Python, and ringwise run starts files. For a module of Python: --no-python python3 -u -m MODULE. ',
    ],
    [['--module', 'package.train'], '--module names a module of Python'],
    [['--use-env', 'train.ts'], '--use-env is always on: ranks find LOCAL_RANK in the environment'],
    [['--use_env', 'train.ts'], '--use-env is always on'],
    [
      ['--nnodes', '2:1', 'x.ts'],
      "--nnodes expects a number of hosts such as 2, or a range such as 1:4, got '2:1'",
    ],
    [
      ['--nnodes', '1:2', 'x.ts'],
      '--nnodes expects one number with --rdzv-backend static (c10d takes a range)',
    ],
    [['--rdzv-backend', 'etcd', 'x.ts'], "--rdzv-backend expects static or c10d, got 'etcd'"],
    [
      ['--nnodes', '2', '--rdzv-backend', 'c10d', 'x.ts'],
      '--rdzv-endpoint expects HOST[:PORT] of one of the hosts',
    ],
    [['--rdzv-endpoint', 'a:b:c', 'x.ts'], "--rdzv-endpoint expects HOST[:PORT], got 'a:b:c'"],
    [
      ['--nnodes', '2', '--rdzv-endpoint', 'a:0', 'x.ts'],
      "--rdzv-endpoint expects a port from 1 to 65535 when several hosts meet, got 'a:0'",
    ],
    [
      ['--nnodes', '2', '--master-port', '0', 'x.ts'],
      "--master-port expects a port from 1 to 65535 when several hosts meet, got '0'",
    ],
    [
      ['--standalone', '--nnodes', '2', 'x.ts'],
      "--nnodes expects 1 with --standalone, which is for one host, got '2'",
    ],
    [
      ['--rdzv-conf', 'jon_timeout=3', 'x.ts'],
      'unknown key of --rdzv-conf jon_timeout; did you mean join_timeout?',
    ],
    [['--rdzv-conf', 'join_timeout=x', 'x.ts'], '--rdzv-conf join_timeout expects a number'],
    [
      ['--node-rank', '2', '--nnodes', '2', 'x.ts'],
      "--node-rank expects a whole number from 0 to 1, got '2'",
    ],
    [['--tee', '4', 'x.ts'], '--tee expects 0, 1 (stdout), 2 (stderr), 3 (both)'],
    [['--signals-to-handle', 'SIGTERM,SIGNOPE', 'x.ts'], '--signals-to-handle expects names of signals'],
    [['--rdzv-conf', 'constructor=1', 'x.ts'], 'unknown key of --rdzv-conf constructor'],
    [['--signals-to-handle', 'SIGKILL', 'x.ts'], 'SIGKILL and SIGSTOP cannot be handled'],
    [['--monitor-interval', '0', 'x.ts'], "--monitor-interval expects seconds above 0, got '0'"],
    [['--standalone=yes'], "--standalone takes no value, got 'yes'"],
    [['--master-port'], '--master-port needs a value; expected --master-port PORT'],
    [['--node-rank', '1', 'x.ts'], "--node-rank expects 0 with one host, got '1'"],
    [['--master-port', '99999', 'x.ts'], "--master-port expects a whole number from 0 to 65535, got '99999'"],
    [['--nproc-per-node', '2'], 'no script given'],
    [
      ['--nproc-per-node', '0', 'x.ts'],
      '--nproc-per-node expects a whole number from 1 to 65536, auto, cpu or gpu',
    ],
    [
      ['--metrics', 'train.mjs', '--epochs', '3'],
      '--metrics needs a value before the script, got train.mjs; expected --metrics FILE train.mjs. ' +
        'If train.mjs is the value, write --metrics=train.mjs.',
    ],
    [['--metrics', '--ui', 'train.mjs'], '--metrics needs a value; expected --metrics FILE.'],
    [
      ['--ui', '8080', 'x.ts'],
      '--ui takes a value only as --ui=8080, because the next word may be the script',
    ],
    [['--ui', '127.0.0.1:8080', 'x.ts'], 'got --ui 127.0.0.1:8080.'],
    [
      ['--ui=99999', 'x.ts'],
      "--ui expects an address such as 127.0.0.1:8080, or a port such as 8080, got '99999'",
    ],
    [['--num-nodes', '2', 'x.ts'], 'unknown flag --num-nodes; did you mean --nnodes?'],
  ])('explains %j', (argv, sentence) => {
    expect(message(argv)).toContain(sentence);
  });

  it.each([
    [
      { PET_NNODES: 'two' },
      "PET_NNODES expects a number of hosts such as 2, or a range such as 1:4, got 'two'",
    ],
    [{ PET_MAX_RESTARTS: 'x' }, 'PET_MAX_RESTARTS expects a whole number'],
    [{ PET_NPROC_PER_NODE: 'x' }, 'PET_NPROC_PER_NODE expects a whole number from 1'],
    [{ PET_UI: 'a:b' }, 'PET_UI expects an address'],
    [{ PET_TEE: '4' }, 'PET_TEE expects 0, 1 (stdout)'],
    [
      { PET_NNODES: '2', SLURM_STEP_ID: '0', SLURM_NODEID: '5' },
      'SLURM_NODEID expects a whole number from 0 to 1',
    ],
    [{ PET_RDZV_CONF: 'timeout=x' }, 'PET_RDZV_CONF timeout expects a number'],
  ])('names the variable that has the wrong value: %j', (env, sentence) => {
    expect(message(['x.ts'], env)).toContain(`ringwise run: ${sentence}`);
  });

  it('names the flag if the command line overrides a variable', () => {
    expect(message(['--nnodes', 'x', 'x.ts'], { PET_NNODES: '2' })).toContain('--nnodes expects');
  });

  it('takes a port alone for the live page, and -n for the number of ranks', () => {
    expect(parsed(['--ui=8080', 'x.ts']).live.ui).toEqual({ host: '127.0.0.1', port: 8080 });
    expect(parsed(['--ui', 'x.ts']).live.ui).toEqual({ host: '127.0.0.1', port: 0 });
    expect(parsed(['-n', '2', 'x.ts']).nprocPerNode).toBe('2');
    expect(parsed(['-n2', 'x.ts']).nprocPerNode).toBe('2');
  });

  it('explains a variable of a flag that does not exist yet', () => {
    expect(message(['x.ts'], { PET_RUN_PATH: '1' })).toContain('--run-path (set by PET_RUN_PATH)');
  });
});
