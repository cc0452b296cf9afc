import { once } from 'node:events';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { finished, ringwise, script } from '../../support/command.ts';

describe('ringwise run', () => {
  it('gives every rank the environment of torchrun, and its arguments', async () => {
    const file = script(
      'env.mjs',
      `const { RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, TORCHELASTIC_USE_AGENT_STORE, OMP_NUM_THREADS } = process.env;
       console.log(JSON.stringify([process.argv.slice(2), RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR,
         TORCHELASTIC_USE_AGENT_STORE, OMP_NUM_THREADS, Number(process.env.MASTER_PORT) > 0,
         process.env.RINGWISE_SECRET.length, Object.keys(process.env).filter((name) => /_FD$/.test(name))]));`,
    );
    const { exitCode, stdout, stderr } = await finished(['run', '--nproc_per_node', '2', file, '--lr', '1']);
    const threads = `${Math.max(1, Math.floor(availableParallelism() / 2))}`;
    const seen = (rank: string) =>
      `[${rank}] ${JSON.stringify([['--lr', '1'], rank, rank, '2', '127.0.0.1', 'True', threads, true, 64, []])}`;
    expect(stdout.trim().split('\n').sort()).toEqual([seen('0'), seen('1')]);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
  });

  it('shows the lines that the user wrote of a compiled script that names its source map', async () => {
    const source = script(
      'train.ts',
      `type Loss = number;\n\nconst loss: Loss = 1;\nthrow new Error('loss ' + loss);`,
    );
    const compiled = join(dirname(source), 'train.mjs');
    await build({ entryPoints: [source], outfile: compiled, sourcemap: true });
    const { exitCode, stderr } = await finished(['run', compiled]);
    expect(stderr).toContain('train.ts:4');
    expect(exitCode).toBe(1);
  });

  it('hosts a store that the ranks, and only they, can reach', async () => {
    const file = script(
      'store.mjs',
      `import { TcpStore } from '${import.meta.resolve('@ringwise/store')}';
       const { RANK, MASTER_ADDR: host, MASTER_PORT, RINGWISE_SECRET: secret } = process.env;
       const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), secret });
       await store.set('from ' + RANK, 'hello ' + RANK);
       console.log(Buffer.from(await store.get('from ' + (1 - RANK))).toString());
       await store.close();
       const outsider = await TcpStore.connect({ host, port: Number(MASTER_PORT), timeoutMs: 60_000 }).catch((e) => e);
       console.log(outsider.code);`,
    );
    const { exitCode, stdout } = await finished(['run', '--nproc-per-node', '2', file]);
    expect(stdout.trim().split('\n').sort()).toEqual([
      '[0] ERR_STORE_AUTH',
      '[0] hello 1',
      '[1] ERR_STORE_AUTH',
      '[1] hello 0',
    ]);
    expect(exitCode).toBe(0);
  });

  it('never tears lines of several ranks, even if they arrive in pieces', async () => {
    const file = script(
      'lines.mjs',
      `const letter = 'ab'[process.env.RANK];
       for (let i = 0; i < 200; i++) {
         process.stdout.write(letter.repeat(7));
         if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
         process.stdout.write(letter.repeat(7) + '\\n');
       }
       process.stdout.write('end ' + letter);`,
    );
    const { stdout } = await finished(['run', '--nproc-per-node', '2', file]);
    const lines = stdout.split('\n');
    expect(lines.pop()).toBe('');
    for (const [rank, letter] of ['a', 'b'].entries()) {
      const own = lines.filter((line) => line.startsWith(`[${rank}] `));
      expect(own).toEqual([...Array(200).fill(`[${rank}] ${letter.repeat(14)}`), `[${rank}] end ${letter}`]);
    }
    expect(lines).toHaveLength(402);
  });

  it('loses nothing of a long output when its reader is slow', async () => {
    const file = script(
      'long.mjs',
      `for (let i = 0; i < 40; i++) process.stdout.write('x'.repeat(99_999) + '\\n');`,
    );
    const command = ringwise(['run', '--nproc-per-node', '2', file]);
    command.child.stdout!.pause();
    // The pause is longer than the command keeps reading the pipes of ranks that have ended.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    command.child.stdout!.resume();
    expect(await command.exitCode).toBe(0);
    expect(command.out.stdout.length).toBe(2 * 40 * (100_000 + '[0] '.length));
  });

  it('runs TypeScript, and names the line of the source when it fails', async () => {
    const file = script(
      'typed.ts',
      `interface Step { readonly lr: number }

const step: Step = { lr: 0.1 };
console.log(step.lr, process.env['RANK'] as string);

function fail(step: Step): never {
  throw new RangeError(\`lr \${step.lr} is too large\`);
}
fail(step);
`,
    );
    const { exitCode, stdout, stderr } = await finished(['run', file]);
    expect(stdout).toBe('[0] 0.1 0\n');
    expect(stderr).toContain('\n  RangeError: lr 0.1 is too large   typed.ts:7\n');
    expect(exitCode).toBe(1);
  });

  it('runs CommonJS scripts', async () => {
    const file = script('old.cjs', `console.log(require.main === module, __filename.endsWith('old.cjs'));`);
    expect((await finished(['run', file])).stdout).toBe('[0] true true\n');
  });

  it('leaves no trace of itself in processes and threads that a rank starts', async () => {
    const file = script(
      'fork.mjs',
      `import { fork } from 'node:child_process';
       import { once } from 'node:events';
       import { Worker, isMainThread } from 'node:worker_threads';
       const listeners = process.listenerCount('uncaughtExceptionMonitor');
       if (process.argv[2] === 'child' || !isMainThread) {
         console.log(process.argv[2] ?? 'thread', listeners);
       } else {
         await once(fork(import.meta.filename, ['child']), 'exit');
         await once(new Worker(import.meta.filename), 'exit');
         console.log('rank', listeners);
       }`,
    );
    const { stdout } = await finished(['run', file]);
    expect(stdout.trim().split('\n').sort()).toEqual(['[0] child 0', '[0] rank 1', '[0] thread 0']);
  });

  it('says how to go on when the store cannot have the address', async () => {
    const file = script('never.mjs', ';');
    const { exitCode, stderr } = await finished(['run', '--master-addr', '192.0.2.1', file]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /could not host the store on 192\.0\.2\.1 port 0: .*EADDRNOTAVAIL.*\)\. Give --master-addr /,
    );
  });

  it('says so when the port of the store is in use, with the flag that was given', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const file = script('never.mjs', ';');
    const cases = [
      [['--master-port', `${port}`], '--master-port, or none: then a free one is taken'],
      [
        ['--rdzv-backend', 'c10d', '--rdzv-endpoint', `127.0.0.1:${port}`],
        'port in --rdzv-endpoint, or 0 there: then a free one is taken',
      ],
      [['--nnodes', '2', '--master-port', `${port}`], '--master-port, the same on all hosts'],
    ] as const;
    for (const [flags, next] of cases) {
      const { exitCode, stderr } = await finished(['run', ...flags, file]);
      expect(stderr).toBe(`ringwise run: port ${port} of 127.0.0.1 is in use. Give another ${next}.\n`);
      expect(exitCode).toBe(1);
    }
    other.close();
  });

  it('starts nothing without a script', async () => {
    const missing = join(script('x.mjs', ''), '..', 'missing.mjs');
    const { exitCode, stderr } = await finished(['run', 'missing.mjs']);
    expect(stderr).toBe(
      `ringwise run: no file ${missing}; expected one in JavaScript (.js, .mjs, .cjs, .jsx), ` +
        'TypeScript (.ts, .mts, .cts, .tsx) or Python (.py). Nothing was started.\n',
    );
    expect(exitCode).toBe(2);
  });

  it('says that a script needs no program before it', async () => {
    const { exitCode, stderr } = await finished(['run', '-n', '2', 'node', script('never.mjs', ';')]);
    expect(stderr).toBe(
      'ringwise run: node is a program, and there is no file of that name here; expected a script, which needs no ' +
        'interpreter before it, such as train.mjs. For a program, write --no-python node. Nothing was started.\n',
    );
    expect(exitCode).toBe(2);
  });

  it('explains an unknown flag', async () => {
    const { exitCode, stdout, stderr } = await finished(['run', '--nproc-per-nod', '2', 'x.mjs']);
    expect(stdout).toBe('');
    expect(stderr).toBe(
      'ringwise run: unknown flag --nproc-per-nod; did you mean --nproc-per-node? See ringwise run --help.\n',
    );
    expect(exitCode).toBe(2);
  });
});

