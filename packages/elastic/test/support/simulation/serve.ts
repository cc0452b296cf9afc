// How the store of a simulated host answers: each request takes its time, and answers come after those before them.
import type { Input } from '../../../src/membership/protocol/machine.ts';
import type { SimMember } from './parts.ts';
import type { Request } from './store.ts';
import type { World } from './world.ts';

/** Executes the request of a member at the store of host `at`, and sends the answers. */
export function serve(world: World, member: number, request: Request, at: number): void {
  const { store, isLost } = world.hosts[at]!;
  if (isLost) return;
  const users = (call: (each: SimMember, member: number) => void) =>
    world.members.forEach((each, index) => {
      if (each.store === at) call(each, index);
    });
  const operations = store.operationsOf(request);
  store.operations += operations;
  world.storeFreeAtMs =
    Math.max(world.storeFreeAtMs, world.nowMs) + operations * world.options.timing.serviceMs;
  const answer = (input: Input, to = member) => reply(world, to, request.kind, input, at);
  switch (request.kind) {
    case 'wish': {
      store.wishes.push(request.wish);
      wakeWishWatchers(world, at);
      const head = store.views[store.head] ?? store.views[0] ?? null;
      answer({ kind: 'wished', wishNumber: store.wishes.length, head });
      return;
    }
    case 'report': {
      const { view } = request.report;
      store.reports[view] ??= [];
      store.reports[view].push(request.report);
      users((each, other) => {
        if (each.watchedOver !== view) return;
        each.watchedOver = null;
        reply(world, other, 'watch over', { kind: 'over' }, at);
      });
      return;
    }
    case 'open':
      answer({ kind: 'opened', view: store.open(request.view) });
      return;
    case 'propose': {
      const isNew = store.views[request.view.number] === undefined;
      const view = store.propose(request.view);
      answer({ kind: 'view', view });
      if (isNew) {
        users((each, other) => {
          if (each.watchedView === null || each.watchedView + 1 !== view.number) return;
          each.watchedView = null;
          reply(world, other, 'watch view', { kind: 'view', view }, at);
        });
      }
      return;
    }
    case 'read':
      answer({ kind: 'read', reading: store.read(request) });
      return;
    case 'announce':
      store.head = Math.max(store.head, request.view);
      return;
    case 'ended':
      store.ended.add(request.id);
      return;
    case 'watch view': {
      const view = store.after(request.after);
      if (view === null) world.members[member]!.watchedView = request.after;
      else answer({ kind: 'view', view });
      return;
    }
    case 'watch over':
      if (store.reports[request.view] === undefined) world.members[member]!.watchedOver = request.view;
      else answer({ kind: 'over' });
      return;
    case 'watch wish':
      world.members[member]!.watchedWish = request.after;
      wakeWishWatchers(world, at);
      return;
    default:
      return;
  }
}

function wakeWishWatchers(world: World, at: number): void {
  const { wishes } = world.hosts[at]!.store;
  world.members.forEach((each, other) => {
    if (each.store !== at || each.watchedWish === null || wishes.length <= each.watchedWish) return;
    each.watchedWish = null;
    const view = each.machine.view?.number ?? -1;
    world.later(other, world.options.timing.messageMs(), { kind: 'wish seen', view });
  });
}

function reply(world: World, to: number, request: Request['kind'], input: Input, store: number): void {
  if (!world.reaches(to, store)) return;
  const waitMs = Math.max(0, world.storeFreeAtMs - world.nowMs);
  world.later(to, waitMs + world.options.timing.messageMs(), { kind: 'answer', request, input, store });
}
