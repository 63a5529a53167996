// Reads title, URL, structured data and text of the page.

// Bounds on what is read, however large the page is.
const MAX_TEXT_LENGTH = 1000000;
const MAX_ENTRIES = 500;

const metadata = () => {
  const metaTags = {};
  for (const meta of [...document.querySelectorAll('meta[name], meta[property]')].slice(0, MAX_ENTRIES)) {
    const key = meta.getAttribute('name') || meta.getAttribute('property');
    if (key && meta.content) metaTags[key.slice(0, 200)] = meta.content.slice(0, 2000);
  }
  const jsonld = [];
  for (const script of [...document.querySelectorAll('script[type="application/ld+json"]')].slice(0, 20)) {
    try {
      if (script.textContent.length < 100000) jsonld.push(JSON.parse(script.textContent));
    } catch {
      // Invalid JSON is skipped.
    }
  }
  const item = (scope, depth) => {
    const properties = {};
    for (const holder of [...scope.querySelectorAll('[itemprop]')].slice(0, MAX_ENTRIES)) {
      if (holder.parentElement.closest('[itemscope]') !== scope) continue;
      const value = holder.hasAttribute('itemscope') && depth < 5 ? item(holder, depth + 1) : itemValue(holder);
      (properties[holder.getAttribute('itemprop').slice(0, 200)] ??= []).push(value);
    }
    return { type: (scope.getAttribute('itemtype') ?? '').slice(0, 300), properties };
  };
  const itemValue = (holder) => collapseSpaces(holder.content ?? holder.getAttribute('content') ?? holder.href ?? holder.src ?? holder.dateTime ?? holder.textContent);
  const scopes = [...document.querySelectorAll('[itemscope]')].filter((scope) => !scope.parentElement?.closest('[itemscope]'));
  const microdata = scopes.slice(0, 50).map((scope) => item(scope, 0));
  return {
    title: document.title.slice(0, 4096),
    url: location.href.slice(0, 65536),
    ...(Object.keys(metaTags).length && { meta_tags: metaTags }),
    ...(jsonld.length && { jsonld }),
    ...(microdata.length && { microdata }),
  };
};

const text = (lines) =>
  (document.body?.innerText ?? '').slice(0, 10 * MAX_TEXT_LENGTH).split('\n').map((line) => line.trim()).filter(Boolean).slice(0, lines).join('\n')
    .slice(0, MAX_TEXT_LENGTH);
