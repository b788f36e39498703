// Hides the settings of folders from Gemini CLI. With --skip-trust it reads `.gemini/settings.json` again for each session over ACP, and
// takes it as trusted once its own copy is older than ten seconds (0.61.0).
'use strict';
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const home = process.env.GEMINI_CLI_HOME || os.homedir();
const { GEMINI_CLI_SYSTEM_SETTINGS_PATH, GEMINI_CLI_SYSTEM_DEFAULTS_PATH } = process.env;
const shown = [path.join(home, '.gemini', 'settings.json'), GEMINI_CLI_SYSTEM_SETTINGS_PATH, GEMINI_CLI_SYSTEM_DEFAULTS_PATH]
  .filter(Boolean)
  .map((file) => path.resolve(file));
const isHidden = (file) => {
  if (typeof file !== 'string' || !file.toLowerCase().endsWith('settings.json')) return false;
  const full = path.resolve(file);
  const folder = path.basename(path.dirname(full)).toLowerCase();
  return folder === '.gemini' && path.basename(full).toLowerCase() === 'settings.json' && !shown.includes(full);
};

const { existsSync, readFileSync } = fs;
fs.existsSync = (file) => !isHidden(file) && existsSync(file);
fs.readFileSync = (file, ...rest) => {
  if (!isHidden(file)) return readFileSync(file, ...rest);
  const error = new Error(`ENOENT: no such file or directory, open '${file}'`);
  throw Object.assign(error, { code: 'ENOENT', errno: -2, syscall: 'open', path: file });
};
require('node:module').syncBuiltinESMExports();
