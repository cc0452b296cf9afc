// What the user can set in the page, and whether everybody can: axe, keyboard, reduced motion.

import { expect, it } from 'vitest';
import {
  axeViolations,
  describeInBrowser,
  type Look,
  openLive,
  texts,
  until,
  withBrowser,
} from '../../../support/browser.ts';
import { ringwise, script } from '../../../support/command.ts';
import { training } from '../../../support/training.ts';

/** Opens the page of a job that has failed and has every kind of part: curves, NaN, the notice, the output. */
async function failed(look: Look) {
  const after = `if (rank === 1) throw new Error('no more data'); await pause(60_000);`;
  const loss = 'step >= 25 ? NaN : step === 0 ? 1000 : 2 / step';
  const file = script('train.mjs', training({ steps: 30, loss, after }));
  const command = ringwise(['run', '--ui-keep', '--nproc-per-node', '2', '--shutdown-timeout', '1', file]);
  const { page } = await openLive(command, look);
  await until(page, `document.getElementById('state').textContent === 'failed'`);
  return page;
}

describeInBrowser('the controls of the page', () => {
  withBrowser();

  it.each(['light', 'dark'] as const)('have nothing that axe finds wrong in %s', async (colorScheme) => {
    const page = await failed({ colorScheme });
    await page.click('#notice summary');
    await page.click('#slowest');
    await page.click('[data-name=loss] button');
    expect(await axeViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await axeViolations(page)).toEqual([]);
  });

  it('smooth curves, and give a chart a log axis', async () => {
    const page = await failed({});
    const canvas = () =>
      page.evaluate<string>(`document.querySelector('[data-name=loss] canvas').toDataURL()`);
    const raw = await canvas();
    await page.focus('#smoothing');
    for (let count = 0; count < 40; count++) await page.keyboard.press('ArrowRight');
    expect(await page.textContent('#smoothing-value')).toBe('0.8');
    const smooth = await canvas();
    expect(smooth).not.toBe(raw);
    const log = page.locator('[data-name=loss] button');
    await log.press('Enter');
    expect(await log.getAttribute('aria-pressed')).toBe('true');
    expect(await canvas()).not.toBe(smooth);
    await log.press('Enter');
    expect(await canvas()).toBe(smooth);
    await page.focus('#smoothing');
    await page.keyboard.press('Home');
    expect(await page.textContent('#smoothing-value')).toBe('off');
  });

  it('read a curve with the arrow keys', async () => {
    const page = await failed({});
    await page.focus('[data-name=loss] .plot');
    await page.keyboard.press('Home');
    expect(await page.textContent('[data-name=loss] .where')).toBe('step 0');
    expect((await texts(page, '[data-name=loss] .series .train span'))[0]).toBe('1,000');
    await page.keyboard.press('ArrowRight');
    expect(await page.textContent('[data-name=loss] .where')).toBe('step 1');
    expect(await page.getAttribute('[data-name=loss] .plot', 'aria-label')).toMatch(
      /^loss: loss 2, valLoss –\./,
    );
    await page.keyboard.press('Escape');
    expect(await page.textContent('[data-name=loss] .where')).toBe('');
  });

  it('move nothing for users who want it so', async () => {
    const file = script('train.mjs', training({ steps: 10_000 }));
    const { page } = await openLive(ringwise(['run', '--ui', file]), { reducedMotion: 'reduce' });
    await until(page, `document.querySelector('.badge.running')`);
    const animations = `document.getAnimations().length`;
    expect(await page.evaluate(animations)).toBe(0);
    await page.emulateMedia({ reducedMotion: 'no-preference' });
    await until(page, `${animations} === 1`);
  });
});
