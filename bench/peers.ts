// Compares our collectives with those of other libraries, interleaved in one run: each contender measures a
// few sizes, then the next contender does, round after round, so that all see the machine in the same state.
// Prints a table of times and ratios for each verb and number of ranks. --help lists the options;
// docs/performance.md says how to read the table.
import { parseArgs } from 'node:util';
import { build, nativeBuildFolder } from './peers/build.ts';
import { type Case, type Contender, type Found, findContenders } from './peers/contenders.ts';
import { findBetween, type LinkName, links, makeLink } from './peers/hosts.ts';
import { measure, type Surroundings } from './peers/measure.ts';
import { remember, rowsOf, type Samples, tableOf } from './peers/table.ts';

const help = `npx tsx bench/peers.ts [options]          the ranks of one host
npx tsx bench/peers.ts --hosts 2 [options]  two hosts: network namespaces, needs root

  --verb A,B      all-reduce, broadcast, all-gather, reduce-scatter, all-to-all, gather (all-reduce)
  --ranks N,M     numbers of ranks (2)
  --min BYTES     smallest and largest size; sizes grow by factors of 4 (4)
  --max BYTES     (268435456)
  --repeats R     rounds (3). Each round gives its median call, and the table the median of the rounds. With --hosts 2
                  a round gives its mean call instead, because calls that end at once and longer ones take turns
  --seconds S     per size and round (0.2)
  --only A,B      some contenders, such as c,js,openmpi (all that are installed; the others are named)
  --link A,B      with --hosts 2: ${links.join(', ')} (all)
  --json          a JSON line per row instead of a table
  --through CMD   start every command through another, such as taskset; without it each waits for a quiet moment
  --native-build FOLDER   where CMake has built native/, for our C program`;

const { values } = readOptions();
if (values.help) {
  console.log(help);
  process.exit();
}
const limits = await build('limits');
const around: Surroundings = {
  limits: 'path' in limits ? limits.path : null,
  through: values.through.split(' ').filter(Boolean),
  areHosts: values.hosts !== '1',
  // The command given with --through may be a lock that waits for its turn.
  timeoutMs: values.through === '' ? 120_000 : 3_600_000,
};
const only = values.only?.split(',');
const isChosen = (name: string): boolean => only === undefined || only.includes(name);
let isGood = true;
// The handlers of 'exit' kill the running programs.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

if (values.hosts === '1') await compareAll(await findContenders(values['native-build'], isChosen), {});
else {
  for (const link of values.link.split(',') as LinkName[]) {
    const made = await makeLink(link);
    try {
      await compareAll(await findBetween(made, values['native-build'], isChosen), { link });
    } finally {
      await made.close();
    }
  }
}
process.exitCode = isGood ? 0 : 1;

function readOptions() {
  try {
    return parseArgs({
      options: {
        help: { type: 'boolean', default: false },
        verb: { type: 'string', default: 'all-reduce' },
        ranks: { type: 'string', default: '2' },
        min: { type: 'string', default: '4' },
        max: { type: 'string', default: `${256 << 20}` },
        repeats: { type: 'string', default: '3' },
        seconds: { type: 'string', default: '0.2' },
        only: { type: 'string' },
        json: { type: 'boolean', default: false },
        through: { type: 'string', default: '' },
        hosts: { type: 'string', default: '1' },
        link: { type: 'string', default: links.join(',') },
        'native-build': { type: 'string', default: nativeBuildFolder },
      },
    });
  } catch (error) {
    console.error(`peers: ${(error as Error).message.replace(/\.?$/, '.')} --help lists the options.`);
    process.exit(2);
  }
}

/** Measures all verbs and numbers of ranks and prints the results, together with the link in `where`. */
async function compareAll(found: Found, where: { readonly link?: LinkName }): Promise<void> {
  for (const reason of found.missing) console.error(`left out: ${reason}`);
  const { contenders } = found;
  if (contenders.length === 0) {
    console.error(
      `peers: no contender is left${only ? ` of --only ${only.join()}` : ''}. --help has examples.`,
    );
    process.exit(2);
  }
  for (const ranks of values.ranks.split(',').map(Number)) {
    for (const verb of values.verb.split(',')) {
      const rows = rowsOf(await compare(verb, ranks, contenders), contenders);
      isGood &&= rows.every(({ wrong }) => wrong === 0);
      if (values.json) for (const row of rows) console.log(JSON.stringify({ ...where, verb, ranks, ...row }));
      else {
        const title = `${verb}, ${ranks} ranks${where.link ? `, two hosts, link ${where.link}` : ''}`;
        console.log(`\n${title}\n\n${tableOf(rows, contenders)}`);
      }
    }
  }
}

async function compare(verb: string, ranks: number, contenders: readonly Contender[]): Promise<Samples> {
  const all: Samples = new Map();
  const failed = new Set<Contender>();
  for (let repeat = 0; repeat < Number(values.repeats); repeat++) {
    for (const range of pieces(Number(values.min), Number(values.max))) {
      const test: Case = { verb, ranks, ...range, seconds: Number(values.seconds) };
      // Rotate the order in every round: a contender that runs after a large size finds its caches changed.
      for (const i of contenders.keys()) {
        const contender = contenders[(i + repeat) % contenders.length]!;
        if (failed.has(contender)) continue;
        progress(`${verb}, ${ranks} ranks, round ${repeat + 1}: ${contender.name} from ${range.min} B`);
        const outcome = await measure(contender, test, around);
        progress('');
        if (outcome === null) continue;
        if ('samples' in outcome) remember(all, contender.name, outcome.samples);
        else {
          failed.add(contender);
          console.error(`failed: ${outcome.failure}`);
        }
      }
    }
  }
  return all;
}

/** Divides the sizes into pieces of some seconds each: those up to each bound together, larger ones alone. */
function pieces(min: number, max: number): { readonly min: number; readonly max: number }[] {
  const bounds = [1 << 10, 64 << 10, 4 << 20];
  const result: { min: number; max: number }[] = [];
  for (let bytes = min; bytes <= max; bytes *= 4) {
    const last = result.at(-1);
    const bound = bounds.find((each) => bytes <= each);
    if (last && bound !== undefined && bounds.find((each) => last.min <= each) === bound) last.max = bytes;
    else result.push({ min: bytes, max: bytes });
  }
  return result;
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}
