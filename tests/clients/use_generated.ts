// Drives a session with openapi-fetch and the types that openapi-typescript generated: `use_generated.js URL PAGE`.

import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

function check(condition: boolean, what: unknown): void {
  if (!condition) throw new Error(JSON.stringify(what));
}

const [url, page] = process.argv.slice(2) as [string, string];
const client = createClient<paths, "application/json">({ baseUrl: url, headers: { "x-api-key": "default_key" } });

const lease = await client.POST("/get", { params: { query: { wait_secs: 30 } }, body: { locale: "de-DE" } });
if (!lease.data) throw new Error(lease.error.detail);
const address = lease.data;

const step = await client.POST("/step", {
  body: { ...address, command: { visit_page: { url: page } }, include: ["metadata", "screenshot"] },
});
check(step.data?.metadata?.title === "Log in", step);
check(step.data?.screenshot?.width === 1280, step.data?.screenshot?.width);

const released = await client.POST("/reset", { params: { query: address } });
check(released.data?.status === "success", released);
const again = await client.POST("/reset", { params: { query: address } });
check(again.error?.code === "not_in_use", again);
