import { describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import { aborted, systemFailure } from '../../../src/errors.ts';
import { GroupState } from '../../../src/group/state.ts';

const stateOf = () => new GroupState(solo(), 'world');

describe('the state of a group', () => {
  it('takes calls at first', () => {
    const state = stateOf();
    state.checkOpen('barrier');
    expect([state.failure, state.isClosed, state.name, state.backend]).toEqual([
      null,
      false,
      'world',
      'solo',
    ]);
  });

  it('refuses calls after the first error, which stays the cause', () => {
    const state = stateOf();
    const [first, second] = ['NaN', 'again'].map((reason) => state.error(aborted(0, reason)));
    expect(state.fail(first)).toBe(first);
    expect(state.fail(second)).toBe(second);
    expect(state.failure).toBe(first);
    expect(() => state.checkOpen('barrier')).toThrow(
      expect.objectContaining({ code: 'ERR_COLL_ABORTED', verb: 'barrier', cause: first }),
    );
  });

  it('gives the reason of abort() to the errors of pending calls as their cause', () => {
    const state = stateOf();
    const cause = new TypeError('enough');
    state.fail(state.error(aborted(0, 'enough'), { cause }));
    expect(state.fail(state.error(aborted(0, 'enough'))).cause).toBe(cause);
    expect(state.fail(state.error(systemFailure('recv', 0, 'out of memory'))).cause).toBeUndefined();
  });

  it('wraps any other error that a backend throws, and names the group', () => {
    const state = stateOf();
    const cause = new RangeError('out of range');
    const error = state.fail(cause);
    expect([error.code, error.group, error.cause]).toEqual(['ERR_COLL_SYSTEM', 'world', cause]);
    expect(state.failure).toBe(error);
  });

  it('refuses calls of a closed group as such, also after an error', () => {
    const state = stateOf();
    state.fail(new Error('stuck'));
    state.close();
    expect(state.isClosed).toBe(true);
    expect(() => state.checkOpen('barrier')).toThrow('barrier: the group is closed');
  });
});
