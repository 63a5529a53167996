/** Text written by a website, a user or a model. Rendered only as a text node, and isolated so that it cannot change the
 *  direction of the text around it. */
export function UntrustedText({ text, block, class: name }: { text: string | null | undefined; block?: boolean; class?: string }) {
  const classes = name ? `untrusted ${name}` : 'untrusted';
  return block ? <div class={classes} dir="auto">{text ?? ''}</div> : <bdi class={classes}>{text ?? ''}</bdi>;
}
