// `ringwise plan`, in a module that the launcher loads by name.
import { writeFileSync } from 'node:fs';
import { CollectiveError } from '../src/errors.ts';
import { drawPlan } from './drawing.ts';
import { estimate } from './estimate.ts';
import { help } from './help.ts';
import { parsePlan, UsageError } from './options.ts';
import { planJson, planText } from './report.ts';

/** Runs the command. Returns its exit code: 0, 1 if the estimate cannot be made, or 2 for a wrong argument. */
export async function command(argv: readonly string[]): Promise<number> {
  try {
    const options = parsePlan(argv);
    if (options === 'help') {
      process.stdout.write(help());
      return 0;
    }
    const plan = estimate(options, progress);
    progress('');
    if (options.svg !== undefined) write(options.svg, drawPlan(options, plan));
    process.stdout.write(options.json ? planJson(options, plan) : planText(options, plan));
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError) && !CollectiveError.is(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function write(file: string, drawing: string): void {
  try {
    writeFileSync(file, drawing);
  } catch (error) {
    throw new UsageError(
      `ringwise plan: --svg: ${file} cannot be written: ${(error as Error).message}. Name a file in a folder that exists.`,
    );
  }
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}
