import { alhena } from './alhena-process.js';
import type { Capabilities } from './types.js';

/** Where Gemini CLI is: by GEMINI_CLI_PATH, in the project, on PATH or in the known places; null when it is nowhere. */
export async function detectCli(env?: NodeJS.ProcessEnv): Promise<string | null> {
  const { exitCode, stdout } = await alhena({ args: ['detect', '--json'], env });
  if (exitCode !== 0) return null;
  const found = JSON.parse(stdout) as { path?: string };
  return found.path ?? null;
}

/** What Gemini CLI can do, and whether it is there. */
export async function getCapabilities(env?: NodeJS.ProcessEnv): Promise<Capabilities> {
  const cliPath = await detectCli(env);
  return {
    supportsSlashCommands: false,
    supportsModels: true,
    models: [
      { id: 'gemini-2.5-pro', name: 'Gemini 2.5 Pro' },
      { id: 'gemini-2.5-flash', name: 'Gemini 2.5 Flash' },
    ],
    supportsWebSearch: true,
    supportsThinking: true,
    installed: cliPath !== null,
    cliPath,
  };
}
