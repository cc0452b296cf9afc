// Finds what a published file must not tell: paths of the machine that packed it, addresses of registries, and tokens.
import { homedir } from 'node:os';
import { root } from '../run.mjs';

const personal = /\/(?:home|Users)\/[\w.-]+\/[\w.-]+|\b[A-Z]:\\{1,2}Users\\{1,2}[\w.-]+/i;

const patterns = [
  [
    'the address of a registry',
    /https?:\/\/[^\s"'`)<>]+\/-\/[^\s"'`)<>]+\.tgz|\bregistry\.(?:npmjs\.org|yarnpkg\.com)|\bregistry=https?:[^\s"']+/,
  ],
  ['an access token', /_authToken\b|\bnpm_[A-Za-z0-9]{36}\b/],
];

/** Folders of this machine. */
const folders = [root, homedir()].map((path) => path.replace(/[\\/]+$/, '')).filter((path) => path !== '');

/** Returns a sentence for each kind of thing in `text`, the contents of the file `path`, that must not be published. */
export function leaksIn(path, text) {
  const faults = patterns.flatMap(([what, pattern]) => {
    const found = pattern.exec(text)?.[0];
    return found === undefined ? [] : [`${path} contains ${what}: ${found}.`];
  });
  const folder = folders.find((each) => text.includes(`${each}/`));
  if (folder !== undefined) return [...faults, `${path} contains a path of this machine: ${folder}.`];
  const person = personal.exec(text)?.[0];
  return person === undefined ? faults : [...faults, `${path} contains a person's folder: ${person}.`];
}
