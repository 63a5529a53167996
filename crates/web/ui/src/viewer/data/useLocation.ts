import { useEffect, useState } from 'preact/hooks';
import { link, parse, type Location, type Route } from './route';

/** Where we are; changes when the address does. */
export function useLocation(): Location {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listen = () => setHash(location.hash);
    addEventListener('hashchange', listen);
    return () => removeEventListener('hashchange', listen);
  }, []);
  return parse(hash);
}

/** Goes to a place. `replace` leaves no trace in the history: for what is changed many times in a row. */
export function go(route: Route, query?: URLSearchParams, replace = false): void {
  const target = link(route, query);
  if (target === location.hash) return;
  if (replace) location.replace(target);
  else location.hash = target;
}
