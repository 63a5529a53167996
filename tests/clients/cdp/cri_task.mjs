// chrome-remote-interface, which reads the description of the protocol from the endpoint: does the practice task in the lease
// at CDP_URL. Usage: cri_task.mjs CDP_URL SITE
import { strict as assert } from 'node:assert';
import CDP from 'chrome-remote-interface';

const [cdpUrl, site] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(cdpUrl);
// The addresses of WebSockets have the prefix already.
const alterPath = (path) => (path.startsWith(pathname) ? path : pathname + path);
const address = { host: hostname, port, alterPath };

assert.match((await CDP.Version(address)).Browser, /Chrom/);
const client = await CDP(address);
const { Page, Runtime, Input, SystemInfo } = client;
assert.equal(SystemInfo?.getInfo, undefined, 'refused methods are not described');
await Page.enable();
await Page.navigate({ url: `${site}/course/controlled` });
await Page.loadEventFired();

const evaluate = async (expression) => (await Runtime.evaluate({ expression, returnByValue: true })).result.value;
const type = async (selector, text) => {
  await evaluate(`document.querySelector('${selector}').focus()`);
  for (const character of text) await Input.dispatchKeyEvent({ type: 'char', text: character });
};
await type('#upper', 'heron');
await type('#digits', '2024');
await evaluate("document.querySelector('#save').click()");
assert.equal(await evaluate("document.querySelector('#state-upper').textContent"), 'HERON');
await client.close();
