// Tests the scripts of `ringwise completion` in the shells that read them.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { flags } from '../../../src/cli/flags.ts';

const bin = fileURLToPath(new URL('../../../bin/ringwise.js', import.meta.url));
const has = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-completion-'));
  writeFileSync(join(folder, 'train job.mjs'), '');
});
afterEach(() => rmSync(folder, { recursive: true }));

const generated = (shell: string) =>
  execFileSync(process.execPath, [bin, 'completion', shell], { encoding: 'utf8' });

function inShell(shell: string, args: readonly string[], source: string): string {
  const file = join(folder, 'test.sh');
  writeFileSync(file, source);
  writeFileSync(join(folder, 'completion'), generated(shell));
  const env = { ...process.env, HOME: folder };
  return execFileSync(shell, [...args, file], { cwd: folder, env, encoding: 'utf8', timeout: 120_000 });
}

/** Words typed so far, and what completes the last one; the same in all shells. */
const cases: readonly (readonly [string, readonly string[]])[] = [
  ['ringwise ru', ['run']],
  ['ringwise run --nn', ['--nnodes']],
  ['ringwise --max', ['--max-restarts']],
  ['ringwise run --rdzv-backend c', ['c10d']],
  ['ringwise -n au', ['auto']],
  ['ringwise run -n 2 --dry', ['--dry-run']],
  ['ringwise completion fi', ['fish']],
  ['ringwise doctor --j', ['--json']],
  ['ringwise plan --ste', ['--step-ms']],
  ['ringwise run --ui train', ['train job.mjs']],
];
/** After the script, our flags are no candidates. */
const afterScript = 'ringwise run train.mjs --nn';

it('bash completes commands, flags, values and files', () => {
  const source = `source ./completion
    try() {
      COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _ringwise
      printf '%s' "$*:"; printf '%s|' "\${COMPREPLY[@]}"; echo
    }
    ${[...cases.map(([words]) => words), afterScript].map((words) => `try ${words}`).join('\n')}`;
  const expected = cases.map(([words, found]) => `${words}:${found.join('|')}|`);
  expect(inShell('bash', ['--norc'], source).trim().split('\n')).toEqual([...expected, `${afterScript}:|`]);
});

it('bash completes the value after --flag=', () => {
  const source = `source ./completion
    try() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); COMPREPLY=(); _ringwise; printf '%s ' "\${COMPREPLY[@]}"; echo; }
    try ringwise run --rdzv-backend =
    try ringwise run --rdzv-backend = c
    try ringwise run --rdzv-backend = c10d --nu`;
  const found = inShell('bash', ['--norc'], source).trimEnd().split('\n');
  expect(found).toEqual(['static c10d ', 'c10d ', '--numa-binding']);
});

it('bash knows every flag of the table', () => {
  const source = `source ./completion
    COMP_WORDS=(ringwise run --); COMP_CWORD=2; _ringwise; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const found = inShell('bash', ['--norc'], source).trim().split('\n').sort();
  expect(found).toEqual([...flags.map(({ name }) => `--${name}`), '--help'].sort());
});

describe.skipIf(!has('fish'))('fish', () => {
  it('completes commands, flags, values and files', () => {
    const tries = [...cases.map(([words]) => words), afterScript];
    const source = `source ./completion
      ${tries.map((words) => `echo "== $(complete -C '${words}' | string replace -r '\\t.*' '' | string join '|')"`).join('\n')}`;
    const expected = [...cases.map(([, found]) => found.join('|').replace(' ', '\\ ')), ''];
    const lines = inShell('fish', ['--no-config'], source).trimEnd().split('\n');
    expect(lines.map((line) => line.slice(3).replaceAll('\\ ', ' '))).toEqual(
      expected.map((text) => text.replaceAll('\\ ', ' ')),
    );
  });
});

describe.skipIf(!has('zsh'))('zsh', () => {
  it('completes commands, flags, values and files', () => {
    // A terminal of its own: Tab completes the line, and a widget prints what it has become.
    const source = `zmodload zsh/zpty
      zpty s zsh -f -i
      zpty -w s 'PS1=; unsetopt zle_bracketed_paste 2>/dev/null; autoload -U compinit; compinit -u -D; source ./completion'
      zpty -w s 'tell() { print -r -- "<""<$BUFFER>"">"; BUFFER=; zle accept-line }; zle -N tell; bindkey "^X" tell'
      zpty -w s 'print -r -- "<""<ready>"">"'
      await_line() { local line; while zpty -r s line; do [[ "$line" == *"<<"*">>"* ]] && { print -r -- "$line"; return }; done }
      await_line
      ${cases.map(([words]) => `zpty -w -n s '${words}'$'\\t\\030'; await_line`).join('\n')}
      zpty -d s`;
    const told = inShell('zsh', ['-f'], source);
    const lines = [...told.matchAll(/<<(.*?)>>/g)].map(([, line]) => line!.trim());
    const expected = cases.map(([words, [found]]) => {
      const whole = found!.replace(' ', '\\ ');
      // zsh adds the sign, and takes it away if a space follows.
      const sign = ['--nnodes', '--max-restarts'].includes(whole) ? '=' : '';
      return `${words.slice(0, words.lastIndexOf(' ') + 1)}${whole}${sign}`;
    });
    expect(lines).toEqual(['ready', ...expected]);
  });
});
