// Reads release.config.json, the one place where the publisher's name and the address of the repository stand.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/**
 * Values for a release that is not published: the addresses are under a domain that is reserved for examples. The other
 * values are those of release.config.json.
 */
const rehearsal = {
  author: 'The ringwise developers <ringwise@example.org>',
  repository: 'https://github.com/example-owner/ringwise',
};

/** Returns the configuration of a file. `isRehearsal` fills in values for what is still to do. */
export function readConfig(root, { isRehearsal, file = 'release.config.json' }) {
  const config = JSON.parse(readFileSync(resolve(root, file), 'utf8'));
  if (!isRehearsal) return config;
  const done = Object.entries(config).filter(([key, value]) => todosOf({ [key]: value }).length === 0);
  return { ...rehearsal, ...Object.fromEntries(done) };
}

/** Returns what is wrong with a configuration, one sentence each. Only one without faults may be published. */
export function todosOf(config) {
  return Object.entries(config).flatMap(([key, value]) => {
    if (/^TODO\b/.test(value)) return [`release.config.json: "${key}" is still to do (${value}).`];
    if (key === 'repository' && !/^https:\/\/github\.com\/[\w.-]+\/[\w.-]+(?<!\.git)$/.test(value))
      return [`release.config.json: expected "repository" as https://github.com/OWNER/NAME, got ${value}.`];
    if (key === 'glibc' && !/^\d+\.\d+$/.test(value))
      return [`release.config.json: expected "glibc" as a version such as 2.28, got ${value}.`];
    return [];
  });
}
