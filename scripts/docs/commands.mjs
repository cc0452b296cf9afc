// Checks flags, environment variables and commands that pages name against the sources.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const launch = 'packages/launch/src/cli';

/** Returns the flags of `ringwise run`. */
export const runFlags = () =>
  new Set(
    [...readFileSync(`${launch}/flags.ts`, 'utf8').matchAll(/\bname: '([a-z-]+)'/g)].map(([, name]) => name),
  );

/** Returns whether the sources of the packages or of the addons name an environment variable. */
export function isVariable(name, flags = runFlags()) {
  if (name.startsWith('PET_')) return flags.has(name.slice(4).toLowerCase().replaceAll('_', '-'));
  const args = [
    'grep',
    '--quiet',
    '--word-regexp',
    '--fixed-strings',
    name,
    '--',
    'packages/*/src/*',
    'native/*',
  ];
  try {
    execFileSync('git', args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Returns what is wrong with a flag, a variable or a command, or null. Undefined if `code` is none of them. */
export function commandFault(code) {
  const flag = /^--([a-z-]+)$/.exec(code)?.[1];
  if (flag) return runFlags().has(flag) ? null : `ringwise run has no flag ${code}`;
  if (/^[A-Z][A-Z0-9_]+$/.test(code)) return isVariable(code) ? null : `no source reads the variable ${code}`;
  const command = /^npx ringwise ([a-z]+)/.exec(code)?.[1];
  if (command === undefined) return undefined;
  const help = readFileSync(`${launch}/help.ts`, 'utf8');
  return help.includes(`ringwise ${command}`) ? null : `there is no command ringwise ${command}`;
}
