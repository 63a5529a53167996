// Puppeteer: does the practice task in the lease at CDP_URL. Usage: puppeteer_task.mjs CDP_URL SITE
import { strict as assert } from 'node:assert';
import puppeteer from 'puppeteer-core';

const [cdpUrl, site] = process.argv.slice(2);
const browser = await puppeteer.connect({
  browserWSEndpoint: cdpUrl.replace(/^http/, 'ws'),
  defaultViewport: null,
});
const [page, ...more] = await browser.pages();
assert.equal(more.length, 0);

const context = await browser.createBrowserContext();
const other = await context.newPage();
await other.evaluateOnNewDocument(() => {
  window.startedWith = document.readyState;
});
await other.goto(`${site}/course/buttons`);
assert.equal(await other.evaluate('startedWith'), 'loading');
assert.ok((await other.screenshot()).length > 5000);
await context.close();

await page.goto(`${site}/course/controlled`);
await page.type('#upper', 'heron');
await page.type('#digits', '2024');
await page.click('#save');
assert.equal(await page.$eval('#state-upper', (element) => element.textContent), 'HERON');
await browser.disconnect();
