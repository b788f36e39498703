import { BinaryNotFoundError, detect } from 'alhena';

import type { Capabilities, ExecuteOptions } from './types.js';

/** Where Gemini CLI is: by GEMINI_CLI_PATH, in the project, on PATH or in the known places; null when it is nowhere. */
export async function detectCli(options: Pick<ExecuteOptions, 'env' | 'workingDir'> = {}): Promise<string | null> {
  const found = await detect({ trust: true, cwd: options.workingDir, env: options.env });
  return found?.path ?? null;
}

/** What Gemini CLI can do, and whether it is there. Answers also where nothing is installed, `alhena` itself included. */
export async function getCapabilities(
  agentName: 'gemini' = 'gemini',
  options: Pick<ExecuteOptions, 'env' | 'workingDir'> = {},
): Promise<Capabilities> {
  if (agentName !== 'gemini') throw new Error(`Unknown agent type: ${String(agentName)}`);
  const cliPath = await detectCli(options).catch((error: unknown) => {
    if (error instanceof BinaryNotFoundError) return null;
    throw error;
  });
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
    ...(cliPath !== null && { cliPath }),
  };
}
