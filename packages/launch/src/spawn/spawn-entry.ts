// The program of a rank of spawn(): receives one call from its parent, makes it, sends the result, and exits.

import { type EventEmitter, once } from 'node:events';
import { flushOutput } from '../cli/terminal.ts';
import { type Call, makeCall, packReply, sendReply } from './call.ts';

const [call] = (await once(process, 'message')) as [Call];
try {
  const reply = await makeCall(call);
  // The result and the output may not have been written yet when the calls return.
  await sendReply(
    reply,
    (sent) =>
      new Promise<void>((resolve, reject) => {
        process.send!(packReply(sent), (error: Error | null) => (error ? reject(error) : resolve()));
      }),
  );
  await flushOutput();
  process.exit();
} catch (error) {
  // rank.ts reports it like an uncaught error, but Node.js does not print it: the parent rejects with it.
  (process as EventEmitter).emit('uncaughtExceptionMonitor', error);
  await flushOutput();
  process.exit(1);
}
