import { describeNetwork, type NetworkSummary } from './network';
import { UntrustedText } from './UntrustedText';

/** What was recorded or replayed of an episode, with the requests that the archive lacks. */
export function Network({ summary }: { summary: NetworkSummary }) {
  const misses = summary.misses ?? [];
  const more = summary.matches.missed - misses.length;
  return (
    <>
      <span class="number">{describeNetwork(summary)}</span>
      {misses.length > 0 && (
        <ul class="misses small" aria-label="Requests that the archive lacks">
          {misses.map(({ method, url, score }, number) => (
            <li key={number}>
              <UntrustedText class="mono" text={`${method} ${url}`} />
              {score !== undefined && <span class="muted"> most similar recording: {score.toFixed(2)}</span>}
            </li>
          ))}
        </ul>
      )}
      {misses.length > 0 && more > 0 && <span class="muted small">and {more} more</span>}
    </>
  );
}
