// Tests what a user sees who mistypes the command, its flags or the name of the script.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { finished, ringwise, script } from '../../support/command.ts';

const hello = script.bind(null, 'hello.mjs', `console.log('hello', ...process.argv.slice(2));`);

describe('ringwise', () => {
  it('prints its version for -v, -V and --version', async () => {
    const versions = await Promise.all(['-v', '-V', '--version'].map((word) => finished([word])));
    for (const { exitCode, stdout } of versions) {
      expect(exitCode).toBe(0);
      expect(stdout).toBe(versions[0]!.stdout);
      expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
    }
  });

  it('prints help for help, and that of run for help run', async () => {
    expect((await finished(['help'])).stdout).toBe((await finished(['--help'])).stdout);
    expect((await finished(['help', 'run'])).stdout).toBe((await finished(['run', '--help'])).stdout);
    expect((await finished(['help', 'rnu'])).stderr).toBe(
      'ringwise: unknown command rnu; did you mean run? See ringwise --help.\n',
    );
  });

  it.each([
    ['dcotor', 'ringwise: unknown command dcotor; did you mean doctor? See ringwise --help.'],
    ['frobnicate', 'ringwise: unknown command frobnicate. See ringwise --help.'],
    ['-x', 'ringwise run: unknown flag -x. See ringwise run --help.'],
    [
      '--nprocs',
      'ringwise run: unknown flag --nprocs; did you mean --nproc-per-node? See ringwise run --help.',
    ],
  ])('refuses %s', async (word, said) => {
    expect(await finished([word, '2'])).toEqual({ exitCode: 2, stdout: '', stderr: `${said}\n` });
  });

  it('ends quietly when nobody reads what it prints', async () => {
    const command = ringwise(['run', '--help']);
    command.child.stdout!.destroy();
    expect(await command.exitCode).toBe(0);
    expect(command.out.stderr).toBe('');
  });

  it.skipIf(!existsSync('/dev/full'))('fails when what it prints cannot be stored', () => {
    const bin = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
    const words = ['-c', 'exec "$0" "$@" > /dev/full', process.execPath, bin, '--help'];
    const { status, stderr } = spawnSync('/bin/sh', words, { encoding: 'utf8' });
    expect(stderr).toMatch(/^ringwise: cannot write stdout: ENOSPC: .*\n$/);
    expect(status).toBe(1);
  });

  it.each(['run', 'doctor'])('%s says that the working directory has gone', (word) => {
    const bin = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
    const gone = mkdtempSync(join(tmpdir(), 'ringwise-gone-'));
    const words = ['-c', 'rmdir "$PWD" && exec "$0" "$@"', process.execPath, bin, word, 'hello.mjs'];
    const { status, stderr } = spawnSync('/bin/sh', words, { cwd: gone, encoding: 'utf8' });
    expect(stderr).toBe(
      'ringwise: the working directory has been deleted or moved. Change to a folder that exists, with cd.\n',
    );
    expect(status).toBe(2);
  });

  it('starts as many ranks as -n says', async () => {
    const { exitCode, stdout } = await finished(['-n', '2', hello()]);
    expect(exitCode).toBe(0);
    expect(stdout.split('\n').sort()).toEqual(['', '[0] hello', '[1] hello']);
  });
});

