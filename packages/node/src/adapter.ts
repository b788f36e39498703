/** What adapters for other hosts are made of; most programs want `query`. */

export { environment, runArguments, sessionId, type Options } from './options.js';
export { answer, cancelled, communicate, communicateSync, json, refused, start, type Finished, type Running, type Start } from './process.js';
export { withScratch } from './scratch.js';
