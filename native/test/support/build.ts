// Runs commands that build or test C++. A command that fails becomes an error that has all of its output.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const native = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a command in native/. */
export function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  try {
    execFileSync(command, args, { cwd: native, env, stdio: 'pipe', encoding: 'utf8', maxBuffer: 1 << 28 });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(' ')} failed\n${stdout}\n${stderr}`);
  }
}
