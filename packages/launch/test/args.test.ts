import { describe, expect, it } from 'vitest';
import { parseRun, type RunOptions } from '../src/args.ts';

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
    expect(parsed(['train.ts'])).toEqual({
      script: 'train.ts',
      scriptArgs: [],
      nprocPerNode: '1',
      masterAddr: '127.0.0.1',
      masterPort: 0,
      runId: undefined,
      shutdownTimeoutMs: 30_000,
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

  it('takes the script after a double dash', () => {
    expect(parsed(['--nproc-per-node=2', '--', 'train.ts', 'a']).script).toBe('train.ts');
  });

  it.each([['--nproc_per_node', '2'], ['--nproc-per-node', '2'], ['--nproc_per_node=2']])(
    'reads %s %s',
    (...argv) => {
      expect(parsed([...argv, 'train.ts']).nprocPerNode).toBe('2');
    },
  );

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
      masterAddr: '10.0.0.1',
      masterPort: 29500,
      runId: 'job7',
      shutdownTimeoutMs: 5000,
    });
    expect(parsed(['--nproc-per-node', '2', 'train.ts'], env).nprocPerNode).toBe('2');
  });

  it('lets standalone win over the address of a cluster', () => {
    const env = { PET_NNODES: '4', PET_MASTER_ADDR: '10.0.0.1', PET_MASTER_PORT: '29500' };
    const standalone = { masterAddr: '127.0.0.1', masterPort: 0 };
    expect(parsed(['--standalone', 'train.ts'], env)).toMatchObject(standalone);
    expect(parsed(['train.ts'], { ...env, PET_STANDALONE: '1' })).toMatchObject(standalone);
    expect(message(['train.ts'], { ...env, PET_STANDALONE: '0' })).toContain('--nnodes 4');
  });

  it('asks for help only before the script', () => {
    expect(parseRun(['-h'], {})).toBe('help');
    expect(parseRun(['--nproc-per-node', '2', '--help'], {})).toBe('help');
  });

  it.each([
    [['--nproc-per-nod', '2'], 'unknown flag --nproc-per-nod; did you mean --nproc-per-node?'],
    [['--nporc-per-node=2'], 'unknown flag --nporc-per-node; did you mean --nproc-per-node?'],
    [['-n', '2'], 'unknown flag -n; did you mean --nproc-per-node?'],
    [['--frobnicate'], 'unknown flag --frobnicate. See ringwise run --help.'],
    [['--max-restarts', '3'], 'this version does not have --max-restarts yet'],
    [['--nnodes', '2', 'x.ts'], 'this version does not have jobs on several hosts (--nnodes 2) yet'],
    [['--standalone=yes'], "--standalone takes no value, got 'yes'"],
    [['--master-port'], '--master-port needs a value; expected --master-port PORT'],
    [['--node-rank', '1', 'x.ts'], "--node-rank expects 0 with one host, got '1'"],
    [['--master-port', '99999', 'x.ts'], "--master-port expects a whole number from 0 to 65535, got '99999'"],
    [['--nproc-per-node', '2'], 'no script given'],
  ])('explains %j', (argv, sentence) => {
    expect(message(argv)).toContain(sentence);
  });

  it('explains a variable of a flag that does not exist yet', () => {
    expect(message(['x.ts'], { PET_RDZV_BACKEND: 'c10d' })).toContain(
      '--rdzv-backend (set by PET_RDZV_BACKEND)',
    );
  });
});
