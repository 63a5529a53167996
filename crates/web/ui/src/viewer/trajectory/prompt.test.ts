import { describe, expect, it } from 'vitest';
import { messages } from './prompt';

describe('prompts', () => {
  it('are split into messages', () => {
    const raw = JSON.stringify([
      { role: 'system', content: 'Be <b>good</b>' },
      { role: 'user', content: [{ type: 'text', text: 'Look' }, { type: 'image_url', image_url: { url: 'file:///a/step_003.png' } }, { type: 'x' }] },
    ]);
    expect(messages(raw)).toEqual([
      { role: 'system', parts: [{ kind: 'text', text: 'Be <b>good</b>' }] },
      { role: 'user', parts: [{ kind: 'text', text: 'Look' }, { kind: 'image', text: 'step_003.png' }, { kind: 'text', text: '{"type":"x"}' }] },
    ]);
  });
  it('are null in any other format', () => {
    for (const raw of ['', 'plain words', '{"a":1}', '[1]', '["x"]', 'null']) expect(messages(raw)).toBeNull();
    expect(messages('[]')).toEqual([]);
  });
});
