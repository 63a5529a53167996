/** Text that a page, a person or a model wrote. It is only ever a text node, isolated so that it cannot turn the
 *  direction of what stands around it. */
export function Foreign({ text, block, class: name }: { text: string | null | undefined; block?: boolean; class?: string }) {
  const classes = name ? `foreign ${name}` : 'foreign';
  return block ? <div class={classes} dir="auto">{text ?? ''}</div> : <bdi class={classes}>{text ?? ''}</bdi>;
}
