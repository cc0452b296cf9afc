// Matches sends with receives: keeps messages that wait for a receive and receives that wait for a message.
import type { Recv, Send } from '../backend.ts';

interface Posted<O> {
  /** The rank that has called the operation. */
  readonly rank: number;
  readonly operation: O;
}

type Sent = Posted<Pick<Send, 'peer' | 'tag'>>;

export class Mailbox<S extends Sent, R extends Posted<Recv>> {
  readonly #sends: S[] = [];
  readonly #recvs: R[] = [];

  send(entry: S): void {
    this.#sends.push(entry);
  }

  recv(entry: R): void {
    this.#recvs.push(entry);
  }

  /** Removes and yields matching pairs: for each receive, in call order, the first message that matches. */
  *pairs(): Generator<readonly [S, R]> {
    for (const recv of [...this.#recvs]) {
      const send = this.#sends.find((candidate) => fits(candidate, recv));
      if (send === undefined) continue;
      this.#sends.splice(this.#sends.indexOf(send), 1);
      this.#recvs.splice(this.#recvs.indexOf(recv), 1);
      yield [send, recv];
    }
  }

  clear(): void {
    this.#sends.length = 0;
    this.#recvs.length = 0;
  }
}

function fits(send: Sent, recv: Posted<Recv>): boolean {
  return (
    send.operation.peer === recv.rank &&
    send.operation.tag === recv.operation.tag &&
    (recv.operation.peer === -1 || recv.operation.peer === send.rank)
  );
}
