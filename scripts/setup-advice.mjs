// What to do when the dependencies cannot be installed, from the output of npx and pnpm.

/** Patterns of the output, and what to do. The first that fits counts. */
const advice = [
  [
    /ERR_PNPM_UNEXPECTED_STORE/,
    'node_modules was made with another pnpm store. Remove it (rm -rf node_modules packages/*/node_modules) and try again.',
  ],
  [/ENOSPC/, 'The disk is full. Free some space and try again.'],
  [
    /EACCES|EPERM|EROFS/,
    'A folder cannot be written. Check who owns this folder, ~/.npm and the pnpm store, and try again.',
  ],
  [
    /ERR_PNPM_OUTDATED_LOCKFILE/,
    'pnpm-lock.yaml does not fit a package.json. Run "npx pnpm install" and commit the lock file.',
  ],
  [
    /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_PNPM_META_FETCH_FAIL|ERR_SOCKET_TIMEOUT/,
    'The npm registry cannot be reached. Check the network and, behind a proxy, "npm config get proxy"; then try again.',
  ],
];

export function adviceOn(output) {
  return advice.find(([pattern]) => pattern.test(output))?.[1] ?? 'The lines above say why.';
}

/** Returns whether a version of Node is below `required`, which has the form >=MAJOR.MINOR.PATCH. */
export function isOldNode(version, required) {
  const [have, need] = [version, required.slice(2)].map((text) => text.split('.').map(Number));
  for (const [i, part] of need.entries()) if (have[i] !== part) return have[i] < part;
  return false;
}
