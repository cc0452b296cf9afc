// The result type of `ringwise doctor`. The checked packages have their own module `doctor`; both sides
// declare this type themselves.

/** One line of the report. */
export interface Finding {
  readonly name: string;
  /** 'note' is information only: jobs can still run on this host. */
  readonly state: 'ok' | 'note' | 'wrong';
  readonly text: string;
  /** Advice, if the state is 'wrong'. */
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
