import { once } from 'node:events';
import { get, type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Feed } from '../../../src/monitor/feed.ts';
import { prometheusText } from '../../../src/monitor/files/prometheus.ts';
import { JobView } from '../../../src/monitor/job-view.ts';
import { serveUi, type UiServer } from '../../../src/monitor/ui-server.ts';
import { until } from '../../support/command.ts';

const token = '0123456789abcdef';
let view: JobView;
let feed: Feed;
let server: UiServer;
let port: number;

beforeEach(async () => {
  view = new JobView(0);
  view.startRound(1, 1, 0, null);
  view.handle({ kind: 'started', rank: 0, host: 'a', pid: 1 });
  feed = new Feed(view, 'train.ts');
  const sources = { whole: () => feed.whole(0), prometheus: () => prometheusText(view) };
  server = await serveUi({ host: '127.0.0.1', port: 0 }, sources, token);
  port = Number(new URL(server.url).port);
});

afterEach(() => server.close());

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request whose path reaches the server as given, without normalisation. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, headers, method }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    });
    sent.on('error', reject).end();
  });
}

const statusOf = async (...args: Parameters<typeof ask>) => (await ask(...args)).status;

/** Opens a connection that sends only `bytes`: nothing, or the beginning of a request. */
async function silent(bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

describe('connections without a request', () => {
  it('are few, keep nobody out, and are closed', async () => {
    const sockets: Socket[] = [];
    for (let count = 0; count < 600; count++) {
      sockets.push(await silent(['', 'G', `GET /${token.slice(1)}/ HT`][count % 3]!));
    }
    const open = () => sockets.filter(({ closed }) => !closed).length;
    await until('most are closed', () => open() <= 64);
    expect(await statusOf(`/${token}/`)).toBe(200);
    await until('all are closed', () => open() === 0);
  });
});

describe('the live page', () => {
  it('and all that it needs lies below its token', async () => {
    const page = await ask(`/${token}/`);
    expect(page.status).toBe(200);
    const names = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name!);
    expect(names).toEqual(expect.arrayContaining(['page.js', 'style.css']));
    for (const name of names.filter((name) => !name.startsWith('data:'))) {
      const { status, headers, body } = await ask(`/${token}/${name}`);
      expect([status, headers['content-type']]).toEqual([
        200,
        name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8',
      ]);
      for (const [, module] of body.matchAll(/from '\.\/([\w-]+\.js)'/g)) {
        expect(await statusOf(`/${token}/${module}`)).toBe(200);
      }
    }
  });

  it('loads nothing from elsewhere, and may not be framed', async () => {
    const { headers, body } = await ask(`/${token}/`);
    expect(body).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(headers['referrer-policy']).toBe('no-referrer');
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
  });

  it('refuses a missing or wrong token, whatever is asked for', async () => {
    for (const path of ['/', '/page.js', '/events', '/metrics', '/?token=x', `/${token}`, `/${token}x/`]) {
      expect([path, await statusOf(path)]).toEqual([path, 403]);
    }
    const wrong = token.replace('0', '1');
    expect(await statusOf(`/${wrong}/events`)).toBe(403);
    expect(await statusOf(`/${token.slice(1)}/events`)).toBe(403);
    expect((await ask(`/${wrong}/metrics`)).body).not.toContain('ringwise_');
  });

  it('refuses other origins, also with the token', async () => {
    const of = (Origin: string) => statusOf(`/${token}/metrics`, { Origin });
    expect(await of('https://evil.example')).toBe(403);
    expect(await of(`http://localhost.evil.example:${port}`)).toBe(403);
    expect(await of('http://127.0.0.1:1')).toBe(403);
    expect(await of('null')).toBe(403);
    expect(await of(`http://127.0.0.1:${port}`)).toBe(200);
  });

  it('refuses names that another name server may have pointed here', async () => {
    const of = (Host: string) => statusOf(`/${token}/`, { Host });
    for (const name of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
    ]) {
      expect([name, await of(name)]).toEqual([name, 403]);
    }
    for (const name of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      expect([name, await of(name)]).toEqual([name, 200]);
    }
  });

  it('gives no other file, however the path is written', async () => {
    const paths = [
      '../package.json',
      '../../../../../../etc/passwd',
      '%2e%2e/package.json',
      '..%2fpackage.json',
      '..\\package.json',
      'page.js/../../index.js',
      './page.js',
      'package.json',
      '__proto__',
      'page.js%00.html',
    ];
    for (const path of paths) expect([path, await statusOf(`/${token}/${path}`)]).toEqual([path, 404]);
    expect(await statusOf(`/../${token}/`)).toBe(403);
  });

  it('takes nothing but GET', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(await statusOf(`/${token}/`, {}, method)).toBe(405);
    }
  });

  it('goes on after bytes that are not HTTP', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    socket.end('\0\x01\xff'.repeat(1000));
    await closed;
    expect(await statusOf(`/${token}/`)).toBe(200);
  });

  it('has Prometheus text for clients with the token', async () => {
    const { headers, body } = await ask(`/${token}/metrics`);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4');
    expect(body).toContain('ringwise_world_size 1\n');
  });
});

describe('its events', () => {
  it('are everything at first, then what is sent, to the end', async () => {
    const messages: { isWhole: boolean; lines: { text: string }[]; job: { end: unknown } }[] = [];
    let hasEnded = false;
    view.handle({ kind: 'line', rank: 0, text: 'one\ndata: {"isWhole":true}' });
    get(`${server.url}events`, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        const parts = (text + chunk).split('\n\n');
        text = parts.pop()!;
        messages.push(...parts.map((part) => JSON.parse(part.slice('data: '.length))));
      });
      response.on('end', () => {
        hasEnded = true;
      });
    });
    await until('the first message', () => messages.length === 1);
    feed.changes(0);
    view.handle({ kind: 'line', rank: 0, text: '</script><b>two' });
    view.finish(3, 'rank 0 failed', 10);
    server.send(feed.changes(10));
    await server.close();
    await until('the end', () => hasEnded);
    expect(messages.map(({ isWhole, lines }) => [isWhole, lines.map(({ text }) => text)])).toEqual([
      [true, ['one\ndata: {"isWhole":true}']],
      [false, ['</script><b>two']],
    ]);
    expect(messages[1]!.job.end).toEqual({ exitCode: 3, text: 'rank 0 failed', culprit: null });
  });

  it('go to a bounded number of readers, and a slow one is cut off', async () => {
    const slow = connect(port, '127.0.0.1');
    slow.on('error', () => {});
    let isCut = false;
    slow.once('close', () => {
      isCut = true;
    });
    slow.pause();
    slow.write(`GET /${token}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await until('the reader', () => server.hasReaders());
    const lines = Array.from({ length: 1_000 }, (_, number) => ({
      rank: 0,
      number,
      text: 'x'.repeat(1_000),
    }));
    const message = { ...feed.changes(0), lines };
    // Each message is about 1 MB. The kernel buffers the first ones, then the server reaches its limit per reader.
    for (let i = 0; i < 64 && server.hasReaders(); i++) {
      server.send(message);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(server.hasReaders()).toBe(false);
    slow.resume();
    await until('the cut', () => isCut);

    const readers = Array.from({ length: 32 }, () => get(`${server.url}events`));
    await Promise.all(readers.map((reader) => new Promise((resolve) => reader.once('response', resolve))));
    expect(await statusOf(`/${token}/events`)).toBe(503);
    for (const reader of readers) reader.destroy();
  });
});
