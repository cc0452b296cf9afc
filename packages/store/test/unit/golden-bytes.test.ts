// Compares our server, row by row, with the transcript of a raw client and the TCPStore server of torch 2.13, and with
// the same rows in the numbering of torch 1.13.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { type StoreServer, serveStore } from '../../src/index.ts';
import { bytesOf, RawClient } from '../support/raw-client.ts';

let server: StoreServer;
beforeEach(async () => {
  server = await serveStore();
});
afterEach(() => server.close());

// [request, bytes sent, reply]; the rows marked 'old' exist in torch 1.13 too, where types 1 to 7 are one lower.
const rows: readonly (readonly [name: string, sent: string, reply: string, isOld?: 'old'])[] = [
  ['validate', '00 cef7853c', ''],
  ['ping', '0d 04030201', '04030201'],
  ['set /a = "hi"', '01 ⟨2⟩ 2f61 ⟨2⟩ 6869', '', 'old'],
  ['get /a', '03 ⟨2⟩ 2f61', '⟨2⟩ 6869', 'old'],
  ['add /n, 5', '04 ⟨2⟩ 2f6e ⟨5⟩', '⟨5⟩', 'old'],
  ['get /n', '03 ⟨2⟩ 2f6e', '⟨1⟩ 35', 'old'],
  ['check /a', '05 ⟨1⟩ ⟨2⟩ 2f61', '00', 'old'],
  ['check /a /zz', '05 ⟨2⟩ ⟨2⟩ 2f61 ⟨3⟩ 2f7a7a', '01', 'old'],
  ['wait /a /n', '06 ⟨2⟩ ⟨2⟩ 2f61 ⟨2⟩ 2f6e', '00', 'old'],
  ['compare_set hi to yo', '02 ⟨2⟩ 2f61 ⟨2⟩ 6869 ⟨2⟩ 796f', '⟨2⟩ 796f', 'old'],
  ['compare_set, mismatch', '02 ⟨2⟩ 2f61 ⟨2⟩ 6869 ⟨2⟩ 6e6f', '⟨2⟩ 796f', 'old'],
  ['compare_set, absent', '02 ⟨4⟩ 2f6e6577 ⟨1⟩ 78 ⟨1⟩ 79', '⟨1⟩ 78', 'old'],
  ['num_keys', '07', '⟨2⟩', 'old'],
  ['delete /a', '08 ⟨2⟩ 2f61', '⟨1⟩', 'old'],
  ['delete /a again', '08 ⟨2⟩ 2f61', '⟨0⟩', 'old'],
  ['append ab', '09 ⟨2⟩ 2f70 ⟨2⟩ 6162', ''],
  ['append cd', '09 ⟨2⟩ 2f70 ⟨2⟩ 6364', ''],
  ['multi_set', '0b ⟨2⟩ ⟨2⟩ 2f78 ⟨1⟩ 31 ⟨2⟩ 2f79 ⟨2⟩ 3232', ''],
  ['multi_get', '0a ⟨3⟩ ⟨2⟩ 2f78 ⟨2⟩ 2f79 ⟨2⟩ 2f70', '⟨1⟩ 31 ⟨2⟩ 3232 ⟨4⟩ 61626364'],
  ['wait /never', '06 ⟨1⟩ ⟨6⟩ 2f6e65766572', ''],
  ['cancel_wait', '0c', '01'],
  ['queue_push', '0e ⟨2⟩ 2f71 ⟨1⟩ 76', ''],
  ['check a queue', '05 ⟨1⟩ ⟨2⟩ 2f71', '00'],
  ['queue_len', '10 ⟨2⟩ 2f71', '⟨1⟩'],
  ['queue_pop', '0f ⟨2⟩ 2f71', '⟨1⟩ ⟨1⟩ 76'],
  ['queue_pop, empty', '0f ⟨2⟩ 2f71', '⟨0⟩'],
  ['check the empty queue', '05 ⟨1⟩ ⟨2⟩ 2f71', '01'],
  ['list_keys', '11', '⟨4⟩ ⟨2⟩ 2f6e ⟨2⟩ 2f70 ⟨2⟩ 2f78 ⟨2⟩ 2f79'],
  ['barrier of one', '12 ⟨2⟩ 2f62 ⟨1⟩', '00'],
];

function agreed(reply: string) {
  const hex = bytesOf(reply).toString('hex');
  return { got: hex, expected: hex };
}

it('answers each request of torch 2.4 and newer with the bytes of torch 2.13', async () => {
  const client = await RawClient.connect(server);
  for (const [name, sent, reply] of rows) {
    const { got, expected } = await client.ask(sent, reply);
    expect(got, name).toBe(expected);
  }
  expect((await client.ask('0d 01020304', '01020304')).got).toBe('01020304');
  expect(client.untaken).toBe(0);
});

it('answers the same bytes when they come one at a time, and all at once', async () => {
  const sent = bytesOf(rows.map((row) => row[1]).join(''));
  const expected = bytesOf(rows.map((row) => row[2]).join('')).toString('hex');
  const whole = await RawClient.connect(server);
  whole.socket.write(sent);
  expect(await whole.take(expected.length / 2)).toBe(expected);
  await server.close();

  server = await serveStore();
  const dripping = await RawClient.connect(server);
  for (const byte of sent) {
    dripping.socket.write(Buffer.of(byte));
    await new Promise(setImmediate);
  }
  expect(await dripping.take(expected.length / 2)).toBe(expected);
});

it('answers torch 1.13 in its own numbering, beside newer clients', async () => {
  const old = await RawClient.connect(server);
  const current = await RawClient.connect(server);
  current.send('00 cef7853c');
  // The first requests of that version: the start-up counter, and a watch that may stay idle.
  expect(await old.ask('03 ⟨5⟩ 696e69742f ⟨1⟩', '⟨1⟩')).toEqual(agreed('⟨1⟩'));
  expect(await current.ask('04 ⟨5⟩ 696e69742f ⟨1⟩', '⟨2⟩')).toEqual(agreed('⟨2⟩'));
  expect(await old.ask('07 ⟨2⟩ 2f61 02 ⟨5⟩ 696e69742f', '⟨1⟩ 32')).toEqual(agreed('⟨1⟩ 32'));
});

it('recognises a first SET of torch 1.13, whose type byte is that of validate', async () => {
  const old = await RawClient.connect(server);
  for (const [name, sent, reply, isOld] of rows) {
    if (!isOld) continue;
    const type = Number.parseInt(sent.slice(0, 2), 16);
    const renumbered = type < 8 ? `0${type - 1}${sent.slice(2)}` : sent;
    const { got, expected } = await old.ask(renumbered, reply);
    expect(got, name).toBe(expected);
  }
});
