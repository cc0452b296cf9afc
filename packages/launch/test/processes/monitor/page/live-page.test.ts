// Shows the live page of real ranks in a real browser. Pictures go to the folder that RINGWISE_SCREENSHOTS names.

import { expect, it } from 'vitest';
import {
  describeInBrowser,
  openLive,
  picture,
  pixelsOf,
  texts,
  until,
  withBrowser,
} from '../../../support/browser.ts';
import { ringwise, script } from '../../../support/command.ts';
import { training } from '../../../support/training.ts';

const stateIs = (text: string) => `document.getElementById('state').textContent === '${text}'`;

describeInBrowser('the live page in a browser', () => {
  withBrowser();

  it('shows curves, ranks, a timeline and the output while a job runs, and how it ended', async () => {
    const file = script('train.mjs', training({ steps: 200 }));
    const command = ringwise(['run', '--ui', '--nproc-per-node', '2', file, '--lr', '0.1']);
    const { page, problems } = await openLive(command);
    await until(page, `document.querySelectorAll('.curve canvas').length >= 3`);
    await until(page, `document.querySelectorAll('#ranks tr').length === 2`);
    await until(page, `document.querySelectorAll('#log div').length >= 8`);
    expect(await page.textContent('#title')).toBe(`${file} --lr 0.1`);
    await until(page, `document.querySelector('[data-name=loss]').textContent.includes('validation')`);
    const names = `[...document.querySelectorAll('.curve')].map((curve) => curve.dataset.name)`;
    expect(await page.evaluate(names)).toEqual(['loss', 'samples/s', 'accuracy']);
    for (const color of ['backward', 'wait', 'bucket', 'step']) await until(page, `${pixelsOf(color)} > 20`);
    for (const color of ['accent', 'second']) {
      await until(page, `${pixelsOf(color, '[data-name=loss] canvas')} > 20`);
    }
    await until(page, `/\\d MiB$/.test(document.querySelector('#ranks td:nth-child(9)').textContent)`);
    const facts = await texts(page, '#facts div');
    expect(facts).toContainEqual(expect.stringMatching(/^step\d+ of 200$/));
    expect(facts).toContainEqual(expect.stringMatching(/^epoch\d+ of 20$/));
    expect(facts).toContainEqual(expect.stringMatching(/^time leftabout \d+:\d\d$/));
    expect(Number(await page.getAttribute('#progress', 'aria-valuenow'))).toBeGreaterThan(0);
    await picture(page, 'running-light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await until(page, `${pixelsOf('accent', '[data-name=loss] canvas')} > 20`); // that of dark
    await picture(page, 'running-dark');

    await page.selectOption('#log-rank', '1');
    expect(new Set(await texts(page, '#log b'))).toEqual(new Set(['[1] ']));

    expect(await command.exitCode).toBe(0);
    await until(page, stateIs('ended'));
    expect(await page.textContent('#notice')).toContain('ended well');
    // The page shows what ranks print as text: it makes no elements of it and runs no script in it.
    expect(await page.locator('#log img').count()).toBe(0);
    expect(await page.textContent('#log')).toContain('<b>bold</b>');
    expect(await page.title()).toBe('ended · ringwise');
    expect(problems).toEqual([]);
  });

  it('names the rank with the root cause, its error and its place', async () => {
    const after = `if (rank === 1) throw new RangeError('token <i>50304</i> is outside'); await pause(60_000);`;
    const file = script('fail.mjs', training({ steps: 60, after }));
    const command = ringwise(['run', '--ui', '--nproc-per-node', '2', '--shutdown-timeout', '1', file]);
    const { page } = await openLive(command);
    await until(page, `document.querySelectorAll('#log div').length >= 4`);
    expect(await command.exitCode).toBe(1);
    await until(page, stateIs('failed'));
    expect(await page.textContent('#notice strong')).toBe(
      'Rank 1 failed: RangeError: token <i>50304</i> is outside',
    );
    expect(await page.textContent('#notice p')).toMatch(
      /^Rank 1 of 2, thrown at fail\.mjs:\d+ on \S+, after 0:\d\d\.$/,
    );
    await page.click('#notice summary');
    expect(await page.textContent('#notice pre')).toContain('rank 1 of 2 failed (exit code 1)');
    expect(await texts(page, '#ranks td:nth-child(2)')).toEqual([
      'stopped: SIGTERM',
      'failed: exit code 1, root cause',
    ]);
    expect(await texts(page, '#strip [data-state=culprit]')).toEqual(['1 ✕']);
    await picture(page, 'failed');
  });

  it('says so when the launcher is gone without a word', async () => {
    const file = script('train.mjs', training({ steps: 10_000 }));
    const command = ringwise(['run', '--ui', file]);
    const { page } = await openLive(command);
    await until(page, stateIs('running'));
    command.child.kill('SIGKILL');
    await until(page, stateIs('no connection'));
  });
});
