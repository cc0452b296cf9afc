// Shows the live page of real ranks in a real browser. Screenshots go to the folder that RINGWISE_SCREENSHOTS names.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Browser, chromium, type Page } from '../../support/browser.ts';
import { type Command, ringwise, script, until } from '../../support/command.ts';

const library = new URL('../../../dist/index.js', import.meta.url).href;
let browser: Browser;

/** Returns a script that reports a step about every 30 ms, with timing as DDP measures it, and then runs `then`. */
const trains = (steps: number, then: string) => `import { reportMetrics } from '${library}';
  const rank = Number(process.env.RANK);
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  for (let step = 0; step < ${steps}; step++) {
    await pause(12);
    const beganMs = performance.now();
    await pause(12);
    const backwardMs = performance.now() - beganMs;
    await pause(6 + 4 * rank);
    const exposedMs = performance.now() - beganMs - backwardMs;
    const buckets = [{ launchedMs: 5, communicationMs: 4 }, { launchedMs: backwardMs, communicationMs: exposedMs }];
    const ddp = { beganMs, backwardMs, exposedMs, buckets };
    reportMetrics({ step, loss: 2.3 * Math.exp(-step / 60) + 0.1 * Math.random(), samples: 32, accuracy: 1 - 1 / (step + 1), ddp });
    if (step % 10 === 0) console.log('step ' + step + ' <img src=x onerror="document.title=1"> <b>bold</b>');
  }
  ${then}`;

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.RINGWISE_SCREENSHOTS;
  if (folder) writeFileSync(join(folder, `${name}.png`), await page.screenshot());
}

async function opened(command: Command, width = 1280, height = 900): Promise<Page> {
  await until('the address', () => /live page at http\S+\n/.test(command.out.stderr));
  return await browser.open(/live page at (http\S+)/.exec(command.out.stderr)![1]!, width, height);
}

/** Returns an expression that counts the pixels of the timeline in the color of this custom property of the page. */
const pixelsOf = (color: string) => `(() => {
  const canvas = document.getElementById('timeline');
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--${color}').trim();
  probe.fillRect(0, 0, 1, 1);
  const wanted = [...probe.getImageData(0, 0, 1, 1).data].join();
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) count += data.slice(i, i + 4).join() === wanted;
  return count;
})()`;

describe.skipIf(!chromium)('the live page in a browser', () => {
  beforeEach(async () => {
    browser = await Browser.start();
  });

  afterEach(() => browser.close());

  it('shows curves, ranks, a timeline and the output while a job runs, and how it ended', async () => {
    const file = script('train.mjs', trains(200, ''));
    const command = ringwise(['run', '--ui', '--nproc-per-node', '2', file, '--lr', '0.1']);
    const page = await opened(command);
    await page.until(`document.querySelectorAll('.curve canvas').length >= 3`);
    await page.until(`document.querySelectorAll('#ranks tr').length === 2`);
    await page.until(`document.querySelectorAll('#log div').length >= 8`);
    expect(await page.evaluate(`document.getElementById('title').textContent`)).toBe(`${file} --lr 0.1`);
    expect(
      await page.evaluate(`[...document.querySelectorAll('.curve')].map((curve) => curve.dataset.name)`),
    ).toEqual(['loss', 'samples/s', 'accuracy']);
    for (const color of ['backward', 'wait', 'bucket', 'step']) {
      await page.until(`${pixelsOf(color)} > 20`);
    }
    await page.until(`/^[\\d.]+ MiB$/.test(document.querySelector('#ranks td:nth-child(7)').textContent)`);
    await picture(page, 'running-light');
    await page.setColorScheme('dark');
    await picture(page, 'running-dark');
    await page.resize(400, 800);
    await page.until(`document.querySelector('.curve canvas').clientWidth < 400`);
    await page.until('document.documentElement.scrollWidth <= 400'); // the curves stack in one column
    await picture(page, 'running-400');

    await page.evaluate(`(() => {
      const select = document.getElementById('log-rank');
      select.value = '1';
      select.dispatchEvent(new Event('change'));
    })()`);
    const marks = `[...document.querySelectorAll('#log b')].map((b) => b.textContent)`;
    expect(new Set(await page.evaluate<string[]>(marks))).toEqual(new Set(['[1] ']));

    expect(await command.exitCode).toBe(0);
    await page.until(`document.getElementById('state').textContent === 'ended'`);
    expect(await page.evaluate(`document.getElementById('notice').textContent`)).toContain('ended well');
    // The page shows what ranks print as text: it makes no elements of it and runs no script in it.
    expect(await page.evaluate(`document.querySelectorAll('#log img').length`)).toBe(0);
    expect(await page.evaluate(`document.getElementById('log').textContent`)).toContain('<b>bold</b>');
    expect(await page.evaluate('document.title')).toBe('ended · ringwise');
  });

  it('tells which rank failed and why', async () => {
    const file = script(
      'fail.mjs',
      trains(
        60,
        `if (rank === 1) throw new RangeError('token <i>50304</i> is outside'); await pause(60_000);`,
      ),
    );
    const command = ringwise(['run', '--ui', '--nproc-per-node', '2', '--shutdown-timeout', '1', file]);
    const page = await opened(command);
    await page.until(`document.querySelectorAll('#log div').length >= 4`);
    expect(await command.exitCode).toBe(1);
    await page.until(`document.getElementById('state').textContent === 'failed'`);
    const notice = await page.evaluate<string>(`document.getElementById('notice').textContent`);
    expect(notice).toContain('rank 1 of 2 failed (exit code 1)');
    expect(notice).toContain('RangeError: token <i>50304</i> is outside');
    const states = `[...document.querySelectorAll('#ranks td:nth-child(2)')].map((cell) => cell.textContent)`;
    expect(await page.evaluate(states)).toEqual(['stopped: SIGTERM', 'failed: exit code 1']);
    await picture(page, 'failed');
  });

  it('says so when the launcher is gone without a word', async () => {
    const file = script('train.mjs', trains(10_000, ''));
    const command = ringwise(['run', '--ui', file]);
    const page = await opened(command);
    await page.until(`document.getElementById('state').textContent === 'running'`);
    command.child.kill('SIGKILL');
    await page.until(`document.getElementById('state').textContent === 'no connection'`);
  });
});
