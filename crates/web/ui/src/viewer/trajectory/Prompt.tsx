import { useMemo } from 'preact/hooks';
import { Foreign } from '../../common/Foreign';
import { messages } from './prompt';

/** What the model was sent: message by message where it is messages. */
export function Prompt({ raw }: { raw: string }) {
  const found = useMemo(() => messages(raw), [raw]);
  if (!found) return <pre><Foreign text={raw} /></pre>;
  return (
    <ol class="messages">
      {found.map((message, number) => (
        <li key={number}>
          <span class="role"><Foreign text={message.role} /></span>
          <div>
            {message.parts.map((part, place) => part.kind === 'image'
              ? <span key={place} class="badge">image <Foreign text={part.text} /></span>
              : <Foreign key={place} text={part.text} block class="mono" />)}
          </div>
        </li>
      ))}
    </ol>
  );
}
