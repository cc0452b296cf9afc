// Shows the last lines of output, of all ranks or of one. The view follows new lines while it is scrolled to its end.

const keptOfRank = 200;
const keptOfAll = 1_000;

export class Log {
  #view;
  #select;
  #all = [];
  #byRank = new Map();

  constructor(view, select) {
    this.#view = view;
    this.#select = select;
    select.addEventListener('change', () => this.#redraw());
  }

  /** Shows the output of one rank, or of all if null. */
  show(rank) {
    this.#select.value = rank === null ? '' : `${rank}`;
    this.#redraw();
  }

  clear() {
    this.#all = [];
    this.#byRank.clear();
    this.#view.replaceChildren();
  }

  add(lines, ranks) {
    for (const { rank } of ranks) {
      if ([...this.#select.options].some(({ value }) => value === `${rank}`)) continue;
      this.#select.append(new Option(`rank ${rank}`, `${rank}`));
    }
    for (const line of lines) {
      push(this.#all, line, keptOfAll);
      if (!this.#byRank.has(line.rank)) this.#byRank.set(line.rank, []);
      push(this.#byRank.get(line.rank), line, keptOfRank);
    }
    const chosen = this.#select.value;
    this.#append(chosen === '' ? lines : lines.filter(({ rank }) => rank === Number(chosen)));
  }

  #redraw() {
    const chosen = this.#select.value;
    this.#view.replaceChildren();
    this.#append(chosen === '' ? this.#all : (this.#byRank.get(Number(chosen)) ?? []));
    this.#view.scrollTop = this.#view.scrollHeight;
  }

  #append(lines) {
    const view = this.#view;
    const isAtEnd = view.scrollTop + view.clientHeight >= view.scrollHeight - 8;
    view.append(
      ...lines.map(({ rank, text }) => {
        const row = document.createElement('div');
        row.append(Object.assign(document.createElement('b'), { textContent: `[${rank}] ` }), text);
        return row;
      }),
    );
    while (view.childElementCount > keptOfAll) view.firstElementChild.remove();
    if (isAtEnd) view.scrollTop = view.scrollHeight;
  }
}

function push(list, line, kept) {
  list.push(line);
  if (list.length > kept) list.shift();
}
