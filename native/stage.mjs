// Copies the built addons into the npm package of this platform, where source checkouts and installed packages
// look for them alike.
import { copyFileSync, existsSync } from 'node:fs';

const platform = `${process.platform}-${process.arch}`;
const target = new URL(`./npm/${platform}/`, import.meta.url);
if (!existsSync(target))
  throw new Error(`native: there is no prebuilt package for ${platform} in native/npm`);
for (const addon of ['coll.node', 'tensor.node']) {
  copyFileSync(new URL(`./build/Release/${addon}`, import.meta.url), new URL(addon, target));
}
