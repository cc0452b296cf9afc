export { type ImageBatch, ImageFolder, type ImageFolderOptions, type ImageSample } from './image-folder.ts';
