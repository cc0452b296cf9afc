// Prepares texts from a file for error messages.

/** Returns the first `most` characters of a text. Control characters, which a terminal would interpret, are escaped. */
export const excerpt = (text: string, most = 80): string =>
  text.slice(0, most).replace(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Returns a name in quotes, shortened and escaped by excerpt(). */
export const quoted = (name: string): string => `"${excerpt(name)}"`;