describe('ringwise', () => {
  it.each([
    [['--help'], 'ringwise run [flags] script'],
    [['run', '--help'], '--nproc-per-node N'],
    [['--version'], /^\d+\.\d+\.\d+/],
  ])('%j prints to stdout', async (argv, text) => {
    const { exitCode, stdout, stderr } = await finished(argv);
    expect(stdout).toMatch(text);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
  });

  it('runs a script without the word "run", also after flags', async () => {
    const file = script('world.mjs', 'console.log(process.env.WORLD_SIZE);');
    for (const [argv, stdout] of [
      [[file], '[0] 1\n'],
      [['--nproc_per_node', '2', file], '[0] 2\n[1] 2\n'],
      [['--nproc-per-node=2', file], '[0] 2\n[1] 2\n'],
    ] as const) {
      const ended = await finished(argv);
      expect(ended.stdout.split('\n').sort().join('\n').trimStart()).toBe(stdout.trimEnd());
      expect(ended.exitCode).toBe(0);
    }
    const absent = await finished(['absent.ts']);
    expect(absent.exitCode).toBe(2);
    expect(absent.stderr).toContain('absent.ts');
  });

  it.each([[['rnu'], 'ringwise: unknown command rnu; did you mean run? See ringwise --help.\n']])(
    '%j ends with a sentence and exit code 2',
    async (argv, sentence) => {
      expect(await finished(argv)).toEqual({ exitCode: 2, stdout: '', stderr: sentence });
    },
  );
});
