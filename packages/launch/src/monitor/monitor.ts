// All monitoring of a job on one launcher: the status line and, on the launcher that keeps the store, the live page
// and the report files. Other launchers forward the events of their ranks to that one.

import { once } from 'node:events';
import type { LiveOptions } from '../cli/run-options.ts';
import type { ViewFacts } from '../rendezvous/elastic/view-facts.ts';
import { watchedKey } from '../rendezvous/job-keys.ts';
import type { Outcome, StartOrder } from '../rendezvous/messages.ts';
import type { Meeting } from '../rendezvous/rendezvous.ts';
import type { Write } from '../report/output.ts';
import type { Observe, RankEvent } from './events.ts';
import { Feed } from './feed.ts';
import { prometheusText } from './files/prometheus.ts';
import { openReport } from './files/report-file.ts';
import type { Sink } from './files/sink.ts';
import { openSinks } from './files/sinks.ts';
import { collect, forward } from './forward.ts';
import { JobView } from './job-view.ts';
import { viewText } from './membership.ts';
import { residentBytes } from './memory.ts';
import { statusLine, statusText } from './status-line.ts';
import type { UiServer } from './ui-server.ts';

export interface Monitor {
  /** Receives the events of this host's ranks; undefined if monitoring is off. */
  readonly observe: Observe | undefined;
  /** Shows the progress of rank 0 in the status line; undefined if there is none. */
  readonly showProgress: ((text: string) => void) | undefined;
  /** Writes lines of ranks; undefined if the ranks print directly. */
  readonly write: Write | undefined;
  /** Prints the launcher's own lines to stderr. */
  readonly say: (text: string) => void;
  readonly startRound: (order: StartOrder, clockOffsetNs: bigint) => void;
  /** Begins to show an elastic job. */
  readonly startSlots: (clockOffsetNs: bigint) => void;
  /** Shows how many slots and hosts an elastic job has now. */
  readonly showSlots: (slots: number, hosts: number) => void;
  /** Shows a new view of an elastic job. The launcher that keeps the store of a new job prints it as well. */
  readonly showView: (view: ViewFacts) => void;
  /** Prints which ranks a new view of an elastic job has lost, and which have joined. */
  readonly sayView: (view: ViewFacts) => void;
  readonly finish: (outcome: Outcome) => void;
  /** Closes everything except a page that stays after the job. */
  readonly close: () => Promise<void>;
  /** If the page stays after the job, waits for `ending` and then closes it. */
  readonly stay: (ending: AbortSignal) => Promise<void>;
}

const tickMs = 500;
const memoryEveryMs = 2_000;

/** Opens the monitor. `write` writes to the terminal. Rejects if a file or the page cannot be opened. */
export async function openMonitor(
  options: LiveOptions,
  { store, isHost }: Meeting,
  title: string,
  write: Write | undefined,
): Promise<Monitor> {
  const { ui, reportFile, metricsFile, tensorboardDir } = options;
  const hasViewers = [ui, reportFile, metricsFile, tensorboardDir].some((viewer) => viewer !== null);
  if (isHost) await store.set(watchedKey, `${hasViewers}`);
  // If the store is lost here, joining the job reports it.
  const isWatched = isHost
    ? hasViewers
    : Buffer.from(await store.get(watchedKey).catch(() => new Uint8Array())).toString() === 'true';

  const view = new JobView(clockMs());
  let progress = '';
  const isTerminal = { stdout: process.stdout.isTTY === true, stderr: process.stderr.isTTY === true };
  const status =
    write && isTerminal.stderr && process.env.TERM !== 'dumb'
      ? statusLine(write, isTerminal, process.stderr, () =>
          [statusText(view, clockMs()), progress].filter(Boolean).join('  '),
        )
      : null;
  const say = (text: string) => {
    if (status) void status.write('stderr', `ringwise: ${text}\n`);
    else process.stderr.write(`ringwise: ${text}\n`);
  };
  const sayView = (next: ViewFacts) => {
    const text = viewText(next);
    if (text !== null) say(text);
  };
  const watching = isWatched ? await watch(isHost, options, view, title, say) : null;
  const forwarding = watching && !isHost ? forward(store) : null;
  const collecting = watching && isHost ? collect(store, watching.handle) : null;
  const pids = new Map<number, number>();

  function observe(event: RankEvent): void {
    if (event.kind === 'started') pids.set(event.rank, event.pid);
    if (event.kind === 'ended') pids.delete(event.rank);
    if (watching) watching.handle(event);
    else if (event.kind !== 'line') view.handle(event);
    forwarding?.observe(event);
  }

  async function sampleMemory(): Promise<void> {
    for (const [rank, pid] of pids) {
      const bytes = await residentBytes(pid);
      if (bytes !== null && pids.get(rank) === pid) observe({ kind: 'memory', rank, bytes });
    }
  }

  const memoryTimer = watching ? setInterval(() => void sampleMemory(), memoryEveryMs) : undefined;
  return {
    observe: watching || status ? observe : undefined,
    showProgress: status
      ? (text) => {
          progress = text;
        }
      : undefined,
    write: status?.write ?? write,
    say,
    startRound: ({ worldSize, groupWorldSize, round, why }, clockOffsetNs) => {
      progress = '';
      view.startRound(worldSize, groupWorldSize, round, why);
      if (forwarding) forwarding.clockOffsetMs = Number(clockOffsetNs) / 1e6;
    },
    startSlots: (clockOffsetNs) => {
      if (forwarding) forwarding.clockOffsetMs = Number(clockOffsetNs) / 1e6;
    },
    showSlots: (slots, hosts) => view.resize(slots, hosts),
    showView: (next) => {
      view.showView(next, clockMs());
      if (isHost) sayView(next);
    },
    sayView,
    finish: ({ exitCode, text, culprit }) => {
      view.finish(exitCode, text, clockMs(), culprit);
      status?.close();
    },
    close: async () => {
      clearInterval(memoryTimer);
      status?.close();
      await collecting?.close();
      await forwarding?.close();
      await watching?.close();
    },
    stay: async (ending) => {
      await watching?.stay(ending);
    },
  };
}

