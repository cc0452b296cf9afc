// Colours of the launcher's own output. styleText() omits them if the stream is no terminal or if NO_COLOR or
// NODE_DISABLE_COLORS is set, and FORCE_COLOR enables them.

import { styleText } from 'node:util';

// In Node 20, styleText() colours in any case if it gets a list of formats.
type Format = 'bold' | 'dim' | 'red';

/** Returns the text in this format if `stream` shows colours, else unchanged. */
export function styled(stream: 'stdout' | 'stderr', format: Format, text: string): string {
  return styleText(format, text, { stream: process[stream] });
}
