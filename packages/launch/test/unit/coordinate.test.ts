import { MemoryStore } from '@ringwise/store';
import { expect, it } from 'vitest';
import { boxOf, coordinatorBox, runCoordinator } from '../../src/rendezvous/coordinate.ts';
import type { Decider } from '../../src/rendezvous/coordinator.ts';
import { inbox, Outbox } from '../../src/rendezvous/mailbox.ts';
import { parseOrder } from '../../src/rendezvous/messages.ts';

/** A coordinator that knows one launcher and throws. */
class Broken implements Decider {
  readonly isFinished = false;
  readonly present = ['a'];
  readonly deadlineMs = Number.POSITIVE_INFINITY;

  handle(): void {
    throw new RangeError('a defect');
  }

  lost(): void {}

  tick(): void {}
}

it('an error in the coordinator ends the job on all launchers', async () => {
  const store = new MemoryStore();
  const coordination = runCoordinator(store, 'a', null, () => ({
    coordinator: new Broken(),
    lost: () => {},
  }));
  await new Outbox(store).post(coordinatorBox, { kind: 'bye', id: 'a' });
  const orders = inbox(store, boxOf('a'), parseOrder, new AbortController().signal);
  const { value: order } = await orders.next();
  expect(order).toMatchObject({
    kind: 'finish',
    outcome: {
      exitCode: 1,
      text: expect.stringMatching(/^the launcher cannot decide .*\n {2}RangeError: a defect/),
    },
  });
  await coordination.close();
  await store.close();
});
