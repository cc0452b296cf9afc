// Looks at the built site in a browser: axe-core must find nothing to mend on the main pages, on a screen and on a
// phone, light and dark; scripts must not fail; nothing may come from other places. `npm run docs` runs it after the
// build where there is a Chromium: in PATH, or the one that RINGWISE_CHROMIUM names.
// `node docs-site/check-pages.mjs FOLDER` also writes a picture of each page into a folder.
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { serve } from './steps/serve.mjs';

const dist = fileURLToPath(new URL('dist', import.meta.url));
const names = ['chromium', 'chromium-browser', 'google-chrome'];
const executablePath =
  process.env.RINGWISE_CHROMIUM ||
  (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((file) => existsSync(file));

/** The pages, by the names of their pictures. */
const pages = {
  landing: '/',
  tutorial: '/docs/tutorial/README.html',
  'from-pytorch': '/docs/from-pytorch.html',
  reference: '/packages/collectives/README.html',
  tfjs: '/packages/tfjs/README.html',
  errors: '/docs/errors.html',
  'api-index': '/api/',
  'api-class': '/api/collectives/classes/Group.html',
};

const looks = [
  { name: 'light', viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  { name: 'dark', viewport: { width: 1440, height: 900 }, colorScheme: 'dark' },
  { name: 'phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
];

/**
 * Returns what is wrong with the page as it is now, one line for each rule of axe. Leaves out the list of the search's
 * results, which is the theme's: each is an option with a link in it.
 */
async function violationsOf(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate("axe.run({ exclude: ['.VPLocalSearchBox'] })");
  return violations.map(({ id, impact, nodes }) => {
    const places = nodes.slice(0, 3).map(({ target }) => target.join(' '));
    return `axe: ${id} (${impact}), ${nodes.length} times: ${places.join(', ')}`;
  });
}

/** Returns whether a page of a phone's width scrolls sideways. */
const isTooWide = (page) => page.evaluate('document.documentElement.scrollWidth > innerWidth');

async function checkLook(browser, url, look, folder) {
  const context = await browser.newContext({ ...look, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const faults = [];
  let place = '';
  const report = (what) => faults.push(`${place} (${look.name}): ${what}`);
  page.on('pageerror', (error) => report(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') report(message.text());
  });
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(url))
      report(`asks for ${request.url()}`);
  });
  const lookAt = async (name) => {
    for (const violation of await violationsOf(page)) report(violation);
    if (await isTooWide(page)) report('is wider than the screen');
    if (folder) await page.screenshot({ path: join(folder, `${name}-${look.name}.png`) });
  };
  for (const [name, path] of Object.entries(pages)) {
    place = path;
    const response = await page.goto(url + path, { waitUntil: 'networkidle' });
    if (!response.ok()) report(`answers ${response.status()}`);
    await lookAt(name);
  }
  place = 'the search';
  await page.goto(url, { waitUntil: 'networkidle' });
  await page.locator('.VPNavBarSearch button').first().click();
  await page.locator('#localsearch-input').fill('all reduce');
  await page.locator('.VPLocalSearchBox .result').first().waitFor();
  await lookAt('search');
  await context.close();
  return faults;
}

if (!executablePath) {
  console.log(
    'docs: no Chromium in PATH, so that nothing looked at the pages; RINGWISE_CHROMIUM can name one',
  );
} else {
  const [folder] = process.argv.slice(2);
  if (folder) mkdirSync(folder, { recursive: true });
  const { url, close } = await serve(dist);
  const faults = [];
  try {
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
    for (const look of looks) faults.push(...(await checkLook(browser, url, look, folder)));
    await browser.close();
  } finally {
    await close();
  }
  for (const fault of faults) console.error(`docs: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
  else
    console.log(
      `docs: a browser and axe find nothing wrong with ${Object.keys(pages).length} pages and the search`,
    );
}
