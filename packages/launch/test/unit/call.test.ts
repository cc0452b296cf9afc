import { expect, it } from 'vitest';
import { packReply, replyOf, sendReply, unpackReply } from '../../src/spawn/call.ts';

it('packs a result of several kinds', () => {
  const result = { map: new Map([[1, new Set(['a'])]]), floats: new Float32Array([1, 2]), big: 5n };
  expect(unpackReply(packReply(replyOf(result))).result).toEqual(result);
});

it('refuses a result that is too long for a message, which would end the process that receives it', async () => {
  const reply = replyOf(new Uint8Array(100));
  const sending = sendReply(reply, (sent) => void packReply(sent, 64));
  await expect(sending).rejects.toThrow(
    /cannot be sent to the caller: it takes 1\d\d bytes, expected at most 64\. Return less, and write the rest into a file\.$/,
  );
});
