// Texts that a file holds, as parts of sentences.

/** Returns the start of a text, without control characters that a terminal would interpret. */
export const excerpt = (text: string, most = 80): string =>
  text.slice(0, most).replace(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Returns a name in quotes, shortened as by excerpt. */
export const quoted = (name: string): string => `"${excerpt(name)}"`;
