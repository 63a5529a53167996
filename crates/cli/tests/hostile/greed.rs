//! Pages that take all there is: memory, storage, processors. Each has a farm of its own, with small limits.

use std::{fs, path::Path, sync::Arc, time::Duration};

use testkit::{Browser, Lease, Served, eventually, poll_until};

use crate::{
    SECONDS, attacks,
    world::{World, within},
};

attacks![allocates_until_death, fills_every_store, fills_the_browser_with_blobs, spins_on_every_processor,];

const SMALL: &str = "serve 3 --allow-private-network --max-process-memory 300";

/// Resident memory of a process in MiB.
fn megabytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

async fn lost(world: &World, lease: &Lease) {
    eventually("the greedy page is ended", SECONDS * 3, async || {
        let probe = world.farm.probe(lease).await;
        (probe.status, probe.code().as_str()) == (500, "instance_lost")
    })
    .await;
}

async fn allocates_until_death(_: Arc<World>) {
    let world = World::with(SMALL).await;
    let innocent = world.visiting(&world.innocent()).await;
    let browser = world.webgym.browsers().remove(0);
    for take in [
        "const piece = new Uint8Array(16 << 20); piece.fill(1); kept.push(piece);",
        "kept.push(Array.from({length: 1e5}, (_, n) => ({n, text: 'x' + n})));",
        "const memory = new WebAssembly.Memory({initial: 256}); new Uint8Array(memory.buffer).fill(1); kept.push(memory);",
    ] {
        let page =
            format!("<body>greedy<script>const kept = []; setInterval(() => {{ {take} }}, 1)</script>");
        let lease = world.visiting(&world.page(&page)).await;
        lost(&world, &lease).await;
        world.farm.reset(&lease).await.ok();
        assert!(world.farm.text(&innocent).await.contains("an innocent page"), "the neighbour kept its page");
    }
    let metrics = world.farm.http.get("/metrics", &[]).await.text();
    let ended = metrics.lines().find_map(|line| line.strip_prefix("webgym_processes_ended_total "));
    assert!(ended.is_some_and(|count| count != "0"), "{ended:?}");
    assert_eq!(world.webgym.browsers()[0].pid, browser.pid, "the browser lives on");
    world.farm.reset(&innocent).await.ok();
    World::stop(world, true).await;
}

/// Bytes of all files below a folder.
fn on_disk(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => on_disk(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

const STORES: &str = "<body>filling<script>
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

async fn fills_every_store(_: Arc<World>) {
    let world = World::with(SMALL).await;
    let innocent = world.visiting(&world.innocent()).await;
    let browser = world.webgym.browsers().remove(0);
    let before = on_disk(world.webgym.folder());
    let url = world.page(STORES);
    let lease = world.visiting(&url).await;
    let mut most = 0;
    eventually("it is stopped", SECONDS * 3, async || {
        most = most.max(megabytes(browser.pid));
        world.farm.probe(&lease).await.code() == "instance_lost"
    })
    .await;
    assert!(most > 200, "the test itself must fill something: {most} MiB");
    assert!(most < 1500, "{most} MiB in the browser");
    let written = on_disk(world.webgym.folder()).saturating_sub(before);
    assert!(written < 50 << 20, "{written} bytes on disk");
    assert!(world.farm.text(&innocent).await.contains("an innocent page"), "the neighbour kept its page");
    assert_eq!(world.webgym.browsers()[0].pid, browser.pid, "the browser lives on");
    eventually("the memory comes back", SECONDS, async || megabytes(browser.pid) < 290).await;
    world.farm.reset(&lease).await.ok();
    let looking = world.page(
        "<body>looking<script>indexedDB.databases().then(async (all) => document.body.append('; found ' + all.length + ' ' + \
         (await caches.keys().catch(() => [])).length + ' ' + localStorage.length + ' ' + sessionStorage.length + ' ' + document.cookie.length))</script>",
    );
    let next = world.visiting(&looking).await;
    world.says(&next, "found 0 0 0 0 0").await;
    for lease in [next, innocent] {
        world.farm.reset(&lease).await.ok();
    }
    World::stop(world, true).await;
}

async fn fills_the_browser_with_blobs(_: Arc<World>) {
    let world = World::with(SMALL).await;
    let innocent = world.visiting(&world.innocent()).await;
    let browser = world.webgym.browsers().remove(0);
    let page = world.page(
        "<body>blobs<script>const kept = []; let n = 0; setInterval(() => { const piece = new Uint8Array(16 << 20); piece.fill(n++); \
         kept.push(URL.createObjectURL(new Blob([piece]))); }, 20)</script>",
    );
    let lease = world.visiting(&page).await;
    lost(&world, &lease).await;
    assert!(world.farm.text(&innocent).await.contains("an innocent page"), "the neighbour kept its page");
    assert_eq!(world.webgym.browsers()[0].pid, browser.pid, "the browser lives on");
    for lease in [lease, innocent] {
        world.farm.reset(&lease).await.ok();
    }
    World::stop(world, true).await;
}

/// The niceness of the threads of a process.
fn niceness(pid: u32) -> Vec<i64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()).collect()
}

/// More is to be done here than the processors can do, not counting our page's workers.
fn crowded() -> bool {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    load > 24.0 + 2.0 * std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

async fn spins_on_every_processor(_: Arc<World>) {
    let world = World::with("serve 2 --allow-private-network").await;
    let innocent = world.visiting(&world.innocent()).await;
    world
        .site
        .serve("/spin.js", Served::File(vec![("content-type", "text/javascript")], b"for (;;);".to_vec()));
    let page =
        world.page("<body>workers<script>for (let n = 0; n < 24; n++) new Worker('/spin.js')</script>");
    let lease = world.visiting(&page).await;
    let browser = world.webgym.browsers().remove(0);
    for _ in 0..5 {
        within(Duration::from_secs(60), "the neighbour goes on", world.is_well(&innocent)).await;
    }
    let busiest = |browser: &Browser| {
        let renderers = browser.renderers();
        renderers.into_iter().find(|one| niceness(one.pid).iter().filter(|nice| **nice == 19).count() >= 24)
    };
    // On a machine where others work too it may never get more than one processor, and then there is nothing to slow down.
    let slowed = poll_until("the busy page is slowed down", SECONDS * 2, async || {
        busiest(&browser).map(Some).or_else(|| crowded().then_some(None))
    })
    .await;
    for renderer in
        browser.renderers().iter().filter(|one| slowed.as_ref().is_some_and(|it| it.pid != one.pid))
    {
        assert!(niceness(renderer.pid).iter().all(|nice| *nice < 19), "the others keep their place");
    }
    for lease in [lease, innocent] {
        world.farm.reset(&lease).await.ok();
    }
    eventually("its processors are free again", SECONDS, async || {
        browser.renderers().iter().all(|one| slowed.as_ref().is_none_or(|it| it.pid != one.pid))
    })
    .await;
    World::stop(world, true).await;
}
