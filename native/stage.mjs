// Copies what was built into the npm package of this platform, where source checkouts and installed packages look for
// it alike: the addons, and for other languages the library and its header.
import { copyFileSync, existsSync } from 'node:fs';

const platform = `${process.platform}-${process.arch}`;
const target = new URL(`./npm/${platform}/`, import.meta.url);
if (!existsSync(target))
  throw new Error(`native: there is no prebuilt package for ${platform} in native/npm`);
for (const built of ['coll.node', 'tensor.node', 'libringwise.so']) {
  copyFileSync(new URL(`./build/Release/${built}`, import.meta.url), new URL(built, target));
}
copyFileSync(new URL('./coll/include/ringwise.h', import.meta.url), new URL('ringwise.h', target));
