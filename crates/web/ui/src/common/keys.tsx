import { useEffect, useRef, useState } from 'preact/hooks';

export interface KeyHelp {
  keys: string[];
  description: string;
}

/** Returns true if the key press belongs to an input field. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName));
}

/** Calls back on key presses outside input fields and without modifiers. The handler returns true if it handled the key. */
export function useKeys(handle: (event: KeyboardEvent) => boolean | void): void {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
      if (latest.current(event)) event.preventDefault();
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
}

/** The button and dialog that list the keyboard shortcuts of a page; `?` opens the dialog too. */
export function KeyboardHelp({ keys }: { keys: KeyHelp[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  useKeys((event) => {
    if (event.key !== '?') return false;
    setOpen(true);
    return true;
  });
  return (
    <>
      <button type="button" onClick={() => setOpen(true)} aria-haspopup="dialog">Shortcuts <kbd>?</kbd></button>
      <dialog ref={dialog} onClose={() => setOpen(false)} aria-labelledby="keys-title">
        <h2 id="keys-title">Keyboard shortcuts</h2>
        <dl class="keys">
          {keys.map(({ keys: names, description }) => (
            <>
              <dt>{names.map((name) => <><kbd>{name}</kbd> </>)}</dt>
              <dd>{description}</dd>
            </>
          ))}
        </dl>
        <button type="button" class="primary" onClick={() => setOpen(false)}>Close</button>
      </dialog>
    </>
  );
}
