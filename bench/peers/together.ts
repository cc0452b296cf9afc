// Commands as words of a shell.

/** One command that runs all of these at once, and fails if one of them fails. */
export function together(commands: readonly (readonly string[])[]): string[] {
  const lines = commands.map((argv) => `${line(argv)} & pids="$pids $!"`);
  return ['sh', '-c', `${lines.join('\n')}\nfor pid in $pids; do wait $pid || exit 1; done`];
}

/** The command as a shell reads it. */
export function line(argv: readonly string[]): string {
  return argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}
