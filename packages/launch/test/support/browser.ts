// Drives a headless Chromium over its debugging pipe, whose messages are JSON ended by a zero byte. Needs no library.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** Path of the first Chromium or Chrome in PATH; undefined if there is none. */
export const chromium = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));

interface Answer {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

export class Browser {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #count = 0;

  private constructor(child: ChildProcess, folder: string) {
    this.#process = child;
    this.#folder = folder;
    let partial = '';
    (child.stdio[4] as Readable).setEncoding('utf8').on('data', (text: string) => {
      const messages = (partial + text).split('\0');
      partial = messages.pop()!;
      for (const message of messages) {
        const answer = JSON.parse(message) as Answer;
        if (answer.id !== undefined) this.#waiting.get(answer.id)?.(answer);
      }
    });
  }

  static async start(): Promise<Browser> {
    const folder = mkdtempSync(join(tmpdir(), 'ringwise-browser-'));
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run'];
    const pipes = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] as const;
    const child = spawn(
      chromium!,
      [...flags, '--disable-dev-shm-usage', '--remote-debugging-pipe', `--user-data-dir=${folder}`],
      // A killed Chromium leaves temporary folders behind; `close` removes them with this folder.
      { stdio: [...pipes], detached: true, env: { ...process.env, TMPDIR: folder } },
    );
    await once(child, 'spawn');
    return new Browser(child, folder);
  }

  /** Opens a page in a window of this size. */
  async open(url: string, width: number, height: number): Promise<Page> {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId as string);
    await page.resize(width, height);
    await page.send('Page.navigate', { url });
    await page.until(`location.href !== 'about:blank' && document.readyState === 'complete'`);
    return page;
  }

  async send(
    method: string,
    params: Record<string, unknown>,
    sessionId?: string,
  ): Promise<Record<string, unknown>> {
    const id = ++this.#count;
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    (this.#process.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    const { result, error } = await answered;
    this.#waiting.delete(id);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result!;
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    process.kill(-this.#process.pid!, 'SIGKILL');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

export class Page {
  readonly #browser: Browser;
  readonly #session: string;

  constructor(browser: Browser, session: string) {
    this.#browser = browser;
    this.#session = session;
  }

  send(method: string, params: Record<string, unknown> = {}) {
    return this.#browser.send(method, params, this.#session);
  }

  resize(width: number, height: number) {
    return this.send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: false,
    });
  }

  setColorScheme(value: 'light' | 'dark') {
    return this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
  }

  /** Evaluates an expression in the page and returns its value, which must be representable as JSON. */
  async evaluate<Value>(expression: string): Promise<Value> {
    const answer = await this.send('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    const { result, exceptionDetails } = answer as {
      result: { value: Value };
      exceptionDetails?: { exception?: { description?: string } };
    };
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? expression);
    return result.value;
  }

  /** Polls until the expression is true; throws at the deadline. */
  async until(expression: string, deadlineMs = 20_000): Promise<void> {
    const endMs = performance.now() + deadlineMs;
    while (!(await this.evaluate<boolean>(`Boolean(${expression})`))) {
      if (performance.now() > endMs) throw new Error(`${expression}: not within ${deadlineMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Returns a PNG of the whole page, which may be higher than the window. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(data as string, 'base64');
  }
}
