// `ringwise run`: takes arguments and returns an exit code. Other commands use its function runScript().

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Job, settleTimes, startJob } from '../agent/agent.ts';
import { thisMachine } from '../agent/machine.ts';
import { bindingsOf } from '../agent/placement.ts';
import { planRanks, rankCount } from '../agent/plan.ts';
import { isStoreLost } from '../errors.ts';
import { type Monitor, openMonitor } from '../monitor/monitor.ts';
import { coordinate } from '../rendezvous/coordinate.ts';
import { elasticStore } from '../rendezvous/elastic/elastic-keys.ts';
import { RankStores } from '../rendezvous/elastic/rank-stores.ts';
import { openStandby } from '../rendezvous/elastic/standby.ts';
import { type Outcome, type StartOrder, stoppedBy } from '../rendezvous/messages.ts';
import { movedHere, movedThere, plainClient, waitsElsewhere } from '../rendezvous/outcomes.ts';
import { type Meeting, openMeeting, whereIs } from '../rendezvous/rendezvous.ts';
import { type Participant, type ParticipantOptions, takePart } from '../rendezvous/take-part.ts';
import { type LogFiles, openLogFiles } from '../report/log-files.ts';
import type { Write } from '../report/output.ts';
import { parseRun } from './args.ts';
import { describePlan } from './dry-run.ts';
import { outputsOf, type Setup, slotHosting } from './elastic-run.ts';
import { emptyScriptHint, hiddenRanksHint, misplacedFlagHint } from './flag-values.ts';
import { ignoresHangUp } from './hang-up.ts';
import { runHelp } from './help.ts';
import { programOf } from './program.ts';
import { defaultSignals, type RunOptions } from './run-options.ts';
import { styled } from './style.ts';
import { onOutputError, terminal } from './terminal.ts';

/** Runs the command and resolves with its exit code. Handles the process's signals from then on. */
export async function run(argv: readonly string[]): Promise<number> {
  const options = parseRun(argv, process.env);
  if (options === 'help') {
    process.stdout.write(runHelp());
    return 0;
  }
  const { script, isDryRun } = options;
  for (const hint of [misplacedFlagHint(options), isDryRun ? null : emptyScriptHint(script)]) {
    if (hint !== null) process.stderr.write(`ringwise: ${hint}\n`);
  }
  return await runScript('ringwise run', options, terminal());
}

/**
 * Runs the ranks of a script until they end, reports a failure, and resolves with the exit code. Handles the
 * process's signals from then on. Without `write` the ranks print directly to this process's stdout and
 * stderr, without a prefix.
 */
export async function runScript(command: string, options: RunOptions, write?: Write): Promise<number> {
  const { script, isProgram, scriptArgs, meeting: where } = options;
  const machine = thisMachine();
  const nproc = rankCount(command, options.nprocPerNode, machine);
  const program = programOf(command, script, isProgram, scriptArgs, rankColors(process.env));
  const bindings = bindingsOf(options, nproc, machine.gpus, process.env);
  const member = {
    id: randomUUID(),
    host: where.localName ?? hostname(),
    nproc,
    nodeRank: where.backend === 'static' && where.maxNodes > 1 ? where.nodeRank : null,
  };
  if (options.isDryRun) {
    process.stdout.write(await describePlan(options, nproc, program, machine, bindings));
    return 0;
  }
  const hint = hiddenRanksHint(options.output.localRanks, nproc);
  if (hint !== null) process.stderr.write(`ringwise: ${hint}\n`);
  const isDefault = options.signals === defaultSignals;
  const keepsOn = isDefault ? ignoresHangUp(process.env) : !options.signals.includes('SIGHUP');
  if (keepsOn) process.on('SIGHUP', () => {});
  const signals = options.signals.filter((signal) => signal !== 'SIGHUP' || !keepsOn);
  let logs: LogFiles | undefined;
  let monitor: Monitor | undefined;
  const ending = new AbortController();
  let isToldOfPlainClient = false;
  const onPlainClient = (address: string) => {
    // The monitor is opened before the ranks start, so an earlier client is not a rank.
    if (isToldOfPlainClient || !monitor) return;
    isToldOfPlainClient = true;
    monitor.say(plainClient(address, where.maxNodes > 1));
  };
  const { runId, elastic } = options;
  const facts = { runId, isPython: program.isPython === true, elastic, onPlainClient };
  const meeting = await openMeeting(where, facts, process.env);
  try {
    logs = await openLogFiles(options.output, nproc, meeting.runId, program.isNode);
    monitor = await openMonitor(options.live, meeting, [script, ...scriptArgs].join(' '), write);
    const setup = { options, signals, machine, program, member, bindings, monitor, ending };
    const outcome = await takePartInJob(setup, meeting, logs);
    monitor.finish(outcome);
    explain(outcome, meeting.isHost || outcome.blamed === member.id, monitor.say);
    return outcome.exitCode;
  } finally {
    await monitor?.close();
    logs?.close();
    await meeting.close();
    await monitor?.stay(ending.signal);
  }
}

