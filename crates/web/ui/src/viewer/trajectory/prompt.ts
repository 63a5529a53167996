// The messages that a model was sent, taken apart for reading. Pure; see prompt.test.ts.

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
    if (typeof url === 'string') return { kind: 'image', text: url.startsWith('data:') ? 'image in the message' : url.slice(url.lastIndexOf('/') + 1) };
  }
  return { kind: 'text', text: JSON.stringify(value) };
}

/** `null` when the text is not a list of messages: it is shown as it is, then. */
export function messages(raw: string): Message[] | null {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  const found: Message[] = [];
  for (const one of value as unknown[]) {
    if (!one || typeof one !== 'object' || !('content' in one)) return null;
    const role = 'role' in one && typeof one.role === 'string' ? one.role : '?';
    const content: unknown = one.content;
    found.push({ role, parts: Array.isArray(content) ? content.map(part) : [part(content)] });
  }
  return found;
}
