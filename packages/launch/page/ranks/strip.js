// The heat strip: a cell for each rank, in the order of their numbers, darker the farther the rank is from the others.
// One Tab reaches it, and arrow keys move inside it. A chosen rank shows its output.

import { element, setText } from '../element.js';
import { compared } from './pace.js';

/** The cells of more ranks than this are smaller. */
const manyRanks = 128;
const states = { failed: '✕', stopped: '–', ended: '✓' };

export class Strip {
  #strip;
  #select;
  #sentence;
  #onChoose;
  #ranks = [];
  #culprit = null;

  constructor(strip, select, sentence, onChoose) {
    this.#strip = strip;
    this.#select = select;
    this.#sentence = sentence;
    this.#onChoose = onChoose;
    select.addEventListener('change', () => this.draw(this.#ranks, this.#culprit));
    strip.addEventListener('keydown', (event) => this.#move(event));
  }

  draw(ranks, culprit) {
    this.#ranks = ranks;
    this.#culprit = culprit;
    const { cells, sentence } = compared(ranks, this.#select.value);
    this.#strip.classList.toggle('dense', ranks.length > manyRanks);
    const buttons = this.#strip.children;
    while (buttons.length > ranks.length) this.#strip.lastElementChild.remove();
    while (buttons.length < ranks.length) this.#strip.append(this.#cell(buttons.length === 0));
    for (const [index, rank] of ranks.entries()) {
      const { text = 'not known', level = 0 } = cells.get(rank.rank) ?? {};
      const mark = states[rank.state] ? ` ${states[rank.state]}` : '';
      const label = `rank ${rank.rank}: ${rank.state}${rank.rank === culprit ? ', root cause' : ''}, ${text}`;
      const button = buttons[index];
      setText(button, `${rank.rank}${mark}`);
      button.dataset.rank = rank.rank;
      button.dataset.level = rank.state === 'running' || rank.state === 'ended' ? level : 0;
      button.dataset.state = rank.rank === culprit ? 'culprit' : rank.state;
      button.title = label;
      button.setAttribute('aria-label', label);
    }
    setText(this.#sentence, sentence);
  }

  #cell(isFirst) {
    const button = element('button', { type: 'button', tabIndex: isFirst ? 0 : -1, 'aria-pressed': 'false' });
    button.addEventListener('click', () => this.#choose(button));
    return button;
  }

  #choose(button) {
    const isOn = button.getAttribute('aria-pressed') === 'true';
    for (const each of this.#strip.children) each.setAttribute('aria-pressed', `${!isOn && each === button}`);
    this.#focus(button);
    this.#onChoose(isOn ? null : Number(button.dataset.rank));
  }

  #move(event) {
    const row = getComputedStyle(this.#strip).gridTemplateColumns.split(' ').length;
    const far = this.#strip.children.length;
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row, Home: -far, End: far };
    const steps = moves[event.key];
    const buttons = [...this.#strip.children];
    const at = buttons.indexOf(document.activeElement);
    if (steps === undefined || at < 0) return;
    event.preventDefault();
    this.#focus(buttons[Math.min(buttons.length - 1, Math.max(0, at + steps))]);
  }

  #focus(button) {
    for (const each of this.#strip.children) each.tabIndex = each === button ? 0 : -1;
    button.focus();
  }
}
