// Playwright for Node: does the practice task in the lease at CDP_URL. Usage: playwright_task.mjs CDP_URL SITE
import { strict as assert } from 'node:assert';
import { chromium } from 'playwright-core';

const [cdpUrl, site] = process.argv.slice(2);
const browser = await chromium.connectOverCDP(cdpUrl);
const context = browser.contexts()[0];
assert.equal(context.pages().length, 1);

const other = await context.newPage();
await other.goto(`${site}/course/buttons`);
const [popup] = await Promise.all([
  other.waitForEvent('popup'),
  other.evaluate((url) => void open(url), `${site}/course/select`),
]);
await popup.waitForLoadState();
assert.equal(popup.url(), `${site}/course/select`);
const session = await context.newCDPSession(other);
assert.equal((await session.send('Runtime.evaluate', { expression: '6 * 7' })).result.value, 42);
await assert.rejects(session.send('Browser.getBrowserCommandLine'), /refused by webgym/);
await popup.close();
await other.close();

const page = context.pages()[0];
await page.goto(`${site}/course/controlled`);
await page.getByLabel('Upper case').fill('heron');
await page.getByLabel('Digits only').pressSequentially('2024');
await page.getByRole('button', { name: 'Save' }).click();
assert.equal(await page.locator('#state-upper').innerText(), 'HERON');
await browser.close();
