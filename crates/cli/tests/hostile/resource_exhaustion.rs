//! Pages that exhaust memory, storage or processors. Each test starts its own farm with small limits.

use std::{fs, path::Path, sync::Arc};

use serde_json::json;
use testkit::{Browser, Lease, Served, eventually, poll_until};

use crate::{
    TIMEOUT, attacks,
    environment::{Environment, within},
};

attacks![
    unbounded_allocation_is_ended,
    unbounded_storage_is_ended,
    unbounded_blobs_are_ended,
    recordings_stay_within_the_space_for_files,
    spinning_workers_are_throttled,
];

const SMALL_FARM: &str = "serve 3 --allow-private-network --max-process-memory 300";

/// Returns the resident memory of a process in MiB.
fn resident_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

async fn wait_until_lost(env: &Environment, lease: &Lease) {
    eventually("the page is ended", TIMEOUT * 3, async || {
        let probe = env.farm.probe(lease).await;
        (probe.status, probe.code().as_str()) == (500, "instance_lost")
    })
    .await;
}

async fn unbounded_allocation_is_ended(_: Arc<Environment>) {
    let env = Environment::with(SMALL_FARM).await;
    let neighbour = env.lease_on(&env.plain_page()).await;
    let browser = env.webgym.browsers().remove(0);
    for allocate in [
        "const piece = new Uint8Array(16 << 20); piece.fill(1); kept.push(piece);",
        "kept.push(Array.from({length: 1e5}, (_, n) => ({n, text: 'x' + n})));",
        "const memory = new WebAssembly.Memory({initial: 256}); new Uint8Array(memory.buffer).fill(1); kept.push(memory);",
    ] {
        let page = format!(
            "<body>allocating<script>const kept = []; setInterval(() => {{ {allocate} }}, 1)</script>"
        );
        let lease = env.lease_on(&env.page(&page)).await;
        wait_until_lost(&env, &lease).await;
        env.farm.reset(&lease).await.ok();
        assert!(env.farm.text(&neighbour).await.contains("a plain page"), "the neighbour keeps its page");
    }
    let metrics = env.farm.http.get("/metrics", &[]).await.text();
    let ended = metrics.lines().find_map(|line| line.strip_prefix("webgym_processes_ended_total "));
    assert!(ended.is_some_and(|count| count != "0"), "{ended:?}");
    assert_eq!(env.webgym.browsers()[0].pid, browser.pid, "the browser keeps running");
    env.farm.reset(&neighbour).await.ok();
    Environment::stop(env, true).await;
}

