// The views of an elastic job: which ranks were lost, left and joined, and when.

import { element } from './element.js';
import { durationText, numberText } from './format.js';

const $ = (id) => document.getElementById(id);
const shownViews = 20;

/** Draws the last views, the latest first. Jobs that are not elastic have none, and no table. */
export function drawMembership({ views = [], losses, leaves, joins, worldSize }) {
  const last = views.at(-1);
  $('membership').hidden = last === undefined;
  if (last === undefined) return;
  $('membership-sentence').textContent =
    `${numberText(last.ranks)} of ${numberText(worldSize)} ranks train; so far ${numberText(losses)} were lost, ` +
    `${numberText(leaves)} left and ${numberText(joins)} joined.`;
  const cells = ({ number, atMs, step, ranks, lost, left, joined }) => [
    ...[numberText(number), durationText(atMs), numberText(step), numberText(ranks)],
    ...[lost, left, joined].map((numbers) => numbers.join(', ') || '–'),
  ];
  $('views').replaceChildren(
    ...views
      .slice(-shownViews)
      .reverse()
      .map((view) => element('tr', {}, ...cells(view).map((text) => element('td', {}, text)))),
  );
}
