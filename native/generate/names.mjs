// Translates the names and extents of kernel declarations to C++.

/** Returns a name in snake case: logSoftmax becomes log_softmax, conv2dGradInput conv2d_grad_input. */
export const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Returns a name with a capital first letter: logSoftmax becomes LogSoftmax. */
export const pascal = (name) => name[0].toUpperCase() + name.slice(1);

/**
 * Returns the name that `table` ({ name: declared }) gives a declared object, which is the name of its C++
 * type. Throws an Error with `what` if the table does not have it.
 */
export function nameIn(table, declared, what) {
  const found = Object.entries(table).find(([, value]) => value === declared);
  if (!found) throw new Error(`kernel declarations: ${what} is not exported with a name for C++.`);
  return found[0];
}

/** Returns an extent as a C++ product. `member` translates a path of names to C++. */
function productOf(extent, member) {
  const factors = extent
    .trim()
    .split(/\s+/)
    .map((factor) => {
      const terms = factor.split('+').map((term) => (/^\d+$/.test(term) ? term : member(term)));
      return terms.length === 1 ? terms[0] : `sum(${terms.join(', ')})`;
    });
  return factors.length === 1 ? factors[0] : `product(${factors.join(', ')})`;
}

/** Returns the number of elements of an extent, as a C++ expression over the members of `x`. */
export function countOf(extent) {
  const member = (path) => `x.${path.split('.').map(snake).join('.')}`;
  const choice = /^(\w+) \? (.+) : (.+)$/.exec(extent);
  if (!choice) return productOf(extent, member);
  return `${member(choice[1])} ? ${productOf(choice[2], member)} : ${productOf(choice[3], member)}`;
}

/** Returns the dimensions of an operand with strides, as C++ expressions, from its extent. */
export const dimensionsOf = (extent) => extent.split(' ').map((name) => `x.${snake(name)}`);
