import { Foreign } from '../common/Foreign';

/** Something could not be read or shown; what works stays in place beside it. */
export function Trouble({ text, title }: { text: string; title?: string }) {
  return (
    <p class="notice" role="alert">
      {title && <strong>{title} </strong>}
      <Foreign text={text} />
    </p>
  );
}

export function Waiting({ what }: { what: string }) {
  return <p class="muted waiting" role="status">Reading {what}…</p>;
}
