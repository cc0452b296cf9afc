// Guides come before pages of the API, which repeat every name, and before decisions; PyTorch's names come first.
export const searchOptions = {
  boostDocument: (id) => {
    if (id.includes('/api/')) return 0.3;
    if (id.includes('/decisions/')) return 0.5;
    return id.includes('/from-pytorch') ? 2 : 1;
  },
};

/** Headings that pages of the API have besides the names of members. */
const kinds = new Set([
  ...[
    'Accessors',
    'Classes',
    'Constructor',
    'Constructors',
    'Extended by',
    'Extends',
    'Functions',
    'Methods',
  ],
  ...['Get Signature', 'Set Signature', 'Call Signature', 'Implementation of', 'Implements', 'Interfaces'],
  ...['Overrides', 'Parameters', 'Properties', 'Returns', 'Type Aliases', 'Type Parameters', 'Variables'],
]);

/** Returns the text of the heading that HTML begins with. */
const headingOf = (html) =>
  /^<h\d[^>]*>(.*?)(?: *<a |<\/h\d>)/s.exec(html)?.[1].replaceAll('&amp;', '&') ?? '';

/**
 * Returns the HTML from which the search makes its sections. Of pages of the API it gets names and what docstrings say
 * of them, without code, tables and inherited members, which each of 150 layers repeats: the index is a quarter of
 * what it would be, and a search for a name leads to where it is declared.
 */
export function renderForSearch(markdown, env, md) {
  if (!env.relativePath.startsWith('api/')) return md.render(markdown, env);
  const html = md.render(markdown.replaceAll(/^(`{3,}).*?^\1$|^\|.*?$/gms, ''), env);
  return html
    .split(/(?=<h[1-3] )/)
    .filter((member) => !/<h4 [^>]*>Inherited from /.test(member))
    .flatMap((member) => member.split(/(?=<h[1-6] )/))
    .map((section) => (kinds.has(headingOf(section)) ? section.replace(/^<h\d.*?<\/h\d>/s, '') : section))
    .join('');
}
