// Source of a program that behaves towards its launcher as an elastic one: its ranks keep a chain of views in the
// store, in the form of @ringwise/elastic. Only the launcher is tested with it, so it trains nothing.

/**
 * Returns the source. Each rank prints "pid P slot S start I" and lives until it gets SIGTERM; then it exits with 0.
 * The lowest slot of the first view writes all views: it takes in what announces itself, and drops what has ended by
 * the launcher's account. `atStart` runs in each rank before that, with `slot`, `incarnation`, `id`, `size` and
 * `store`; `inView` runs in each rank when it has seen a view with itself. Each view is `stepsPerView` steps after the
 * one before.
 */
export const elasticProgram = (atStart = '', inView = '', stepsPerView = 10): string => `
import { PrefixStore, TcpStore } from '${import.meta.resolve('@ringwise/store')}';
const { RINGWISE_SLOT, RINGWISE_INCARNATION, RINGWISE_RUN_ID, WORLD_SIZE } = process.env;
const { MASTER_ADDR: host, MASTER_PORT, RINGWISE_SECRET: secret } = process.env;
const [slot, incarnation, size] = [RINGWISE_SLOT, RINGWISE_INCARNATION, WORLD_SIZE].map(Number);
const id = slot + '.' + incarnation;
const open = await TcpStore.connect({ host, port: Number(MASTER_PORT), ...(secret && { secret }) });
const store = new PrefixStore('ringwise/' + RINGWISE_RUN_ID + '/elastic', open);
const text = (bytes) => Buffer.from(bytes).toString();
console.log('pid ' + process.pid + ' slot ' + slot + ' start ' + incarnation);
process.on('SIGTERM', () => process.exit(0));
setInterval(() => {}, 1000);
${atStart}
const wish = await store.add('test-wishes', 1);
await store.set('test-wish/' + wish, id);
if (id === '0.0') void write();
for (let number = 0; ; number++) {
  const view = JSON.parse(text(await store.get('view/' + number, { timeoutMs: 600_000 })));
  if (!view.members.some((member) => member.id === id)) continue;
  console.log('view ' + number + ' has ' + view.members.map((member) => member.id).join(' '));
  ${inView}
}

async function write() {
  let members = [];
  let read = 0;
  for (let number = 0; ; ) {
    const before = members;
    const joined = [];
    while (read < (await store.add('test-wishes', 0))) joined.push(text(await store.get('test-wish/' + ++read)));
    const ended = [];
    for (const each of members) if (await store.check(['ended/' + each])) ended.push(each);
    members = [...members.filter((each) => !ended.includes(each)), ...joined].sort();
    if ((number > 0 || members.length === size) && members.join() !== before.join()) {
      const all = members.map((each) => ({ id: each, slot: Number.parseInt(each, 10), host: 'h' }));
      const codes = await Promise.all(ended.map(async (each) => text(await store.get('ended/' + each))));
      const lost = ended.filter((_, n) => codes[n] !== '0');
      const left = ended.filter((_, n) => codes[n] === '0');
      const view = { number, members: all, joined, lost, left, finalSteps: ${stepsPerView} * number, decision: 'redo', ended: null };
      await store.set('view/' + number, JSON.stringify(view));
      await store.set('head', String(number++));
    } else if (number === 0) {
      read = 0;
      members = [];
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
`;
