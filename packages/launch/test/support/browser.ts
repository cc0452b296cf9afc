// A headless Chromium for tests of the live page, and what they ask of a page.

import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type Browser, type Page, chromium as playwright } from 'playwright-core';
import { afterEach, beforeEach, describe } from 'vitest';
import { type Command, until as untilCommand } from './command.ts';

/** Path of the first Chromium or Chrome in PATH; undefined if there is none. */
const chromium = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));

const quiet = ['background-networking', 'component-update', 'sync', 'gpu', 'quic', 'dev-shm-usage'];

/** Describes tests that need a browser. Without one they are skipped, and the title says why. */
export function describeInBrowser(title: string, tests: () => void): void {
  if (chromium) describe(title, tests);
  else describe.skip(`${title} (skipped: no chromium, chromium-browser or google-chrome in PATH)`, tests);
}

let browser: Browser;

/** Starts a browser before each test of the calling file, and ends it afterwards. */
export function withBrowser(): void {
  beforeEach(async () => {
    const args = ['--no-first-run', ...quiet.map((name) => `--disable-${name}`)];
    browser = await playwright.launch({ executablePath: chromium!, args });
  });
  afterEach(() => browser.close());
}

export interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
  readonly reducedMotion?: 'reduce' | 'no-preference';
}

/** A page, and what went wrong in it: errors of its script, its console's errors, and requests to other places. */
export interface Opened {
  readonly page: Page;
  readonly problems: string[];
}

/** Opens an address in a page of its own. */
export async function open(url: string, look: Look = {}): Promise<Opened> {
  const { width = 1280, height = 900, ...media } = look;
  const page = await browser.newPage({ viewport: { width, height }, ...media });
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  page.on('request', (request) => {
    const isOwn =
      new URL('.', request.url()).href === new URL('.', url).href || request.url().startsWith('data:');
    if (!isOwn) problems.push(`request to ${request.url()}`);
  });
  await page.goto(url);
  return { page, problems };
}

/** Opens the live page whose address the command prints. */
export async function openLive(command: Command, look?: Look): Promise<Opened> {
  await untilCommand('the address', () => /live page at http\S+\n/.test(command.out.stderr));
  return await open(/live page at (http\S+)/.exec(command.out.stderr)![1]!, look);
}

/** Polls until the expression is true in the page; throws at the deadline. */
export async function until(page: Page, expression: string, deadlineMs = 120_000): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!(await page.evaluate(`Boolean(${expression})`))) {
    if (performance.now() > endMs) throw new Error(`${expression}: not within ${deadlineMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Returns the texts of all elements that match. */
export const texts = (page: Page, selector: string) => page.locator(selector).allTextContents();

/** Returns what axe finds wrong with the page as it is now: the rule, and the elements that break it. */
export async function axeViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`,
  );
}

/** Returns an expression that counts the pixels of a canvas in the colour of a custom property of the page. */
export const pixelsOf = (color: string, canvas = '#timeline') => `(() => {
  const canvas = document.querySelector('${canvas}');
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--${color}').trim();
  probe.fillRect(0, 0, 1, 1);
  const wanted = [...probe.getImageData(0, 0, 1, 1).data].join();
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data.slice(i, i + 4).join() === wanted;
  return count;
})()`;

/** Writes a picture into the folder that RINGWISE_SCREENSHOTS names, if it is set. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.RINGWISE_SCREENSHOTS;
  if (folder) writeFileSync(join(folder, `${name}.png`), await page.screenshot({ fullPage: true }));
}
