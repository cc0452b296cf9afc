// Draws the parts of the timeline on its canvas.

/** Draws the steps of one rank, with backward, the wait for gradients, and the buckets. */
export function drawRow(pen, colors, { rank, spans }, { fromMs, toMs }, size, toX, width) {
  const { top, bar: barHeight, bucket: bucketHeight, hasLabel } = size;
  pen.fillStyle = colors.quiet;
  pen.textAlign = 'right';
  if (hasLabel) pen.fillText(`${rank}`, 26, top + barHeight / 2 + 5);
  let waitedMs = 0;
  let hasTiming = false;
  const bar = (color, startMs, lengthMs, y, height) => {
    const a = toX(Math.max(startMs, fromMs));
    const b = toX(Math.min(startMs + lengthMs, toMs));
    if (b <= a) return;
    pen.fillStyle = color;
    pen.fillRect(a, y, Math.max(b - a, 0.75), height);
  };
  for (const { atMs, stepMs, timing } of spans) {
    if (atMs < fromMs || atMs - (stepMs ?? 0) > toMs) continue;
    if (stepMs !== null) bar(colors.step, atMs - stepMs, stepMs, top + 2, barHeight);
    if (timing) {
      const startMs = atMs - timing.agoMs;
      const endMs = startMs + timing.backwardMs;
      bar(colors.backward, startMs, timing.backwardMs, top + 2, barHeight);
      bar(colors.wait, endMs, timing.exposedMs, top + 2, barHeight);
      for (const [beganMs, lastedMs] of timing.buckets) {
        bar(colors.bucket, startMs + beganMs, lastedMs, top + 3 + barHeight, bucketHeight);
      }
      hasTiming = true;
      waitedMs += Math.max(0, Math.min(endMs + timing.exposedMs, toMs) - Math.max(endMs, fromMs));
    }
    // A gap of one pixel keeps steps apart.
    if (stepMs !== null) {
      pen.fillStyle = colors.card;
      pen.fillRect(toX(Math.max(fromMs, atMs - stepMs)) - 0.5, top + 2, 1, barHeight);
    }
  }
  if (!hasTiming || !hasLabel) return;
  pen.fillStyle = colors.quiet;
  pen.textAlign = 'right';
  pen.fillText(`${((100 * waitedMs) / (toMs - fromMs)).toFixed(1)} %`, width, top + barHeight / 2 + 5);
}

/** Draws the axis of time below the rows. */
export function drawAxis(pen, colors, { fromMs, toMs }, toX, top) {
  pen.font = '11px system-ui, sans-serif';
  pen.textAlign = 'center';
  const wanted = (toMs - fromMs) / 6;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const every = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= wanted);
  for (let ms = 0; ms <= toMs - fromMs; ms += every) {
    const x = toX(fromMs + ms);
    pen.fillStyle = colors.line;
    pen.fillRect(x, 0, 1, top);
    pen.fillStyle = colors.quiet;
    pen.fillText(ms === 0 ? '0 ms' : `${Number(ms.toPrecision(6))}`, x, top + 13);
  }
}
