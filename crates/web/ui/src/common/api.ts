// Talking to the server this page came from: always by relative addresses, so that a path prefix does not matter.

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** The address of a part of the API, with a query of what is set. */
export function address(path: string, query: Record<string, string | number | boolean | undefined | null> = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(key, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** GETs JSON. Errors carry the server's own words where it has some. */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(path, { headers: { accept: 'application/json' }, credentials: 'same-origin', ...(signal && { signal }) });
  if (!answer.ok) throw new ApiError(answer.status, await wordsOf(answer));
  return (await answer.json()) as T;
}

async function wordsOf(answer: Response): Promise<string> {
  try {
    const body: unknown = JSON.parse(await answer.text());
    if (body && typeof body === 'object' && 'detail' in body && typeof body.detail === 'string') return body.detail;
  } catch {
    // Not JSON: the status says what there is to say.
  }
  return `the server answered ${answer.status}`;
}
