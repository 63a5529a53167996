import { useEffect, useState } from 'preact/hooks';
import { link, parse, type Location, type Route } from './route';

/** Returns the current page; changes with the URL fragment. */
export function useLocation(): Location {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listen = () => setHash(location.hash);
    addEventListener('hashchange', listen);
    return () => removeEventListener('hashchange', listen);
  }, []);
  return parse(hash);
}

/** Goes to a page. `replace` adds no entry to the history, for values that change many times in a row. */
export function go(route: Route, query?: URLSearchParams, replace = false): void {
  const target = link(route, query);
  if (target === location.hash) return;
  if (replace) location.replace(target);
  else location.hash = target;
}
