import { describe, expect, it } from 'vitest';
import * as acrossErrors from '../../src/across/errors.ts';
import * as errors from '../../src/errors.ts';
import { CollectiveError, type Failure } from '../../src/errors.ts';
import * as initErrors from '../../src/init/errors.ts';
import * as meshErrors from '../../src/mesh/errors.ts';
import * as optionErrors from '../../src/options/errors.ts';

const site = { group: 'dp', rank: 0, size: 8 };
const first = new CollectiveError(errors.timedOut('barrier', 12, [2, 5], 30_000), site);

// A failure by every message builder of errors.ts and of the errors.ts of across, init, mesh and options.
const failures: Record<string, Failure> = {
  timedOut: errors.timedOut('barrier', 12, [2, 5], 30_000),
  notEnded: errors.notEnded('allReduce', 3, 500),
  peerLost: errors.peerLost('allReduce', 9, 2, 'tcp 10.0.0.7:40112: connection reset'),
  mismatch: errors.mismatch(
    'allReduce',
    117,
    { rank: 3, signature: 'allReduce sum 4096 × float16' },
    { rank: 0, signature: 'allReduce sum 4096 × float32' },
  ),
  aborted: errors.aborted(1, 'loss is NaN'),
  unusableNccl: errors.unusableNccl(
    'init',
    null,
    'libnccl.so.2 is version 2.26.6; expected NCCL 2.27 or newer',
  ),
  systemFailure: errors.systemFailure('allReduce', 4, 'mmap: cannot allocate memory'),
  hostFailure: errors.hostFailure('ERR_COLL_SYSTEM', 'barrier', 3, {
    peers: [1],
    text: 'epoll failed on rank 1',
  }),
  deviceFailed: errors.deviceFailed('allReduce', 4, 0, 'cuMemcpyDtoHAsync: an illegal address'),
  unexpected: errors.unexpected(2, 'RangeError: Invalid array length'),
  cannotMakeEnd: errors.cannotMakeEnd('eventfd: Too many open files'),
  hostIdUnreadable: errors.hostIdUnreadable(
    "EMFILE: too many open files, open '/proc/sys/kernel/random/boot_id'",
  ),
  bufferTooLarge: errors.bufferTooLarge('broadcast', 'tcp', 4_400_000_000, 4_294_967_296),
  detachedBeforeTurn: errors.detachedBeforeTurn('allReduce', 6, 2),
  mismatchOfPieces: errors.mismatchOfPieces(
    errors.mismatch(
      'allReduce',
      7,
      { rank: 0, signature: 'allReduce sum 262112 × float32 with digest 1b' },
      { rank: 1, signature: 'allReduce sum 262112 × float32 with digest 2f' },
    ),
    'allReduce sum 600000 × float32',
    3,
  ),
  elementsOnDevice: errors.elementsOnDevice('cuda:0'),
  failedEarlier: errors.failedEarlier('allReduce', first),
  groupClosed: errors.groupClosed('send'),
  notABuffer: errors.notABuffer('allReduce', 'a plain array', 'Use Float32Array.from(array).'),
  detachedBuffer: errors.detachedBuffer('recv'),
  resizableBuffer: errors.resizableBuffer('allReduce'),
  unknownDtype: errors.unknownDtype('alloc', 'float8', ['float32', 'float16']),
  wrongArrayType: errors.wrongArrayType('allReduce', 'float16', 'Uint16Array', 'Int16Array'),
  notWritable: errors.notWritable(
    'allReduce',
    'the tensor requires a gradient',
    'Call it inside noGrad(() => …).',
  ),
  badCarrier: errors.badCarrier('allReduce', 'count is -1'),
  hostUntried: initErrors.hostUntried('macOS'),
  noOtherRank: errors.noOtherRank('send'),
  listAndBuffer: errors.listAndBuffer('allGather', 'input', 2),
  contributionsNotReproducible: errors.contributionsNotReproducible('allReduce'),
  foreignMember: optionErrors.foreignMember('group.all_reduce()', 'there is no member of this name'),
  unknownOp: optionErrors.unknownOp('allReduce', 'mean', ['sum', 'avg']),
  opNotDefined: errors.opNotDefined('allReduce', 'avg', 'int32', ['sum', 'min', 'max', 'prod']),
  factorMissing: errors.factorMissing('allReduce', 'NaN'),
  factorUnused: errors.factorUnused('allReduce', 'sum'),
  badRank: errors.badRank('broadcast', 'root', '8', 8),
  selfPeer: errors.selfPeer('send', 0),
  dtypesDiffer: errors.dtypesDiffer('allGather', 'float32', 'int32'),
  devicesDiffer: errors.devicesDiffer('allGather', 'the host', 'cuda:0'),
  wrongCount: errors.wrongCount('allGather', 'output', 80, 10),
  notDivisible: errors.notDivisible('allToAll', 10, 4),
  badCounts: errors.badCounts('gather', 'counts', 3, '[1, -1]'),
  oneOfCounts: errors.oneOfCounts('allToAll'),
  ownCountsDiffer: errors.ownCountsDiffer('allToAll', 2, 3, 4),
  rootOnly: errors.rootOnly('gather', 'output', 1, false),
  wrongListLength: errors.wrongListLength('allGather', 'output', 4, 3),
  wrongListPart: errors.wrongListPart('scatter', 'input', 2, 10, 11),
  listLengthsDiffer: errors.listLengthsDiffer('allGather', 3, 2),
  listDtypesDiffer: errors.listDtypesDiffer('allGather', 'output', ['float32', 'int8']),
  listOnDevice: errors.listOnDevice('allGather', 'output'),
  noSurvivors: errors.noSurvivors(),
  notByShrink: errors.notByShrink('Await job.membership.next().'),
  lostRanksUnknown: errors.lostRanksUnknown('[9]'),
  oneList: errors.oneList('allToAll'),
  countsOfLists: errors.countsOfLists('allToAll'),
  countsOfMany: errors.countsOfMany('allGather'),
  notCapturable: errors.notCapturable('allReduce', 'the host backend takes no part in that'),
  notReproducible: errors.notReproducible('reduce', 'prod', 'float32', ['float32', 'float64']),
  reproducibleOnDevice: errors.reproducibleOnDevice('allReduce'),
  reproducibleList: errors.reproducibleList('allReduce'),
  reproducibleWire: errors.reproducibleWire('allReduce', 'bfloat16'),
  unknownWire: errors.unknownWire('allReduce', 'int4'),
  residualUnused: errors.residualUnused('allReduce', 'bfloat16'),
  residualOfList: errors.residualOfList('allReduce'),
  residualOverlaps: errors.residualOverlaps('allReduce'),
  wrongResidual: errors.wrongResidual('allReduce', 100, 99, 'float64'),
  wireUnused: errors.wireUnused('allReduce', 'bfloat16', 'max', 'float64'),
  tooManyAddends: errors.tooManyAddends('allReduce', 2_000_000, 1_048_576),
  badTimeoutVariable: optionErrors.badTimeoutVariable('init', 'soon'),
  badTag: optionErrors.badTag('send', -1, 536_870_911),
  notCloneable: errors.notCloneable('sendObject', '() => {} could not be cloned.'),
  objectTooLarge: errors.objectTooLarge('gatherObject', 2 ** 31, 2 ** 30),
  unreadableObject: errors.unreadableObject('recvObject', 'Unable to deserialize cloned data.'),
  missingValues: errors.missingValues('scatterObject', 4, undefined),
  badColor: errors.badColor('0.5'),
  badKey: errors.badKey('NaN'),
  badMembers: errors.badMembers(4, '[0, 0]'),
  noSubgroups: errors.noSubgroups('split'),
  buffersOverlap: errors.buffersOverlap('reduceScatter'),
  listOverlaps: errors.listOverlaps('allReduce', 'buffer 0', 'buffer 2'),
  badTimeout: optionErrors.badTimeout('barrier', '60000'),
  badLabel: errors.badLabel('allReduce', '3'),
  badAllocCount: errors.badAllocCount('1.5'),
  noMemory: errors.noMemory('host', 2 ** 50, 'float32', 'allocating shared memory: Cannot allocate memory'),
  backendNameTaken: errors.backendNameTaken('host'),
  verbNotSupported: errors.verbNotSupported('send', 'solo', ['allReduce', 'barrier']),
  deviceNotSupported: errors.deviceNotSupported('allReduce', 'host', 'cuda:0', 'cpu'),
  cannotBlock: errors.cannotBlock('barrier', 'loopback'),
  memoryNotVisible: errors.memoryNotVisible('nccl'),
  withFlightRecords: errors.withFlightRecords(errors.timedOut('barrier', 12, [2], 1000), '/var/flight'),
  flightFolderNotUsable: initErrors.flightFolderNotUsable('/flight', 'permission denied'),
  ranksMissing: initErrors.ranksMissing([2, 3], 4, 30_000),
  ranksOnGloo: initErrors.ranksOnGloo(initErrors.ranksMissing([2, 3], 4, 30_000), [3]),
  rankTwice: initErrors.rankTwice(1),
  twoOfOneRank: initErrors.twoOfOneRank(1, 'process 12 on a', 'process 9 on b'),
  cannotTakePart: initErrors.cannotTakePart(1, { what: 'there is no driver', next: 'Install one.' }),
  arrivedLate: initErrors.arrivedLate(2),
  settingsDiffer: initErrors.settingsDiffer('size', { rank: 0, value: '2' }, { rank: 1, value: '4' }),
  rankOutOfRange: initErrors.rankOutOfRange(4, Number.NaN, 'url'),
  soloForMany: initErrors.soloForMany(2),
  noLauncher: initErrors.noLauncher(),
  halfALauncher: initErrors.halfALauncher('1', undefined),
  badMasterPort: initErrors.badMasterPort('abc'),
  unknownAlgorithmVariable: initErrors.unknownAlgorithmVariable('RINGWISE_ALGO_X', ['RINGWISE_ALGO_SEND']),
  tooManyRanks: initErrors.tooManyRanks(1e6, 65_536, 'env'),
  masterUnknown: initErrors.masterUnknown('MASTER_PORT', 'pmi'),
  badUrl: initErrors.badUrl('http://x', 'env://, tcp://host:port or file:///directory'),
  storeAndUrl: initErrors.storeAndUrl(),
  rankUnknown: initErrors.rankUnknown(),
  secretMissing: initErrors.secretMissing('node-a', 29500),
  secretFileUnread: initErrors.secretFileUnread('/run/secret', 'it is empty'),
  cannotHost: initErrors.cannotHost('127.0.0.1', 29500, 'port 29500 is in use'),
  storeFailed: initErrors.storeFailed('connect: no store answered within 100 ms'),
  unknownOptions: optionErrors.unknownOptions(
    'allReduce',
    "unknown option 'async_op'; expected timeoutMs, op",
    'Every verb returns a Work at once; its Sync form blocks.',
  ),
  wrongOption: optionErrors.wrongOption('allReduce', 'reproducible', 'true or false', 'yes'),
  unknownBackend: initErrors.unknownBackend('gloo', ['solo', 'host']),
  notABackend: initErrors.notABackend(),
  nativeMpiMissing: initErrors.nativeMpiMissing('linux-x64', ['mpi-openmpi.node (not found)']),
  notOneWorld: initErrors.notOneWorld([1, 1], 'Open MPI v4.1.4'),
  noneStays: initErrors.noneStays(),
  leftBehind: initErrors.leftBehind([0, 2]),
  mpiNotUsable: initErrors.mpiNotUsable('it has ended in this process'),
  srunWithoutMpi: initErrors.srunWithoutMpi(),
  unknownMpi: initErrors.unknownMpi('lam'),
  tooLongForMpi: errors.tooLongForMpi('allGather', 2 ** 31),
  nativeMissing: initErrors.nativeMissing(
    'linux-x64',
    'it is not installed',
    ['coll.node (not found)'],
    'Install it.',
  ),
  backendNotLoaded: initErrors.backendNotLoaded('host', 'no addon'),
  notDifferentiable: acrossErrors.notDifferentiable('across.allReduce', 'an object (Float32Array)'),
  useNotGiven: acrossErrors.useNotGiven('across.allReduce', 'after', undefined),
  opHasNoGradient: acrossErrors.opHasNoGradient('across.allReduce', 'max'),
  badDim: acrossErrors.badDim('across.allGather', 'dim', 3, 2),
  badSizes: acrossErrors.badSizes('across.allGather', 'sizes', 2, "this rank's being 4", [3, 4]),
  unevenDim: acrossErrors.unevenDim('across.reduceScatter', 0, 5, 2, 'sizes'),
  gradientCannotBlock: acrossErrors.gradientCannotBlock('across.enter', 'tcp'),
  axesDoNotMultiply: meshErrors.axesDoNotMultiply('3 × 2', 6, 8),
  restDoesNotDivide: meshErrors.restDoesNotDivide('dp', 3, 8),
  twoRests: meshErrors.twoRests('dp', 'tp'),
  badAxisName: meshErrors.badAxisName("'2'"),
  axisTwice: meshErrors.axisTwice('dp'),
  unknownAxis: meshErrors.unknownAxis('mesh.axis', "'pp'", ['dp', 'tp']),
  meshClosed: meshErrors.meshClosed('mesh.axis'),
};

