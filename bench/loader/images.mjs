// The image folder of bench/loader.ts, for worker threads.
import { ImageFolder } from '@ringwise/data/images';

export default ({ path, size }) => ImageFolder.open(path, { height: size, width: size });
