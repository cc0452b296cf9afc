// Shows 64 ranks in the page: from the launcher's own messages, because so many processes would need more cores.

import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { prometheusText } from '../../../../src/monitor/files/prometheus.ts';
import { reportHtml } from '../../../../src/monitor/files/report-file.ts';
import { serveUi } from '../../../../src/monitor/ui-server.ts';
import {
  axeViolations,
  describeInBrowser,
  open,
  picture,
  pixelsOf,
  texts,
  until,
  withBrowser,
} from '../../../support/browser.ts';
import { script } from '../../../support/command.ts';
import { lateRank, manyRanks, slowRank } from '../../../support/many-ranks.ts';

describeInBrowser('the page of 64 ranks', () => {
  withBrowser();

  const openMany = (width: number, count = 64) =>
    open(pathToFileURL(script('many.html', reportHtml(manyRanks(count, 40).message))).href, { width });

  it('names the slow rank, marks it in the strip, and sorts table and timeline by it', async () => {
    const { page, problems } = await openMany(1280);
    expect(await page.locator('#strip button').count()).toBe(64);
    expect(await texts(page, '#strip [data-level="4"]')).toEqual([`${slowRank}`]);
    expect(await page.textContent('#strip-sentence')).toMatch(
      /^Slowest: rank 17 with 7\d(\.\d+)? ms, \d\d % above/,
    );
    const ranks = '#ranks td:first-child';
    expect((await texts(page, ranks)).map(Number)).toEqual(Array.from({ length: 64 }, (_, rank) => rank));
    const canvas = () => page.evaluate<string>(`document.getElementById('timeline').toDataURL()`);
    const before = await canvas();
    await page.click('#slowest');
    expect((await texts(page, ranks))[0]).toBe(`${slowRank}`);
    expect(await page.getAttribute('#rank-head th:nth-child(5)', 'aria-sort')).toBe('descending');
    expect(await canvas()).not.toBe(before);
    await page.click('#slowest');
    expect((await texts(page, ranks))[0]).toBe('0');
    expect(await canvas()).toBe(before);

    await page.selectOption('#strip-measure', 'behind');
    expect(await page.textContent('#strip-sentence')).toBe(`Last: rank ${lateRank}, 2 steps behind.`);
    expect(await texts(page, '#strip [data-level="2"]')).toEqual([`${lateRank}`]);
    await picture(page, 'many-ranks');
    expect(await axeViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('has all ranks in a timeline that fits a screen', async () => {
    const { page } = await openMany(1280);
    await until(page, `${pixelsOf('wait')} > 1000`);
    expect(await page.evaluate(`document.getElementById('timeline').clientHeight`)).toBeLessThan(800);
  });

  it.each([1280, 390])('is the page of 512 ranks, too, %i pixels wide', async (width) => {
    const { page, problems } = await openMany(width, 512);
    expect(await page.locator('#strip button').count()).toBe(512);
    expect(await texts(page, '#strip [data-level="4"]')).toEqual([`${slowRank}`]);
    const cell = (await page.locator('#strip button').nth(500).boundingBox())!;
    expect(Math.min(cell.width, cell.height)).toBeGreaterThanOrEqual(24);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(await page.evaluate(`document.getElementById('timeline').clientHeight`)).toBeLessThan(800);
    expect(await page.textContent('#timeline-note')).toMatch(
      /^The first 64 ranks of the table; 448 are not drawn\./,
    );
    expect(problems).toEqual([]);
    await picture(page, `512-ranks-${width}`);
  });

  it('fits a phone: cells large enough to touch, the columns that matter, nothing to scroll sideways', async () => {
    const { page } = await openMany(390);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(
      await page.evaluate(`(() => {
        const scroller = document.querySelector('#ranks').closest('.scroll');
        return scroller.scrollWidth - scroller.clientWidth;
      })()`),
    ).toBe(0);
    const heads = page.locator('#rank-head th:visible');
    expect(await heads.allTextContents()).toEqual(['rank', 'state', 'step', 'behind', 'own time']);
    const { width, height } = (await page.locator('#strip button').nth(40).boundingBox())!;
    expect(Math.min(width, height)).toBeGreaterThanOrEqual(24);
    expect(await page.evaluate(`document.querySelector('.curve canvas').clientWidth`)).toBeLessThan(390);
    await picture(page, 'many-ranks-phone');
  });

  it('lets the arrow keys move in the strip, which one Tab reaches, and Enter choose a rank', async () => {
    const { page } = await openMany(1280);
    const focused = () => page.evaluate(`document.activeElement.dataset.rank`);
    await page.focus('#slowest');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('0');
    for (const [key, rank] of [
      ['ArrowRight', '1'],
      ['ArrowDown', '17'],
      ['ArrowLeft', '16'],
      ['End', '63'],
      ['ArrowRight', '63'],
      ['Home', '0'],
    ] as const) {
      await page.keyboard.press(key);
      expect(await focused()).toBe(rank);
    }
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    expect(await page.inputValue('#log-rank')).toBe('1');
    await page.keyboard.press('Enter');
    expect(await page.inputValue('#log-rank')).toBe('');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(`document.activeElement.getAttribute('aria-label')`)).toBe('Table of ranks');
  });

  it('follows a running job', async () => {
    const { feed, nowMs, report, view } = manyRanks();
    feed.changes(nowMs);
    const address = { host: '127.0.0.1', port: 0 };
    const server = await serveUi(address, {
      whole: () => feed.whole(nowMs),
      prometheus: () => prometheusText(view),
    });
    try {
      const { page, problems } = await open(server.url);
      await until(page, `document.querySelectorAll('#strip [data-level="4"]').length === 1`);
      // The slow rank is as fast as the others from now on, and another one is slow.
      for (let step = 120; step < 150; step++) {
        for (let rank = 0; rank < 64; rank++) report(rank, step, rank === 5 ? 90 : 40);
      }
      server.send(feed.changes(nowMs + 3_000));
      await until(page, `document.querySelector('#strip [data-level="4"]').textContent === '5'`);
      expect(await page.textContent('#strip-sentence')).toBe(
        'Slowest: rank 5 with 90 ms, 125 % above the median of 40 ms.',
      );
      expect(await texts(page, '#strip [data-level="4"]')).toEqual(['5']);
      expect(await page.textContent('#facts div')).toBe('step149 of 240');
      expect(problems).toEqual([]);
    } finally {
      await server.close();
    }
  });
});
