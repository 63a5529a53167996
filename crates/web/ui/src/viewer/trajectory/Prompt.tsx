import { useMemo } from 'preact/hooks';
import { UntrustedText } from '../../common/UntrustedText';
import { messages } from './prompt';

/** The prompt that the model received, split into messages if possible. */
export function Prompt({ raw }: { raw: string }) {
  const found = useMemo(() => messages(raw), [raw]);
  if (!found) return <pre><UntrustedText text={raw} /></pre>;
  return (
    <ol class="messages">
      {found.map((message, number) => (
        <li key={number}>
          <span class="role"><UntrustedText text={message.role} /></span>
          <div>
            {message.parts.map((part, index) => part.kind === 'image'
              ? <span key={index} class="badge">image <UntrustedText text={part.text} /></span>
              : <UntrustedText key={index} text={part.text} block class="mono" />)}
          </div>
        </li>
      ))}
    </ol>
  );
}
