import { execFileSync } from 'node:child_process';

/**
 * Lists the files below the current folder that match one of the git patterns: tracked ones, also if they have been
 * removed from the disk, and new ones that git does not ignore.
 */
export function sources(...patterns) {
  const listed = execFileSync(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', '-z', ...patterns],
    {
      encoding: 'utf8',
    },
  );
  return listed.split('\0').filter((path) => path !== '');
}
