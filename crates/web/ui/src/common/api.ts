// Requests to the server of this page. All URLs are relative, so that the page works under any path prefix.

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** Returns the URL of an API route. Parameters without a value are left out of the query. */
export function address(path: string, query: Record<string, string | number | boolean | undefined | null> = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(key, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** Requests JSON. Errors contain the server's message if there is one. */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { headers: { accept: 'application/json' }, credentials: 'same-origin', ...(signal && { signal }) });
  if (!response.ok) throw new ApiError(response.status, await errorText(response));
  return (await response.json()) as T;
}

async function errorText(response: Response): Promise<string> {
  try {
    const body: unknown = JSON.parse(await response.text());
    if (body && typeof body === 'object' && 'detail' in body && typeof body.detail === 'string') return body.detail;
  } catch {
    // Not JSON: report the status alone.
  }
  return `the server responded with status ${response.status}`;
}
