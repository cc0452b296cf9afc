// Asks the built search of the site the questions of docs-site/questions.mjs, as the search box of VitePress does.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import MiniSearch from 'minisearch';
import { searchOptions } from '../.vitepress/search.mjs';
import { questions } from '../questions.mjs';

/** Results that the search box shows without scrolling. */
const visible = 5;

/** Questions that may stay without an answer; a page of an answer that does not exist fails in any case. */
const unanswered = 2;

/** Returns the number of questions and of those that the search answers. Throws if more than two have no answer. */
export async function askQuestions(site) {
  const index = await searchIndex(join(site, 'assets/chunks'));
  const missed = questions.filter(({ search, answers }) => {
    const found = index.search(search).slice(0, visible);
    return !found.some(({ id }) => answers.includes(id.replace('.html', '')));
  });
  if (missed.length > unanswered) {
    const lines = missed.map(({ question, search }) => `  ${question} (search: ${search})`);
    throw new Error(`docs: the first ${visible} results of the search do not answer\n${lines.join('\n')}`);
  }
  return { asked: questions.length, answered: questions.length - missed.length };
}

async function searchIndex(folder) {
  const file = readdirSync(folder).find((name) => name.startsWith('@localSearchIndex'));
  if (file === undefined) throw new Error(`docs: the site has no search index in ${folder}`);
  const { default: json } = await import(pathToFileURL(join(folder, file)).href);
  const options = { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 }, ...searchOptions };
  const fields = ['title', 'titles', 'text'];
  return MiniSearch.loadJSON(json, { fields, storeFields: ['title', 'titles'], searchOptions: options });
}
