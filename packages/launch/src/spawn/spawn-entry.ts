// What a rank of spawn() runs: takes one call from its parent, makes it, sends the result, and ends.

import { type EventEmitter, once } from 'node:events';
import { flushOutput } from '../cli/terminal.ts';
import { type Call, makeCall } from './call.ts';

const [call] = (await once(process, 'message')) as [Call];
try {
  const reply = await makeCall(call);
  // Both the result and the output may still be on their way when the calls return.
  await new Promise((resolve) => process.send!(reply, resolve));
  await flushOutput();
  process.exit();
} catch (error) {
  // To rank.ts this is an uncaught error, but node does not print it: the parent rejects with it.
  (process as EventEmitter).emit('uncaughtExceptionMonitor', error);
  await flushOutput();
  process.exit(1);
}
