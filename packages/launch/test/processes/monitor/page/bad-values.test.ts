// Values that are no numbers, from real ranks, in a real browser.

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

const ended = `document.getElementById('state').textContent === 'ended'`;

async function shown(loss: string) {
  const file = script('train.mjs', training({ steps: 60, loss }));
  const { page } = await openLive(ringwise(['run', '--ui-keep', '--nproc-per-node', '2', file]));
  await until(page, ended);
  return page;
}

describeInBrowser('values that are no numbers', () => {
  withBrowser();

  it('are marked in red on the curve and named with the step and the rank', async () => {
    const page = await shown('step >= 31 && rank === 1 ? NaN : 2 / (step + 1)');
    expect(await texts(page, '#alerts p')).toEqual(['loss: NaN since step 31, first on rank 1']);
    expect(await page.textContent('[data-name=loss] .trouble')).toBe('NaN since step 31, first on rank 1');
    expect(await page.textContent('[data-name=loss] .series .train')).toBe('trainNaN');
    expect(await page.textContent('#facts .bad')).toBe('NaN');
    expect(await page.title()).toBe('⚠ ended · ringwise');
    expect(await page.evaluate(pixelsOf('bad', '[data-name=loss] canvas'))).toBeGreaterThan(100);
    // Other charts are well.
    expect(await page.evaluate(pixelsOf('bad', '[data-name=accuracy] canvas'))).toBe(0);
    expect(await page.locator('[data-name=accuracy] .trouble').isVisible()).toBe(false);
    await picture(page, 'nan');
  });

  it('stay named when they are over', async () => {
    const page = await shown('step === 20 || step === 21 ? Infinity : 1');
    expect(await texts(page, '#alerts p')).toEqual([
      expect.stringMatching(/^loss: infinity from step 20 to 21, first on rank [01]$/),
    ]);
    expect(await page.textContent('[data-name=loss] .series .train')).toBe('train1');
    expect(await page.evaluate(pixelsOf('bad', '[data-name=loss] canvas'))).toBeGreaterThan(100);
    expect(await page.title()).toBe('ended · ringwise');
  });

  it('may be all that there is', async () => {
    const page = await shown('-Infinity');
    expect(await texts(page, '#alerts p')).toEqual([
      expect.stringMatching(/^loss: -infinity since step 0, first on rank [01]$/),
    ]);
    expect(await page.evaluate(pixelsOf('bad', '[data-name=loss] canvas'))).toBeGreaterThan(100);
  });
});
