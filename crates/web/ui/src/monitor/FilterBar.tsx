import type { ComponentChildren } from 'preact';
import { count } from '../common/format';
import { KIND_LABELS, KINDS, type Difficulty, type Kind } from './cells';
import { NO_FILTER, isFiltering, type Filter } from './filters';

interface Props {
  filter: Filter;
  counts: Map<Kind, number>;
  domains: string[];
  set: (filter: Filter) => void;
  children: ComponentChildren;
}

/** The filters: chips by state, which are also the legend and show counts, and fields by properties of the tasks. */
export function FilterBar({ filter, counts, domains, set, children }: Props) {
  const toggle = (kind: Kind) =>
    set({ ...filter, kinds: filter.kinds.includes(kind) ? filter.kinds.filter((selected) => selected !== kind) : [...filter.kinds, kind] });
  return (
    <div class="filters" role="group" aria-label="Filters">
      <div class="chips">
        {KINDS.map((kind) => (
          <button
            key={kind} type="button" class="chip" data-kind={kind} aria-pressed={filter.kinds.includes(kind)}
            title={`${KIND_LABELS[kind].about}. Click to show only these.`} onClick={() => toggle(kind)}
          >
            <span class={`swatch kind-${kind}`} aria-hidden="true">{KIND_LABELS[kind].letter.length > 1 ? 'e' : KIND_LABELS[kind].letter}</span>
            {KIND_LABELS[kind].label} <b class="number">{count(counts.get(kind) ?? 0)}</b>
          </button>
        ))}
      </div>
      <div class="selects">
        <label>Domain{' '}
          <select value={filter.domain} onChange={(event) => set({ ...filter, domain: event.currentTarget.value })}>
            <option value="">all</option>
            {domains.map((domain) => <option key={domain} value={domain}>{domain}</option>)}
          </select>
        </label>
        <label>Difficulty{' '}
          <select value={filter.difficulty} onChange={(event) => set({ ...filter, difficulty: event.currentTarget.value as Difficulty | '' })}>
            <option value="">all</option>
            <option value="easy">easy</option>
            <option value="medium">medium</option>
            <option value="hard">hard</option>
          </select>
        </label>
        <label><span class="visually-hidden">Search tasks</span>
          <input type="search" placeholder="Search tasks" value={filter.text} onInput={(event) => set({ ...filter, text: event.currentTarget.value })} />
        </label>
        {isFiltering(filter) && <button type="button" onClick={() => set(NO_FILTER)}>Show all</button>}
        {children}
      </div>
    </div>
  );
}