describe('a script', () => {
  it('that does not exist is named, with a similar one of its folder', async () => {
    const folder = dirname(hello());
    const { exitCode, stderr } = await finished(['run', 'hello']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`no file ${folder}/hello (did you mean ${folder}/hello.mjs?); expected one in`);
  });

  it('that is a folder is refused, with a script in it', async () => {
    const folder = dirname(script('job/train.mjs', 'process.exit(3);'));
    script('job/data.mjs', '');
    for (const words of [['run', 'job'], ['job'], ['./job']]) {
      const { exitCode, stderr } = await finished(words);
      expect(exitCode).toBe(2);
      expect(stderr).toBe(
        `ringwise run: ${folder} is a folder; expected a script, such as ${folder}/train.mjs. Nothing was started.\n`,
      );
    }
  });

  it('that the system does not show is refused with the reason', async () => {
    const folder = dirname(script('there.mjs', ''));
    symlinkSync('b.mjs', join(folder, 'a.mjs'));
    symlinkSync('a.mjs', join(folder, 'b.mjs'));
    for (const flags of [[], ['--no-python']]) {
      const { exitCode, stderr } = await finished(['run', ...flags, './a.mjs']);
      expect(stderr).toMatch(
        /^ringwise run: cannot look at \S*a\.mjs; expected a file that this user may read, got ELOOP: .*\. Nothing was started\.\n$/,
      );
      expect(exitCode).toBe(2);
    }
  });

  it('that is empty ends well, and one line says that it is empty', async () => {
    const file = script('empty.mjs', '');
    const stderr = `ringwise: ${file} is empty, so its ranks do nothing. Has your editor saved it?\n`;
    expect(await finished([file])).toEqual({ exitCode: 0, stdout: '', stderr });
  });

  it('that Node.js does not run fails with the way to start a program', async () => {
    const { exitCode, stderr } = await finished([script('job.sh', 'echo hello')]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('ringwise run --no-python ./program');
  });

  it('that is a program must be executable', async () => {
    const file = script('job.sh', '#!/bin/sh\necho hello\n');
    const refused = await finished(['--no-python', file]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain(
      `${file} may not be executed; expected a program. Run: chmod +x ${file}, or`,
    );
    mkdirSync(join(dirname(file), 'folder'));
    expect((await finished(['--no-python', './folder'])).stderr).toContain('./folder is a folder');
    chmodSync(file, 0o755);
    expect((await finished(['--no-python', file])).stdout).toBe('[0] hello\n');
  });

  it('in CommonJS with import or await fails with the two ways out', async () => {
    script('package.json', '{ "type": "commonjs" }');
    const files = [
      script('a.js', `import 'node:fs';`),
      script('b.js', 'await 1;'),
      script('c.ts', 'await 1; export {};'),
    ];
    for (const file of files) {
      const { exitCode, stderr } = await finished([file]);
      expect(exitCode).not.toBe(0);
      expect(stderr).toMatch(
        /needs an ES module\. Two ways out: name the script \.mjs \(or \.mts\), or name it \.js \(or \.ts\) and put "type"/,
      );
    }
  });
});

describe('a syntax error', () => {
  it.each([
    ['an ES module', 'faulty.mjs', ''],
    ['a module that the script imports', 'faulty.mjs', 'imports.mjs'],
    ['a CommonJS module', 'faulty.cjs', ''],
  ])('in %s is reported with its place', async (_, name, importer) => {
    const faulty = script(name, 'let a = 1;\nconst b = ;');
    const file = importer ? script(importer, `import './${name}';`) : faulty;
    const { exitCode, stderr } = await finished([file]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`\n  SyntaxError: Unexpected token ';'   ${name}:2\n`);
  });
});

describe('a flag of ringwise after the script', () => {
  it('goes to the script, and one line says so', async () => {
    const file = hello();
    const { exitCode, stdout, stderr } = await finished(['run', file, '--nproc', '2']);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '[0] hello --nproc 2\n' });
    expect(stderr).toBe(
      `ringwise: --nproc comes after ${file} and goes to the script. If it is meant for ringwise, ` +
        `put --nproc-per-node before ${file}.\n`,
    );
  });

  it('may be -n with a number of ranks', async () => {
    const file = hello();
    const { stdout, stderr } = await finished(['run', file, '-n', '2']);
    expect(stdout).toBe('[0] hello -n 2\n');
    expect(stderr).toBe(
      `ringwise: -n comes after ${file} and goes to the script. If it is meant for ringwise, put -n before ${file}.\n`,
    );
  });

  it.each([
    ['that many scripts have', ['--metrics', 'x']],
    ['that stands after --', ['--', '--nproc', '2']],
    ['-n without a number of ranks', ['-n', 'name']],
  ])('is no mistake if it is one %s', async (_, args) => {
    expect((await finished(['run', hello(), ...args])).stderr).toBe('');
  });

  it('is no mistake if it is -n and ringwise got its own', async () => {
    expect((await finished(['run', '-n', '2', hello(), '-n', '2'])).stderr).toBe('');
  });
});

describe('colours', () => {
  const fails = script.bind(null, 'fails.mjs', `console.log('a'); process.exit(3);`);

  it('are absent where the output is no terminal', async () => {
    const { stdout, stderr } = await finished([fails()]);
    expect(stdout + stderr).not.toContain('\x1b');
  });

  it('come by FORCE_COLOR, not by NO_COLOR', async () => {
    const { stdout, stderr } = await finished([fails()], { FORCE_COLOR: '1' });
    expect(stdout).toBe('\x1b[2m[0]\x1b[22m a\n');
    expect(stderr.startsWith('ringwise: \x1b[31mrank 0 of 1 failed (exit code 3)')).toBe(true);
    const plain = await finished([fails()], { NO_COLOR: '1' });
    expect(plain.stdout + plain.stderr).not.toContain('\x1b');
  });
});
