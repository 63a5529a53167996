import { UntrustedText } from '../common/UntrustedText';

/** Reports that something could not be loaded; the rest of the page stays usable. */
export function ErrorNotice({ text, title }: { text: string; title?: string }) {
  return (
    <p class="notice" role="alert">
      {title && <strong>{title} </strong>}
      <UntrustedText text={text} />
    </p>
  );
}

/** Shown until the data of a page has arrived. */
export function Loading({ what }: { what: string }) {
  return <p class="muted waiting" role="status">Loading {what}…</p>;
}
