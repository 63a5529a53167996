import { count, percent } from '../common/format';
import { UntrustedText } from '../common/UntrustedText';
import type { Statistics } from './store';

/** How archives answered the requests of replayed episodes, by website. Shown only if there are any. */
export function Coverage({ sites }: { sites: Statistics['coverage'] }) {
  if (!sites?.length) return null;
  return (
    <section class="card">
      <h2>Replay</h2>
      <table>
        <thead><tr><th scope="col">Website</th><th scope="col" class="right">Requests</th><th scope="col" class="right">Exact</th><th scope="col" class="right">Normalised</th><th scope="col" class="right">Scored</th><th scope="col" class="right">Missed</th></tr></thead>
        <tbody>
          {sites.map(([site, ...matches]) => {
            const total = matches.reduce((sum, number) => sum + number, 0);
            return (
              <tr key={site}>
                <th scope="row"><UntrustedText text={site} /></th>
                <td class="right number">{count(total)}</td>
                {matches.map((number, kind) => <td key={kind} class="right number">{percent(number, total)}</td>)}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