describe('errors', () => {
  it('are sentences with what happened, where, and what to do', () => {
    const messages = Object.values(failures).map((failure) => new CollectiveError(failure, site).message);
    expect(`\n${messages.join('\n')}\n`).toMatchInlineSnapshot(`
      "
      barrier: no answer from ranks 2, 5 within 30000 ms (group "dp", rank 0 of 8, seq 12). A rank may be stuck or may have skipped this call.
      allReduce: it has not ended after 500 ms of wait() (group "dp", rank 0 of 8, seq 3). It continues: await it again, or end all with group.abort().
      allReduce: lost rank 2 (tcp 10.0.0.7:40112: connection reset) (group "dp", rank 0 of 8, seq 9). See what that rank printed last; if it ended well, it made fewer calls than the others; for data of uneven length ddp() has model.join().
      allReduce: rank 3 called allReduce sum 4096 × float16 but rank 0 called allReduce sum 4096 × float32 (group "dp", rank 0 of 8, seq 117). All ranks must make the same calls in the same order.
      abort: rank 1 aborted the group: loss is NaN (group "dp", rank 0 of 8).
      init: libnccl.so.2 is version 2.26.6; expected NCCL 2.27 or newer (group "dp", rank 0 of 8). Install NCCL 2.27 or newer, or set RINGWISE_LIBNCCL to its libnccl.so.2.
      allReduce: mmap: cannot allocate memory (group "dp", rank 0 of 8, seq 4).
      barrier: epoll failed on rank 1 (group "dp", rank 0 of 8, seq 3).
      allReduce: the CUDA device of rank 0 reported cuMemcpyDtoHAsync: an illegal address (group "dp", rank 0 of 8, seq 4).
      backend: rank 2 failed with RangeError: Invalid array length (group "dp", rank 0 of 8).
      init: cannot make this rank's end of the group: eventfd: Too many open files (group "dp", rank 0 of 8). Check the limits of the process (ulimit -n, ulimit -u), and close groups that it no longer needs.
      init: cannot read which host this is: EMFILE: too many open files, open '/proc/sys/kernel/random/boot_id' (group "dp", rank 0 of 8). Raise the limit of open files (ulimit -n).
      broadcast: the tcp backend cannot send a buffer of 4400000000 bytes; expected at most 4294967296 in this version of Node (group "dp", rank 0 of 8). Divide it over several calls, or use the backend 'host'.
      allReduce: rank 2 has detached a buffer of the call before its turn came (group "dp", rank 0 of 8, seq 6). Transfer a buffer only after its call has ended.
      allReduce: rank 0 called allReduce sum 262112 × float32 with digest 1b but rank 1 called allReduce sum 262112 × float32 with digest 2f (group "dp", rank 0 of 8, seq 7). All ranks must make the same calls in the same order. This rank called allReduce sum 600000 × float32, which is sent in 3 pieces; the digest covers the whole lengths.
      elementsOf: expected memory that JavaScript can access, got that of cuda:0 (group "dp", rank 0 of 8). Give one buffer in the place of a list of parts, or copy to host memory first.
      allReduce: the group failed earlier, barrier: no answer from ranks 2, 5 within 30000 ms (group "dp", rank 0 of 8). Make a new group with init().
      send: the group is closed (group "dp", rank 0 of 8).
      allReduce: cannot use a plain array as a buffer; expected a typed array, { data, dtype } for float16, bfloat16, floats of 8 bits and bool, or an object with a Symbol.for("ringwise.buffer") member (group "dp", rank 0 of 8). Use Float32Array.from(array).
      recv: the buffer is detached (group "dp", rank 0 of 8). Its memory was transferred to another thread or freed.
      allReduce: the buffer is in a resizable ArrayBuffer; expected memory of a fixed length (group "dp", rank 0 of 8). Pass a copy, such as array.slice(), or make the ArrayBuffer without maxByteLength.
      alloc: unknown dtype float8; expected one of float32, float16 (group "dp", rank 0 of 8).
      allReduce: data does not hold float16; expected Uint16Array, got Int16Array (group "dp", rank 0 of 8).
      allReduce: it must not write this buffer: the tensor requires a gradient (group "dp", rank 0 of 8). Call it inside noGrad(() => …).
      allReduce: the object's "ringwise.buffer" member returned no valid BufferView: count is -1 (group "dp", rank 0 of 8).
      init: the native addon of the host backend is built for macOS and has not been run there yet (group "dp", rank 0 of 8). RINGWISE_BACKEND=host uses it anyway.
      send: a group of one rank has no other rank to exchange messages with (group "dp", rank 0 of 8). Start several ranks, as with \`npx ringwise run --nproc-per-node 2\`, or leave the call out where group.size is 1.
      allGather: input is a list and output is one buffer; expected one buffer as input and 2 parts as output, or two lists (group "dp", rank 0 of 8). The input comes first: allGather(input, output).
      allReduce: contributions are always added reproducibly; expected reproducible: true or no such option, got false (group "dp", rank 0 of 8). Without contributions, add the buffers of this rank before the call.
      group.all_reduce(): there is no member of this name (group "dp", rank 0 of 8).
      allReduce: unknown op 'mean'; expected 'avg' (group "dp", rank 0 of 8).
      allReduce: 'avg' is not defined for int32; use 'sum' and divide (group "dp", rank 0 of 8). Supported on int32: sum, min, max, prod.
      allReduce: op 'premulSum' needs this rank's factor; expected a number, got NaN (group "dp", rank 0 of 8).
      allReduce: 'factor' has no meaning for op 'sum'; it belongs to 'premulSum' (group "dp", rank 0 of 8).
      broadcast: root is not a rank of the group; expected 0 to 7, got 8 (group "dp", rank 0 of 8).
      send: rank 0 is this rank itself; expected another one (group "dp", rank 0 of 8). Copy the memory instead.
      allGather: input and output differ in dtype; expected float32 for both, output is int32 (group "dp", rank 0 of 8).
      allGather: input and output are on different devices; expected one for both, input is on the host, output on cuda:0 (group "dp", rank 0 of 8). Copy one of them to the other device first.
      allGather: output has the wrong length; expected 80 elements, got 10 (group "dp", rank 0 of 8).
      allToAll: 10 elements cannot be split evenly; expected a multiple of 4 (group "dp", rank 0 of 8). Pass sendCounts and recvCounts for parts of different lengths.
      gather: counts is not usable; expected a length for each of 3 ranks, got [1, -1] (group "dp", rank 0 of 8).
      allToAll: of sendCounts and recvCounts only one is given; expected both or neither (group "dp", rank 0 of 8).
      allToAll: counts differ for rank 2 itself; it sends 3 elements and expects 4 (group "dp", rank 0 of 8).
      gather: only the root, rank 1, has an output; expected null, got a buffer (group "dp", rank 0 of 8).
      allGather: output is a list of the wrong length; expected a part for each of 4 ranks, got 3 (group "dp", rank 0 of 8).
      scatter: input has the wrong length for rank 2; expected 10 elements, got 11 (group "dp", rank 0 of 8). Where parts differ, pass the same \`counts\` on all ranks.
      allGather: input and output are lists of different lengths; expected 3 buffers, got 2 (group "dp", rank 0 of 8).
      allGather: the parts of output differ in dtype; expected one for all, got float32, int8 (group "dp", rank 0 of 8).
      allGather: output is a list of memory that JavaScript cannot access; expected one buffer (group "dp", rank 0 of 8). Only host memory can be copied to and from a list.
      shrink: this group has no store in which its ranks could meet; groups of init() have one (group "dp", rank 0 of 8).
      shrink: the members of an elastic job agree on their next group themselves (group "dp", rank 0 of 8). Await job.membership.next().
      shrink: it cannot tell which ranks are lost; expected ranks of the group, got [9] (group "dp", rank 0 of 8). Name the ranks to leave out in \`without\`; by default they are those that the failure names.
      allToAll: of input and output only one is a list; expected two lists or two buffers (group "dp", rank 0 of 8).
      allToAll: lists and counts are both given; expected one of them: lists have lengths of their own (group "dp", rank 0 of 8).
      allGather: 'counts' has no meaning for many buffers in one call; expected one input and one output (group "dp", rank 0 of 8).
      allReduce: it cannot be part of a step that is being captured: the host backend takes no part in that; expected a collective on memory of that step's device, by the nccl backend (group "dp", rank 0 of 8). Call it before or after the step.
      reduce: there is no reproducible 'prod' of float32; expected 'sum' or 'avg' of float32, float64 (group "dp", rank 0 of 8). Integers, and min and max, have the same bits in any order anyway.
      allReduce: a reproducible reduction needs memory that JavaScript can access (group "dp", rank 0 of 8).
      allReduce: a reproducible reduction has one buffer; expected no list (group "dp", rank 0 of 8). Its bits do not depend on the cuts: one call for each buffer gives the same.
      allReduce: reproducible sums travel as integers; expected no wire, got 'bfloat16' (group "dp", rank 0 of 8). Leave one of the two out.
      allReduce: there is no wire 'int4'; expected 'full', 'bfloat16' or 'int8' (group "dp", rank 0 of 8).
      allReduce: a residual holds the rounding errors of wire 'int8'; expected that wire, got 'bfloat16' (group "dp", rank 0 of 8).
      allReduce: a residual belongs to one buffer; expected no list (group "dp", rank 0 of 8). Call once for each buffer.
      allReduce: the residual shares memory with the buffer; expected memory of its own (group "dp", rank 0 of 8). Keep a Float32Array of zeros for each buffer.
      allReduce: the residual does not fit the buffer; expected 100 × float32, got 99 × float64 (group "dp", rank 0 of 8).
      allReduce: wire 'bfloat16' is for sum and avg of float32, got max of float64 (group "dp", rank 0 of 8).
      allReduce: too many addends for a reproducible sum; expected at most 1048576, got 2000000 (group "dp", rank 0 of 8).
      init: timeoutMs is not usable; expected 1 to 2147483647 milliseconds, got soon (RINGWISE_TIMEOUT_MS) (group "dp", rank 0 of 8).
      send: tag is not usable; expected 0 to 536870911, got -1 (group "dp", rank 0 of 8).
      sendObject: the value cannot be sent: () => {} could not be cloned (group "dp", rank 0 of 8). Send values that structured clone accepts: data, no functions.
      gatherObject: the objects are too large; expected at most 1073741824 bytes together, got 2147483648 (group "dp", rank 0 of 8). Send large data as typed arrays.
      recvObject: this rank cannot read the object that arrived: Unable to deserialize cloned data (group "dp", rank 0 of 8). Do all ranks run the same version of Node?
      scatterObject: the root has no values; expected one for each of 4 ranks (group "dp", rank 0 of 8).
      split: color is not usable; expected a whole number, or null for no group, got 0.5 (group "dp", rank 0 of 8).
      split: key is not usable; expected a number, got NaN (group "dp", rank 0 of 8).
      subgroup: the list of ranks is not usable; expected different ranks from 0 to 3, got [0, 0] (group "dp", rank 0 of 8).
      split: this group cannot have subgroups; it was made without the \`subgroups\` option (group "dp", rank 0 of 8). Groups of init() and loopbackGroups() can.
      reduceScatter: input and output share memory; expected two separate buffers (group "dp", rank 0 of 8). Copy the input first.
      allReduce: buffer 0 and buffer 2 share memory that the call writes; expected separate buffers (group "dp", rank 0 of 8). Pass each buffer once, or a copy.
      barrier: timeoutMs is not usable; expected 1 to 2147483647 milliseconds, got '60000' (group "dp", rank 0 of 8).
      allReduce: label is not usable; expected a string that is not empty, got 3 (group "dp", rank 0 of 8).
      alloc: count is not usable; expected a whole number of elements, got 1.5 (group "dp", rank 0 of 8).
      alloc: the host backend has no memory for 1125899906842624 × float32: allocating shared memory: Cannot allocate memory (group "dp", rank 0 of 8). Allocate less at a time, or pass typed arrays of your own.
      registerBackend: there is a backend named 'host' already; expected a new name (group "dp", rank 0 of 8).
      send: the solo backend does not have it (group "dp", rank 0 of 8). It has: allReduce, barrier.
      allReduce: the host backend cannot reach cuda:0 memory; expected cpu (group "dp", rank 0 of 8). Copy it to such memory first, or use a backend that can access it.
      barrier: the loopback backend may not block this thread (group "dp", rank 0 of 8). Await the asynchronous form.
      alloc: memory of the nccl backend is not visible to JavaScript (group "dp", rank 0 of 8).
      barrier: no answer from rank 2 within 1000 ms (group "dp", rank 0 of 8, seq 12). A rank may be stuck or may have skipped this call. Flight records of its ranks are in /var/flight.
      init: cannot write to the folder /flight, which RINGWISE_FLIGHT_DIR names for flight records: permission denied (group "dp", rank 0 of 8). Set it to a folder that all ranks may write to.
      init: ranks 2, 3 of 4 did not arrive within 30000 ms (group "dp", rank 0 of 8). Were they started, and do they use the same store and the same number of init() calls?
      init: ranks 2, 3 of 4 did not arrive within 30000 ms; rank 3 is PyTorch with gloo: the store is shared, collectives are not (group "dp", rank 0 of 8). See "Python and Node in one job" in docs/launch.md.
      init: rank 1 has arrived already; expected every rank once (group "dp", rank 0 of 8). Two processes have the same rank, or the store holds the keys of an earlier run.
      init: two processes are rank 1, process 12 on a and process 9 on b; expected every rank once (group "dp", rank 0 of 8). Give each process a RANK of its own.
      init: rank 1 cannot take part: there is no driver (group "dp", rank 0 of 8). Install one.
      init: rank 2 arrived after the others had given up waiting (group "dp", rank 0 of 8). Start all ranks together.
      init: rank 1 was started with size 4 but rank 0 with 2 (group "dp", rank 0 of 8).
      init: rank and size do not fit (from url); expected 0 <= rank < size, got rank 4, size none (group "dp", rank 0 of 8). Pass both, or neither: a launcher such as \`npx ringwise run\` sets them.
      init: the backend solo is for one rank; expected 'auto', 'host' or another backend for 2 ranks (group "dp", rank 0 of 8). Check the option backend and RINGWISE_BACKEND. A group of this rank alone: init({ rank: 0, size: 1 }).
      init: env:// found no launcher in the environment; expected RANK and WORLD_SIZE, or the variables of srun or mpirun (group "dp", rank 0 of 8). Start the script with \`npx ringwise run\`, or pass rank, size and url.
      init: RANK and WORLD_SIZE do not name a rank; expected two whole numbers, got RANK '1', WORLD_SIZE not set (group "dp", rank 0 of 8). Set both, or neither for a group of one; \`npx ringwise run\` sets them.
      init: MASTER_PORT is 'abc'; expected a port from 1 to 65535 (group "dp", rank 0 of 8). Set MASTER_PORT to the same port for all ranks.
      init: RINGWISE_ALGO_X names no verb; expected one of RINGWISE_ALGO_SEND (group "dp", rank 0 of 8).
      init: the job has 1000000 ranks (from env); expected at most 65536 (group "dp", rank 0 of 8). Check WORLD_SIZE.
      init: MASTER_PORT is not set and pmi does not tell where rank 0 is (group "dp", rank 0 of 8). Set MASTER_PORT to the same value for all ranks.
      init: cannot use url 'http://x'; expected env://, tcp://host:port or file:///directory (group "dp", rank 0 of 8).
      init: store and url are both given; expected one of them (group "dp", rank 0 of 8).
      init: rank and size are unknown; expected both, as options, in the url or from a launcher (group "dp", rank 0 of 8).
      init: the store at node-a:29500 can be reached from other hosts, and there is no secret (group "dp", rank 0 of 8). Set RINGWISE_SECRET to the same long random text for all ranks.
      init: RINGWISE_SECRET_FILE names /run/secret, which has no secret (it is empty) (group "dp", rank 0 of 8). Write a long random text into it, the same for all ranks.
      init: rank 0 cannot host the store at 127.0.0.1:29500 (port 29500 is in use) (group "dp", rank 0 of 8). An earlier run may hold the port: choose another MASTER_PORT. If a store is served there on purpose, pass it: init({ rank, size, store }).
      init: the store failed (connect: no store answered within 100 ms) (group "dp", rank 0 of 8).
      allReduce: unknown option 'async_op'; expected timeoutMs, op (group "dp", rank 0 of 8). Every verb returns a Work at once; its Sync form blocks.
      allReduce: reproducible is not usable; expected true or false, got 'yes' (group "dp", rank 0 of 8).
      init: no backend named 'gloo'; expected auto, solo, host (group "dp", rank 0 of 8). PyTorch's gloo backend corresponds to 'host' here. See registerBackend().
      init: the factory of the backend made something else than a Backend; expected an object with contract: 1 and the members of this type (group "dp", rank 0 of 8). docs/backends.md says what each has to do.
      init: the mpi backend is not available for linux-x64 (tried mpi-openmpi.node (not found)) (group "dp", rank 0 of 8). No release has it, because MPIs have no common ABI. Build it where mpicc is, by npm run build in a checkout of ringwise, and set RINGWISE_NATIVE_PATH to its folder native/build/Release.
      init: the ranks do not share one MPI world of Open MPI v4.1.4; expected all of them in one, got worlds of 1 processes (group "dp", rank 0 of 8). Start the ranks by the mpirun or srun of that MPI. RINGWISE_MPI=openmpi or mpich says which one that is.
      shrink: no rank would stay, as every rank of the group is left out; expected at least one to stay (group "dp", rank 0 of 8). Pass the ranks that are lost as { without }. If calls did not match, none is lost: make a new group with init().
      shrink: the others have continued without this rank, as ranks 0, 2 (group "dp", rank 0 of 8). It arrived too late, or the others considered it lost: end this process.
      init: MPI cannot be used: it has ended in this process (group "dp", rank 0 of 8).
      init: srun has started this process without an MPI (group "dp", rank 0 of 8). Call srun with --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH and its kin); srun --mpi=list tells which it has.
      init: RINGWISE_MPI names no MPI that ringwise knows; expected openmpi or mpich, got 'lam' (group "dp", rank 0 of 8).
      allGather: 2147483648 elements in parts are too many for MPI; expected at most 2147483647 for all ranks together (group "dp", rank 0 of 8). Call it on pieces.
      init: there is no native addon for linux-x64: it is not installed (tried coll.node (not found)) (group "dp", rank 0 of 8). Install it.
      init: the host backend cannot be loaded: no addon (group "dp", rank 0 of 8).
      across.allReduce: expected a tensor, which offers its autograd as a Symbol.for("ringwise.differentiable") member, got an object (Float32Array) (group "dp", rank 0 of 8). Typed arrays have no gradients: call the verb on the group.
      across.allReduce: after is not usable; expected 'same' if all ranks compute the same from the result, 'own' if each computes something of its own, got undefined (group "dp", rank 0 of 8). There is no default: the gradient depends on it.
      across.allReduce: op 'max' has no gradient here; expected 'sum' or 'avg' (group "dp", rank 0 of 8). For the values alone, call the verb on the group with a detached copy of the tensor.
      across.allGather: dim is not usable; expected a dimension from -2 to 1, got 3 (group "dp", rank 0 of 8).
      across.allGather: sizes is not usable; expected a length for each of 2 ranks, this rank's being 4, got [3, 4] (group "dp", rank 0 of 8).
      across.reduceScatter: dimension 0 cannot be split evenly; expected a multiple of 2, got 5 (group "dp", rank 0 of 8). Pass sizes for parts of different lengths.
      across.enter: its gradient needs communication inside backward, which has to block, and the tcp backend may not block this thread (group "dp", rank 0 of 8). Use the backend host or nccl, or a verb whose gradient needs none.
      mesh: the sizes of the axes do not multiply to the size of the group; expected 8, got 3 × 2 = 6 (group "dp", rank 0 of 8). One axis may have the size 'rest'.
      mesh: no whole number is left for axis 'dp', which takes the rest; expected other axes that divide 8, got 3 (group "dp", rank 0 of 8).
      mesh: both 'dp' and 'tp' take the rest; expected one axis at most (group "dp", rank 0 of 8).
      mesh: the name of an axis is not usable; expected letters, digits and _, no digit first, got '2' (group "dp", rank 0 of 8).
      mesh: 'dp' names an axis and a combination; expected one of them (group "dp", rank 0 of 8).
      mesh.axis: the mesh has no axis 'pp'; expected one of dp, tp (group "dp", rank 0 of 8).
      mesh.axis: the mesh is closed (group "dp", rank 0 of 8).
      "
    `);
  });

  it('leave out where they come from when that is not known yet', () => {
    const error = new CollectiveError(initErrors.noLauncher(), null);
    expect(error.message).not.toContain('rank 0');
    expect([error.group, error.rank, error.size]).toEqual([null, null, null]);
  });

  it('cut long lists of ranks', () => {
    const ranks = Array.from({ length: 20 }, (_, rank) => rank);
    expect(errors.rankList(ranks)).toBe('ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more');
  });

  it('are secondary where another rank failed first', () => {
    const isSecondary = (failure: Failure) => new CollectiveError(failure, site).secondary;
    expect(isSecondary(errors.peerLost('barrier', 1, 2, 'gone'))).toBe(true);
    expect(isSecondary(errors.aborted(2, 'x'))).toBe(true);
    expect(isSecondary(errors.aborted(0, 'x'))).toBe(false);
    expect(isSecondary(errors.timedOut('barrier', 1, [2], 10))).toBe(false);
  });

  it('are recognised across copies of the package, and nothing else is', () => {
    const foreign = { [Symbol.for('ringwise.CollectiveError')]: true };
    expect([first, foreign, new Error('x'), null, 'ERR_COLL_TIMEOUT'].map(CollectiveError.is)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  it('every message builder is in the list above', () => {
    const builders = Object.keys({
      ...acrossErrors,
      ...errors,
      ...initErrors,
      ...meshErrors,
      ...optionErrors,
    }).filter(
      (name) => !['CollectiveError', 'local', 'rankList', 'shown', 'reasonText', 'isTimeout'].includes(name),
    );
    expect(Object.keys(failures).sort()).toEqual(builders.sort());
  });
});
