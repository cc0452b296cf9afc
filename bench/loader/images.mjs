// Opens the image folder of bench/loader.ts. Worker threads load this module.
import { ImageFolder } from '@ringwise/data/images';

export default ({ path, size }) => ImageFolder.open(path, { height: size, width: size });
