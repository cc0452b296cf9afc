// Documents, parses and checks the options of bench/simulate.ts.
import { parseArgs } from 'node:util';

export const help = `npx tsx bench/simulate.ts [options]
  --verb V            allReduce, broadcast, allGather, reduceScatter, reduce, gather, scatter or allToAll (allReduce)
  --algorithms A,B    some of the verb's algorithms (all)
  --ranks N,M         numbers of ranks (2,4,8,… up to --max-ranks)
  --max-ranks N       (16384)
  --bytes B,C         sizes of the larger of input and output (1024,65536,4194304)
  --per-host P        ranks per host, which share its port to the network (1)
  --latency-us T      from host to host (20)          --inside-latency-us T    inside a host (1)
  --overhead-us T     of a port, per message (1)      --inside-overhead-us T   (0.2)
  --gbit G            of a host's port (10)           --inside-gbit G          of a rank's memory (80)
  --pod-hosts H       hosts per pod (0: no pods)      --pod-gbit G             between a pod and the rest
  --handshakes        with the 64 bytes that each rank sends first to each peer; formulas have none
  --check-ranks N     check with real data up to N ranks (128)
  --max-messages M    leave out cases with more messages, or messages between more than M/10 pairs of ranks (600000000)
  --chosen            only what the library would choose, against the best for these ranks and bytes
  --svg FILE          draw time against ranks, simulated (marks) and by formula (lines)
  --json              one JSON line per row instead of a table`;

/** A wrong option; the message is a sentence for the user. */
export class WrongOption extends Error {}

export interface Options {
  readonly help: boolean;
  readonly json: boolean;
  readonly chosen: boolean;
  readonly svg: string | undefined;
  readonly verb: string;
  /** Arguments for the program of native/sim. Options that are missing here have their defaults there. */
  readonly programArguments: readonly string[];
}

/** Options with numbers: one number, a whole number, or a list of whole numbers, each at least `least`. */
const numbers: Readonly<Record<string, { kind: 'number' | 'whole' | 'list'; least: number }>> = {
  ranks: { kind: 'list', least: 2 },
  'max-ranks': { kind: 'whole', least: 2 },
  bytes: { kind: 'list', least: 4 },
  'per-host': { kind: 'whole', least: 1 },
  'latency-us': { kind: 'number', least: 0 },
  'overhead-us': { kind: 'number', least: 0 },
  gbit: { kind: 'number', least: 0.001 },
  'inside-latency-us': { kind: 'number', least: 0 },
  'inside-overhead-us': { kind: 'number', least: 0 },
  'inside-gbit': { kind: 'number', least: 0.001 },
  'pod-hosts': { kind: 'whole', least: 0 },
  'pod-gbit': { kind: 'number', least: 0.001 },
  'check-ranks': { kind: 'whole', least: 0 },
  'max-messages': { kind: 'whole', least: 0 },
};
const expected = {
  number: 'a number',
  whole: 'a whole number',
  list: 'whole numbers separated by commas',
} as const;

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        chosen: { type: 'boolean', default: false },
        handshakes: { type: 'boolean', default: false },
        svg: { type: 'string' },
        verb: { type: 'string', default: 'allReduce' },
        algorithms: { type: 'string' },
        ...Object.fromEntries(Object.keys(numbers).map((name) => [name, { type: 'string' } as const])),
      },
    }).values as Record<string, string | boolean | undefined>;
  } catch (error) {
    throw new WrongOption(`${(error as Error).message.split('. ')[0]}. See --help`);
  }
}

function checkNumber(name: string, value: string): void {
  const { kind, least } = numbers[name]!;
  const pattern = kind === 'number' ? /^\d+(\.\d+)?$/ : /^\d+$/;
  const isGood = (part: string) => pattern.test(part) && Number(part) >= least;
  if ((kind === 'list' ? value.split(',') : [value]).every(isGood)) return;
  throw new WrongOption(
    `--${name}: expected ${expected[kind]}, ${least} or more, got ${JSON.stringify(value)}`,
  );
}

function powersOfTwo(from: number, to: number): string {
  const powers: number[] = [];
  for (let power = from; power <= to; power *= 2) powers.push(power);
  return powers.join(',');
}

/** Parses the options; throws WrongOption. The program of native/sim checks verbs and algorithms, which it knows. */
export function parseOptions(args: readonly string[]): Options {
  const { help, json, chosen, handshakes, svg, 'max-ranks': maxRanks = '16384', ...given } = parse(args);
  for (const [name, value] of Object.entries({ ...given, 'max-ranks': maxRanks })) {
    if (name in numbers && value !== undefined) checkNumber(name, value as string);
  }
  if ('pod-hosts' in given !== 'pod-gbit' in given) {
    throw new WrongOption('--pod-hosts and --pod-gbit: expected both or none');
  }
  given.ranks ??= powersOfTwo(Math.max(2, Number(given['per-host'] ?? 1)), Number(maxRanks));
  if (given.ranks === '') throw new WrongOption('--max-ranks: expected at least as many as --per-host');
  const programArguments = Object.entries(given).flatMap(([name, value]) => [`--${name}`, value as string]);
  return {
    help: help as boolean,
    json: json as boolean,
    chosen: chosen as boolean,
    svg: svg as string | undefined,
    verb: given.verb as string,
    programArguments: handshakes ? [...programArguments, '--handshakes', '1'] : programArguments,
  };
}
