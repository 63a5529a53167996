import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

/** Something long that opens on demand; what is not open is not in the document. */
export function Pane({ title, note, children }: { title: string; note?: string; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="pane" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}{note && <span class="muted small"> {note}</span>}</summary>
      {open && <div class="pane-body" tabIndex={0} role="region" aria-label={title}>{children()}</div>}
    </details>
  );
}