/// Returns the size of all files below a folder in bytes.
fn disk_usage(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => disk_usage(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

const FILL_STORAGE: &str = "<body>filling<script>
const piece = new Uint8Array(8 << 20); for (let at = 0; at < piece.length; at += 65536) crypto.getRandomValues(piece.subarray(at, at + 65536));
const say = (words) => document.body.append(' ' + words);
addEventListener('load', async () => {
  try { for (let n = 0; ; n++) localStorage.setItem('k' + n, 'crumb'.repeat(20000)); } catch (error) { say('local storage: ' + error.name + ';'); }
  try { for (let n = 0; ; n++) sessionStorage.setItem('k' + n, 'crumb'.repeat(20000)); } catch (error) { say('session storage: ' + error.name + ';'); }
  for (let n = 0; n < 400; n++) document.cookie = `c${n}=${'crumb'.repeat(600)}`;
  const opening = indexedDB.open('crumbs', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('all');
  const database = await new Promise((done) => { opening.onsuccess = () => done(opening.result); });
  const cache = await caches.open('crumbs').catch(() => null);
  for (let n = 0; ; n++) {
    await new Promise((done, failed) => { const writing = database.transaction('all', 'readwrite'); writing.objectStore('all').put(piece, n); writing.oncomplete = done; writing.onabort = () => failed(writing.error); });
    if (cache) await cache.put('/crumb' + n, new Response(piece));
    document.title = 'stored ' + n * 16;
  }
});
</script>";

async fn unbounded_storage_is_ended(_: Arc<Environment>) {
    let env = Environment::with(SMALL_FARM).await;
    let neighbour = env.lease_on(&env.plain_page()).await;
    let browser = env.webgym.browsers().remove(0);
    let before = disk_usage(env.webgym.folder());
    let url = env.page(FILL_STORAGE);
    let lease = env.lease_on(&url).await;
    let mut max = 0;
    eventually("the page is ended", TIMEOUT * 3, async || {
        max = max.max(resident_mib(browser.pid));
        env.farm.probe(&lease).await.code() == "instance_lost"
    })
    .await;
    assert!(max > 200, "the page must have stored something: {max} MiB");
    assert!(max < 1500, "{max} MiB in the browser");
    let written = disk_usage(env.webgym.folder()).saturating_sub(before);
    assert!(written < 50 << 20, "{written} bytes on disk");
    assert!(env.farm.text(&neighbour).await.contains("a plain page"), "the neighbour keeps its page");
    assert_eq!(env.webgym.browsers()[0].pid, browser.pid, "the browser keeps running");
    eventually("the memory is released", TIMEOUT, async || resident_mib(browser.pid) < 290).await;
    env.farm.reset(&lease).await.ok();
    let checking = env.page(
        "<body>checking<script>indexedDB.databases().then(async (all) => document.body.append('; found ' + all.length + ' ' + \
         (await caches.keys().catch(() => [])).length + ' ' + localStorage.length + ' ' + sessionStorage.length + ' ' + document.cookie.length))</script>",
    );
    let next = env.lease_on(&checking).await;
    env.wait_for_text(&next, "found 0 0 0 0 0").await;
    for lease in [next, neighbour] {
        env.farm.reset(&lease).await.ok();
    }
    Environment::stop(env, true).await;
}

async fn unbounded_blobs_are_ended(_: Arc<Environment>) {
    let env = Environment::with(SMALL_FARM).await;
    let neighbour = env.lease_on(&env.plain_page()).await;
    let browser = env.webgym.browsers().remove(0);
    let page = env.page(
        "<body>blobs<script>const kept = []; let n = 0; setInterval(() => { const piece = new Uint8Array(16 << 20); piece.fill(n++); \
         kept.push(URL.createObjectURL(new Blob([piece]))); }, 20)</script>",
    );
    let lease = env.lease_on(&page).await;
    wait_until_lost(&env, &lease).await;
    assert!(env.farm.text(&neighbour).await.contains("a plain page"), "the neighbour keeps its page");
    assert_eq!(env.webgym.browsers()[0].pid, browser.pid, "the browser keeps running");
    for lease in [lease, neighbour] {
        env.farm.reset(&lease).await.ok();
    }
    Environment::stop(env, true).await;
}

/// Returns the nice value of every thread of a process.
async fn recordings_stay_within_the_space_for_files(_: Arc<Environment>) {
    let env = Environment::with("serve 1 --allow-private-network --max-node-files 0").await;
    let lease = env.farm.get_with(&json!({"record": true})).await;
    env.farm.visit(&lease, &env.plain_page()).await;
    eventually("the recording ends at the limit", TIMEOUT, async || {
        let index = env.farm.recording(&lease, "recording.json").await.ok();
        assert_eq!(index["frames"], json!([]));
        index["truncated"] == true
    })
    .await;
    assert!(env.farm.text(&lease).await.contains("a plain page"), "the lease can be used");
    env.farm.reset(&lease).await.ok();
    Environment::stop(env, true).await;
}

fn niceness(pid: u32) -> Vec<i64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()).collect()
}

/// So many that the page gets more than one processor even on a machine where a dozen other threads are busy.
const SPINNING_WORKERS: usize = 48;

/// Returns whether the machine is overloaded, not counting the workers of our page.
fn is_overloaded() -> bool {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    load > SPINNING_WORKERS as f64
        + 2.0 * std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

async fn spinning_workers_are_throttled(_: Arc<Environment>) {
    let env = Environment::with("serve 2 --allow-private-network").await;
    let neighbour = env.lease_on(&env.plain_page()).await;
    env.site
        .serve("/spin.js", Served::File(vec![("content-type", "text/javascript")], b"for (;;);".to_vec()));
    let page = env.page(&format!(
        "<body>workers<script>for (let n = 0; n < {SPINNING_WORKERS}; n++) new Worker('/spin.js')</script>"
    ));
    let lease = env.lease_on(&page).await;
    let browser = env.webgym.browsers().remove(0);
    for _ in 0..5 {
        within(TIMEOUT, "the neighbour keeps working", env.assert_usable(&neighbour)).await;
    }
    let busiest = |browser: &Browser| {
        let renderers = browser.renderers();
        let throttled = |pid: u32| niceness(pid).iter().filter(|nice| **nice == 19).count();
        renderers.into_iter().find(|one| throttled(one.pid) >= SPINNING_WORKERS)
    };
    // On an overloaded machine the page may never get more than one processor; then it is not throttled.
    let throttled = poll_until("the busy page is throttled", TIMEOUT * 2, async || {
        busiest(&browser).map(Some).or_else(|| is_overloaded().then_some(None))
    })
    .await;
    for renderer in
        browser.renderers().iter().filter(|one| throttled.as_ref().is_some_and(|it| it.pid != one.pid))
    {
        assert!(niceness(renderer.pid).iter().all(|nice| *nice < 19), "other renderers are not throttled");
    }
    for lease in [lease, neighbour] {
        env.farm.reset(&lease).await.ok();
    }
    eventually("its renderer is gone", TIMEOUT, async || {
        browser.renderers().iter().all(|one| throttled.as_ref().is_none_or(|it| it.pid != one.pid))
    })
    .await;
    Environment::stop(env, true).await;
}
