// Moves the optimizer state of parameters between ranks, in messages of limited size.
import type { Group } from '@ringwise/collectives';
import type { Move } from './assignment.ts';
import type { ParamStateOf, SavedTensor } from './state.ts';

/** Bytes after which a message ends. A message with a single parameter may be larger. */
const messageBytes = 32 << 20;

interface Message {
  readonly states: readonly (readonly [position: number, state: ParamStateOf<SavedTensor>])[];
  readonly isLast: boolean;
}

/**
 * Makes the transfers in `moves`, the same list on all ranks of `group`. `read` returns the state of a parameter that
 * this rank has; `take` receives each state that arrives. Collective. Resolves when this rank has sent and received
 * everything.
 */
export async function move(
  moves: readonly Move[],
  group: Group,
  read: (position: number) => ParamStateOf<SavedTensor>,
  take: (position: number, state: ParamStateOf<SavedTensor>) => void,
): Promise<void> {
  const { rank, size } = group;
  const others = Array.from({ length: size }, (_, other) => other).filter((other) => other !== rank);
  const send = async (to: number) => {
    const positions = moves
      .filter((each) => each.from === rank && each.to === to)
      .map((each) => each.position);
    while (positions.length > 0) {
      const states: [number, ParamStateOf<SavedTensor>][] = [];
      for (let bytes = 0; positions.length > 0 && bytes < messageBytes; ) {
        const position = positions.shift()!;
        const state = read(position);
        states.push([position, state]);
        for (const { bytes: part } of Object.values(state.tensors)) bytes += part.length;
      }
      const message: Message = { states, isLast: positions.length === 0 };
      await group.sendObject(message, to);
    }
  };
  const receive = async (from: number) => {
    if (!moves.some((each) => each.from === from && each.to === rank)) return;
    for (let isLast = false; !isLast; ) {
      const { value } = await group.recvObject<Message>(from);
      for (const [position, state] of value.states) take(position, state);
      isLast = value.isLast;
    }
  };
  await Promise.all(others.flatMap((other) => [send(other), receive(other)]));
}
