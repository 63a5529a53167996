// Parses the messages of a recorded prompt. Pure functions; see prompt.test.ts.

export interface Part {
  kind: 'text' | 'image';
  text: string;
}

export interface Message {
  role: string;
  parts: Part[];
}

function part(value: unknown): Part {
  if (typeof value === 'string') return { kind: 'text', text: value };
  if (value && typeof value === 'object') {
    if ('text' in value && typeof value.text === 'string') return { kind: 'text', text: value.text };
    const image = 'image_url' in value ? value.image_url : 'image' in value ? value.image : undefined;
    const url = image && typeof image === 'object' && 'url' in image ? image.url : image;
    if (typeof url === 'string') return { kind: 'image', text: url.startsWith('data:') ? 'embedded image' : url.slice(url.lastIndexOf('/') + 1) };
  }
  return { kind: 'text', text: JSON.stringify(value) };
}

/** Returns the messages of a prompt; `null` if the text is not a list of messages and is shown unchanged. */
export function messages(raw: string): Message[] | null {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  const found: Message[] = [];
  for (const message of value as unknown[]) {
    if (!message || typeof message !== 'object' || !('content' in message)) return null;
    const role = 'role' in message && typeof message.role === 'string' ? message.role : '?';
    const content: unknown = message.content;
    found.push({ role, parts: Array.isArray(content) ? content.map(part) : [part(content)] });
  }
  return found;
}
