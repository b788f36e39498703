// The compiler is the test: what this package gives and takes fits what agent-cli-sdk declares.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as sdk from '../src/index.js';
import type * as host from './host.js';

type Fits<Given extends Wanted, Wanted> = Given;

export type Proofs = [
  Fits<sdk.UnifiedMessage, host.UnifiedMessage>,
  Fits<sdk.UnifiedContent, host.UnifiedContent>,
  Fits<sdk.OnEventData, host.OnEventData>,
  Fits<sdk.ExecuteResult<{ n: number }>, host.ExecuteResult<{ n: number }>>,
  Fits<sdk.Capabilities, host.AgentCapabilities>,
  Fits<host.GeminiSpecificOptions, sdk.ExecuteOptions>,
  Fits<host.PermissionMode, sdk.PermissionMode>,
  // And it is a proof: the document's snake case does not fit.
  // @ts-expect-error
  Fits<Omit<sdk.UnifiedMessage, 'usage'> & { usage: { input_tokens: number } }, host.UnifiedMessage>,
];

test('the module has the functions that the SDK calls', () => {
  const fits: host.Sdk = sdk;
  const names = ['execute', 'loadMessages', 'loadSession', 'parse', 'getCapabilities', 'detectCli'] as const;
  for (const name of names) assert.equal(typeof fits[name], 'function');
});
