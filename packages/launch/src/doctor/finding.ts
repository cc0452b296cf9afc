// What `ringwise doctor` tells. The packages that are examined bring their own part (their module `doctor`); the two
// sides agree by shape.

/** One line of the report. */
export interface Finding {
  readonly name: string;
  /** note: worth knowing, and nothing that ranks on this host need. */
  readonly state: 'ok' | 'note' | 'wrong';
  readonly text: string;
  /** What to do about it; of what is wrong. */
  readonly fix?: string;
}

export const ok = (name: string, text: string): Finding => ({ name, state: 'ok', text });
export const note = (name: string, text: string): Finding => ({ name, state: 'note', text });
export const wrong = (name: string, text: string, fix: string): Finding => ({
  name,
  state: 'wrong',
  text,
  fix,
});
