// Estimates how long collectives take on networks that are not available: runs the plans that real groups
// carry out on a simulated network with a virtual clock, for up to thousands of ranks in one process.
//
//   npx tsx bench/simulate.ts [--verb allReduce] [--ranks 2,4,8,…] [--bytes 1024,1048576] [--svg plot.svg] [--json]
//   npx tsx bench/simulate.ts --chosen …      the algorithm that the library would choose, against the fastest
//
// --help lists all options, docs/simulation.md describes the model. Every row says how it was checked: with
// real data, or, above --check-ranks ranks, only that every message meets a receiver that waits for it.
import { writeFileSync } from 'node:fs';
import { help, parseOptions, WrongOption } from './simulate/options.ts';
import { type Begun, ProgramFailed, type Row, simulate } from './simulate/program.ts';
import {
  choiceHeader,
  choiceLine,
  choicesAmong,
  drawRows,
  header,
  size,
  tableLine,
} from './simulate/table.ts';

const toTerminal = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(text);
};

/** Shows on a terminal what runs, updated every second. Returns the function that ends this. */
function showProgress({ algorithm, ranks, bytes, expectedMessages }: Begun): () => void {
  const begun = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - begun) / 1000);
    const million = Math.round(expectedMessages / 1e6);
    toTerminal(`\r\x1b[K${algorithm}, ${ranks} ranks, ${size(bytes)}: ${million} M messages, ${seconds} s`);
  }, 1000);
  return () => {
    clearInterval(timer);
    toTerminal('\r\x1b[K');
  };
}

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) return console.log(help);
  const rows: Row[] = [];
  let isHeaded = options.json || options.chosen;
  let hideProgress = (): void => {};
  try {
    for await (const row of simulate(options.programArguments)) {
      hideProgress();
      if ('expectedMessages' in row) {
        hideProgress = showProgress(row);
        continue;
      }
      if ('timeUs' in row) rows.push(row);
      if (!isHeaded) console.log(header);
      isHeaded = true;
      if (!options.chosen) console.log(options.json ? JSON.stringify(row) : tableLine(row));
    }
  } finally {
    hideProgress();
  }
  if (options.chosen && !options.json) console.log(choiceHeader);
  for (const choice of options.chosen ? choicesAmong(rows) : []) {
    console.log(options.json ? JSON.stringify(choice) : choiceLine(choice));
  }
  if (options.svg !== undefined) writeFileSync(options.svg, drawRows(options.verb, rows));
}

// The handler of 'exit' kills the simulation.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => {
    toTerminal('\r\x1b[K');
    process.exit(code);
  });
}
try {
  await main();
} catch (error) {
  if (!(error instanceof WrongOption || error instanceof ProgramFailed)) throw error;
  if (error.message !== '') console.error(`simulate: ${error.message}`);
  process.exitCode = error instanceof WrongOption ? 2 : error.exitCode;
}