async function takePartInJob(setup: Setup, meeting: Meeting, logs: LogFiles): Promise<Outcome> {
  const { member, options, monitor, ending } = setup;
  const { store, where, isHost } = meeting;
  const { maxNodes, keepAliveMs: everyMs, keepAliveAttempts: attempts } = options.meeting;
  const keepAlive = maxNodes > 1 ? { everyMs, attempts } : null;
  const { maxRestarts, elastic } = options;
  const own = { ...options.meeting, self: member.id, maxRestarts, settle: settleTimes };
  const ranks = elastic && elasticStore(meeting.runId, await meeting.rankStore());
  const { say } = monitor;
  const standby =
    ranks && elastic && keepAlive
      ? await openStandby(meeting, {
          maxRanks: elastic.maxRanks,
          keepAlive,
          onMove: (address) => say(movedHere(address)),
          onView: monitor.sayView,
        })
      : null;
  const elasticSetup = elastic && ranks && { limits: elastic, store: ranks, onView: monitor.showView };
  const coordination = isHost && coordinate(store, own, keepAlive, elasticSetup);
  // The launcher that keeps the store follows the views anyway, because its coordinator uses them.
  const stores = ranks && !isHost ? new RankStores(ranks, meeting, monitor.showView) : null;
  const start: ParticipantOptions['start'] = (order, onFailure, clockOffsetNs) => {
    monitor.startRound(order, clockOffsetNs);
    return startRound(setup, meeting, logs, order, onFailure);
  };
  const slots =
    elastic && ranks
      ? slotHosting({ ...setup, meeting, logs, ranks, stores, elastic, standby: standby?.address ?? null })
      : undefined;
  const join = (at: Pick<ParticipantOptions, 'store' | 'where'>) =>
    takePart({
      ...{ member, ...at, keepAlive: isHost ? null : keepAlive, say, start, slots, maxRestarts },
      ...(stores && {
        goesOn: () => {
          stores.loseFirst();
          if (stores.view === null) return false;
          sayWhere(stores, standby?.address ?? null, setup);
          return true;
        },
      }),
    });
  let at = { store, where };
  let participant = join(at);
  const stopped = passOnSignals(() => participant, setup.signals, ending, say);
  let outcome: Outcome | null = null;
  try {
    while (outcome === null) {
      try {
        outcome = await participant.outcome;
      } catch (error) {
        // A host that waits for a slot continues to wait in the store to which the job has moved.
        if (!stores || !isStoreLost(error) || participant.hasSlots()) throw error;
        const hasMoved = await stores.follow(ending.signal).catch(() => false);
        const signal = stopped();
        if (signal !== null) outcome = stoppedBy(signal, member.id);
        else {
          const moved = stores.movedStore;
          if (!hasMoved || moved === null || moved === at.store) throw error;
          const lost = at.where;
          at = { store: moved, where: whereIs({ ...meeting, ...stores.movedTo }) };
          say(waitsElsewhere(lost, at.where));
          participant = join(at);
        }
      }
    }
  } finally {
    await stores?.close();
    await standby?.close(outcome);
  }
  if (coordination) await coordination.close();
  return outcome;
}

/**
 * Prints the address of the store to which the job has moved, as soon as it has moved. The launcher that keeps that
 * store, at `own`, prints it itself.
 */
function sayWhere(stores: RankStores, own: string | null, { monitor, ending }: Setup): void {
  const following = stores.follow(ending.signal).then((hasMoved) => {
    const { masterAddr, masterPort } = stores.movedTo;
    const address = `${masterAddr}:${masterPort}`;
    if (hasMoved && masterAddr !== undefined && address !== own) monitor.say(movedThere(address));
  });
  // If there is no other store, the ranks end, and their errors report it.
  following.catch(() => {});
}

async function startRound(
  { options, machine, program, member, bindings, monitor }: Setup,
  meeting: Meeting,
  logs: LogFiles,
  order: StartOrder,
  onFailure: (isSecondary: boolean) => void,
): Promise<Job> {
  const { round, firstRank, worldSize, groupRank, groupWorldSize, why } = order;
  if (why) {
    const size = `${worldSize} rank${worldSize > 1 ? 's' : ''} on ${groupWorldSize} host${groupWorldSize > 1 ? 's' : ''}`;
    monitor.say(`starting all ranks again, ${size}; ${why}`);
  }
  const share = { nproc: member.nproc, firstRank, worldSize, groupRank, groupWorldSize };
  const facts = { role: options.role, restartCount: round, maxRestarts: options.maxRestarts };
  const extras = (local: number) => logs.forRank(round, local, monitor.say);
  const specs = planRanks(share, program, await meeting.forRound(round), machine, facts, extras, bindings);
  const { shutdownTimeoutMs } = options;
  return await startJob(specs, { shutdownTimeoutMs, host: member.host, onFailure, ...outputsOf(monitor) });
}

// Enables colours in a rank if this process prints to a terminal; the rank itself prints into a pipe and would not use
// them.
function rankColors(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isDecided = env.FORCE_COLOR !== undefined || env.NO_COLOR !== undefined;
  return process.stdout.isTTY && !isDecided ? { ...env, FORCE_COLOR: '1' } : env;
}

/** Forwards signals to the participant. Returns a function that returns the last signal; null if there was none. */
function passOnSignals(
  participant: () => Participant,
  signals: readonly NodeJS.Signals[],
  ending: AbortController,
  say: Monitor['say'],
): () => NodeJS.Signals | null {
  let last: NodeJS.Signals | null = null;
  const interrupt = (signal: NodeJS.Signals) => {
    last = signal;
    ending.abort();
    participant().interrupt(signal);
  };
  for (const signal of signals) process.on(signal, () => interrupt(signal));
  // The reader of the output is gone, as in `ringwise run … | head`, or the disk of its file is full.
  onOutputError((_, what) => {
    say(`${what}; the job is stopped.`);
    interrupt('SIGTERM');
  });
  return () => last;
}

/**
 * Prints the whole report on the host of the failure and on the host that keeps the store, and only its first line on
 * the other hosts.
 */
function explain({ text }: Outcome, isWhole: boolean, say: Monitor['say']): void {
  if (text === null) return;
  const [first, ...details] = text.split('\n') as [string, ...string[]];
  say([styled('stderr', 'red', first), ...(isWhole ? details : [])].join('\n'));
}
