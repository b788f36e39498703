/** So many beginnings are tried; an answer of brackets alone must not take for ever. */
const MOST_STARTS = 64;

/** The first object or array of an answer: the whole answer, else a fenced block, else the first one in the text. */
export function extractJson(text: string): unknown {
  const blocks = text.split('```').filter((_, index) => index % 2 === 1);
  const candidates = [text, ...blocks.map((block) => block.replace(/^[A-Za-z0-9]*/, ''))];
  for (const candidate of candidates) {
    const value = structure(candidate);
    if (value !== undefined) return value;
  }
  const starts = [...text.matchAll(/[{[]/g)].slice(0, MOST_STARTS).map((match) => match.index);
  for (const start of starts) {
    const end = balanced(text, start);
    const value = end === undefined ? undefined : structure(text.slice(start, end));
    if (value !== undefined) return value;
  }
  return undefined;
}

function structure(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Where the bracket at `start` is closed. */
function balanced(text: string, start: number): number | undefined {
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
