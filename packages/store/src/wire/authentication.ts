// Authentication: both ends prove that they know the job's secret before anything else is parsed. This
// protects against other programs that reach the port. It does not encrypt what follows.
//
//   client → server   hello, 32-byte nonce c
//   server → client   hello, 32-byte nonce s
//   client → server   HMAC-SHA256(secret, "… client" + c + s)
//   server → client   hello, HMAC-SHA256(secret, "… server" + c + s)      or: denied, or busy; end of connection
//
// The label contains the role, so a proof cannot be sent back to its maker. The client proves first, so a client
// without the secret gets nothing to test guesses on. A false server does get the client's proof, so the secret must be
// random. No TCPStore request starts with the byte f7. A server without a secret therefore ends the connection at the
// hello, and a server with one recognizes a plain client, which is one without a secret, by its first byte.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { badArgument, malformed, secretDiffers, secretNeeded, secretUnknown, serverBusy } from '../errors.ts';
import type { Reading } from './byte-queue.ts';
import { pingNonce, typeByte } from './wire.ts';

/**
 * The secret of a job: text, or bytes. Both ends of a connection prove that they know it and never send
 * it.
 */
export type Secret = string | Uint8Array;
/** The server's answer to a client that cannot prove the secret. */
export const denied = Buffer.from('\xf7rwdeny1', 'latin1');
/** The server's answer, at any step of the authentication, if too many connections are: the client tries again. */
export const busy = Buffer.from('\xf7rwbusy1', 'latin1');
const hello = Buffer.from('\xf7rwauth1', 'latin1');
const nonceBytes = 32;
const proofBytes = 32;

function proofOf(
  role: 'client' | 'server',
  secret: Secret,
  clientNonce: Buffer,
  serverNonce: Buffer,
): Buffer {
  return createHmac('sha256', secret)
    .update(`ringwise store handshake 1 ${role}`)
    .update(clientNonce)
    .update(serverNonce)
    .digest();
}

/**
 * Authenticates a client, as the server. Returns 'plain' if the client begins like one without a secret.
 */
export function* admit(
  secret: Secret,
  write: (bytes: Buffer) => void,
): Reading<'admitted' | 'plain' | 'refused'> {
  const first = (yield 1)[0];
  if (first !== hello[0]) return first === typeByte('validate')[0] ? 'plain' : 'refused';
  for (const byte of hello.subarray(1)) if ((yield 1)[0] !== byte) return 'refused';
  const clientNonce = Buffer.from(yield nonceBytes);
  const serverNonce = randomBytes(nonceBytes);
  write(Buffer.concat([hello, serverNonce]));
  const proof = yield proofBytes;
  if (!timingSafeEqual(proof, proofOf('client', secret, clientNonce, serverNonce))) return 'refused';
  write(Buffer.concat([hello, proofOf('server', secret, clientNonce, serverNonce)]));
  return 'admitted';
}

/** Authenticates with a server, as the client. `request` sends bytes and parses the reply. */
export async function introduce(
  secret: Secret,
  where: string,
  request: <T>(bytes: Buffer, reply: Reading<T>) => Promise<T>,
): Promise<void> {
  const clientNonce = randomBytes(nonceBytes);
  const serverNonce = await request(Buffer.concat([hello, clientNonce]), readAfterHello(where, nonceBytes));
  const proof = await request(
    proofOf('client', secret, clientNonce, serverNonce),
    readAfterHello(where, proofBytes),
  );
  if (!timingSafeEqual(proof, proofOf('server', secret, clientNonce, serverNonce)))
    throw secretUnknown(where);
}

function* readAfterHello(where: string, bytes: number): Reading<Buffer> {
  const head = yield hello.length;
  if (head.equals(denied)) throw secretDiffers(where);
  if (head.equals(busy)) throw serverBusy(where);
  if (!head.equals(hello)) throw secretUnknown(where);
  return Buffer.from(yield bytes);
}

/** Parses the echo of a client's first ping. A server with a secret sends `denied` or `busy` instead. */
export function* readFirstEcho(where: string): Reading<void> {
  const echo = yield pingNonce.length;
  if (denied.subarray(0, echo.length).equals(echo)) throw secretNeeded(where);
  if (busy.subarray(0, echo.length).equals(echo)) throw serverBusy(where);
  if (!echo.equals(pingNonce)) throw malformed('echo of a ping', echo.toString('hex'));
}

export function checkSecret(verb: string, secret: unknown): void {
  if (secret === undefined) return;
  if ((typeof secret === 'string' || secret instanceof Uint8Array) && secret.length > 0) return;
  // The message must not contain the value.
  throw badArgument(
    verb,
    'secret to be a non-empty string or Uint8Array',
    `${typeof secret} without content`,
  );
}
