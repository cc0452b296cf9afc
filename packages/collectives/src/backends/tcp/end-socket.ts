import type { Socket } from 'node:net';

/** Stops sending on a socket after all earlier data. Resolves when it has left this process, or cannot be sent. */
export function endSocket(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  // A socket that is destroyed does not call back.
  return new Promise((resolve) => void socket.once('close', () => resolve()).end(() => resolve()));
}
