import type { CamelMessage, CamelUsage, UnifiedMessage } from './types.js';
import type { MessageUsage } from './alhena.js';

/** Usage in camel case. */
export function camelUsage(usage: MessageUsage): CamelUsage {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.total_tokens,
    ...(usage.cached_tokens !== undefined && { cacheReadTokens: usage.cached_tokens }),
    ...(usage.thought_tokens !== undefined && { thoughtTokens: usage.thought_tokens }),
  };
}

/** A message with its usage in camel case. */
export function camelMessage({ usage, ...message }: UnifiedMessage): CamelMessage {
  return usage ? { ...message, usage: camelUsage(usage) } : message;
}
