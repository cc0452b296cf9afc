// Builds shell commands.

/** Returns one command that runs all of these at once, and fails if one of them fails. */
export function together(commands: readonly (readonly string[])[]): string[] {
  const lines = commands.map((argv) => `${line(argv)} & pids="$pids $!"`);
  return ['sh', '-c', `${lines.join('\n')}\nfor pid in $pids; do wait $pid || exit 1; done`];
}

/** Returns the command as a line for the shell, with each word quoted. */
export function line(argv: readonly string[]): string {
  return argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}
