// Shows the progress of one run: a bar that is drawn again in a terminal, a line for each epoch elsewhere.

const width = 30;

export class Progress {
  #stream;
  #label;

  /** Draws an empty bar at once, so that the start of the processes is seen, too. */
  constructor(stream, label) {
    this.#stream = stream;
    this.#label = label;
    if (stream.isTTY) this.#draw(0, 'starting');
    else stream.write(`${label}  starting\n`);
  }

  show({ epoch, epochs, step, steps, loss }) {
    const text = `epoch ${epoch}/${epochs}  loss ${loss}`;
    if (this.#stream.isTTY) this.#draw(((epoch - 1) * steps + step) / (epochs * steps), text);
    else if (step === steps) this.#stream.write(`${this.#label}  ${text}\n`);
  }

  end() {
    if (this.#stream.isTTY) this.#stream.write('\n');
  }

  #draw(done, text) {
    const bar = '█'.repeat(Math.round(done * width)).padEnd(width, '░');
    const percent = String(Math.round(done * 100)).padStart(3);
    this.#stream.write(`\r${this.#label}  ${bar} ${percent} %  ${text}\x1b[K`);
  }
}