interface Watching {
  readonly handle: Observe;
  readonly close: Monitor['close'];
  readonly stay: Monitor['stay'];
}

/** Opens the page and the files on the host that keeps the store; on other hosts only fills the view. */
async function watch(
  isHost: boolean,
  options: LiveOptions,
  view: JobView,
  title: string,
  say: (text: string) => void,
): Promise<Watching> {
  const nothing = async () => {};
  if (!isHost) return { handle: (event) => view.handle(event), close: nothing, stay: nothing };
  const files = openSinks(options, say);
  const feed = new Feed(view, title);
  const whole = () => feed.whole(clockMs());
  const { reportFile } = options;
  const report = reportFile === null ? null : openReport(reportFile, whole, say);
  const page = options.ui && (await openPage(options.ui, view, feed, say));
  const timer = setInterval(() => {
    if (view.end) return;
    view.sampleThroughput(clockMs());
    files.flush();
    page?.refresh();
  }, tickMs);
  return {
    handle: (event) => {
      view.handle(event);
      if (event.kind === 'report') addToFiles(files, view, event);
    },
    close: async () => {
      clearInterval(timer);
      files.close();
      report?.close();
      page?.refresh();
      if (!options.isUiKept || !view.end) await page?.close();
    },
    stay: async (ending) => {
      if (!page || !options.isUiKept || !view.end) return;
      if (!ending.aborted) {
        say(`the live page stays at ${page.url}; end it with Ctrl-C`);
        await once(ending, 'abort');
      }
      await page.close();
    },
  };
}

function addToFiles(files: Sink, view: JobView, event: Extract<RankEvent, { kind: 'report' }>): void {
  const { rank, report } = event;
  const values = Object.entries(report.values).map(([name, sent]) => [name, Number(sent)] as const);
  files.add({
    rank,
    timeMs: Date.now() - (clockMs() - report.clockMs),
    restarts: view.restarts,
    step: report.step,
    values: Object.fromEntries(values),
  });
}

async function openPage(
  address: NonNullable<LiveOptions['ui']>,
  view: JobView,
  feed: Feed,
  say: (text: string) => void,
): Promise<Pick<UiServer, 'url' | 'close'> & { readonly refresh: () => void }> {
  const refresh = () => {
    if (server.hasReaders()) server.send(feed.changes(clockMs()));
  };
  const whole = () => {
    // Sends pending changes to the other readers first, because whole() includes them; so no reader gets them
    // twice.
    server.send(feed.changes(clockMs()));
    return feed.whole(clockMs());
  };
  const { serveUi } = await import('./ui-server.ts'); // loaded on demand: node:http would add 5 ms to every start
  const server: UiServer = await serveUi(address, { whole, prometheus: () => prometheusText(view) });
  say(`live page at ${server.url}`);
  return { url: server.url, refresh, close: server.close };
}

/** Returns the clock of process.hrtime in milliseconds. */
function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
