import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

/** A collapsible section for long content, which is rendered only while it is open. */
export function Pane({ title, note, children }: { title: string; note?: string; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="pane" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}{note && <span class="muted small"> {note}</span>}</summary>
      {open && <div class="pane-body" tabIndex={0} role="region" aria-label={title}>{children()}</div>}
    </details>
  );
}
