/** The provider for promptfoo's `file://`, which takes a module's default export; `package:` takes a named one. */

export { GeminiCli as default } from './index.js';
