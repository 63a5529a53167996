//! Pages that try to get out of the page: files, downloads, permissions, the browser's inside, and other tenants.

use std::{fs, path::Path, sync::Arc};

use serde_json::json;
use testkit::{Served, eventually};

use crate::{SECONDS, attacks, world::World};

attacks![
    starts_downloads,
    asks_every_permission,
    follows_forbidden_schemes,
    listens_for_its_neighbours,
    recognises_the_tenant_before,
];

/// Files below a folder that hold these bytes.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.flat_map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => holding(&entry.path(), bytes),
        Ok(data) if data.is_file() => {
            let content = fs::read(entry.path()).unwrap_or_default();
            let held = content.windows(bytes.len()).any(|window| window == bytes);
            held.then(|| entry.path().display().to_string()).into_iter().collect()
        }
        _ => Vec::new(),
    });
    found.collect()
}

async fn starts_downloads(world: Arc<World>) {
    const MARK: &str = "downloaded-7f3a91";
    let headers = vec![
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename=\"a.sh\""),
    ];
    world.site.serve(
        "/attachment",
        Served::File(headers, format!("#!/bin/sh\n# {MARK}\n").repeat(1000).into_bytes()),
    );
    let page = world.page(&format!(
        "<body><script>for (let n = 0; n < 40; n++) {{
          const link = document.createElement('a'); link.download = `../../../../tmp/evil-${{n}}.sh`;
          link.href = n % 2 ? '/attachment' : URL.createObjectURL(new Blob(['{MARK}'.repeat(100)])); document.body.append(link); link.click();
          const frame = document.createElement('iframe'); frame.src = '/attachment?' + n; document.body.append(frame);
        }}
        setTimeout(() => location.href = '/attachment?top', 200); setTimeout(() => document.body.append('all asked'), 1500);</script>"
    ));
    let lease = world.visiting(&page).await;
    world.says(&lease, "all asked").await;
    assert!(world.site.requests().iter().any(|one| one.starts_with("GET /attachment")), "it was asked for");
    let visit = json!({"visit_page": {"url": world.url("/attachment")}});
    world.farm.execute(&lease, visit).await.assert_error(422, "navigation_failed", "download");
    // Chromium has a temporary file of its own for a moment, until it learns that there is to be no download.
    eventually("nothing stays written", SECONDS, async || {
        holding(world.webgym.folder(), MARK.as_bytes()).is_empty()
    })
    .await;
    assert!(!Path::new("/tmp/evil-0.sh").exists() && !Path::new("/tmp/evil-1.sh").exists());
    world.is_well(&lease).await;
    world.farm.reset(&lease).await.ok();
}

const PERMISSIONS: &str = "<body style='height:100vh'><script>
const asks = {
  geolocation: () => new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no)),
  notifications: () => Notification.requestPermission().then((said) => said === 'granted' || Promise.reject()),
  camera: () => navigator.mediaDevices.getUserMedia({video: true}), microphone: () => navigator.mediaDevices.getUserMedia({audio: true}),
  screen: () => navigator.mediaDevices.getDisplayMedia(), midi: () => navigator.requestMIDIAccess({sysex: true}),
  clipboard: () => navigator.clipboard.readText(), push: () => navigator.serviceWorker.ready.then((it) => it.pushManager.subscribe()),
  bluetooth: () => navigator.bluetooth.requestDevice({acceptAllDevices: true}), usb: () => navigator.usb.requestDevice({filters: []}),
  serial: () => navigator.serial.requestPort(), hid: () => navigator.hid.requestDevice({filters: []}).then((all) => all.length || Promise.reject()),
  file: () => showOpenFilePicker(), save: () => showSaveFilePicker(), folder: () => showDirectoryPicker(), fonts: () => queryLocalFonts().then((all) => all.length || Promise.reject()),
  idle: () => IdleDetector.requestPermission().then((said) => said === 'granted' || Promise.reject()),
  payment: () => new PaymentRequest([{supportedMethods: 'https://pay.test/'}], {total: {label: 'x', amount: {currency: 'EUR', value: '1'}}}).show(),
  contact: () => navigator.contacts.select(['name']), credential: () => navigator.credentials.get({publicKey: {challenge: new Uint8Array(8)}}),
  screens: () => getScreenDetails(), share: () => navigator.share({title: 'x'}), ar: () => navigator.xr.requestSession('immersive-vr'),
};
const all = () => Promise.all(Object.entries(asks).map(async ([name, ask]) => {
  let said; try { said = await Promise.race([ask().then(() => 'GRANTED'), new Promise((done) => setTimeout(done, 4000, 'nothing'))]); } catch { said = 'refused'; }
  document.body.append(`${name}: ${said}; `);
})).then(() => document.body.append('all answered.'));
all(); onclick = () => { onclick = null; document.body.textContent = ''; all().then(() => document.body.append(' by a click.')); };
</script>";

async fn asks_every_permission(world: Arc<World>) {
    let lease = world.visiting(&world.page(PERMISSIONS)).await;
    let on_load = world.says(&lease, "all answered.").await;
    world.farm.execute(&lease, json!({"click_coords": {"x": 900, "y": 700}})).await.ok();
    let on_click = world.says(&lease, "by a click.").await;
    for said in [on_load, on_click] {
        assert!(!said.contains("GRANTED"), "{said}");
    }
    // No question hangs over the page that would take its clicks.
    world.is_well(&lease).await;
    let page =
        world.page("<body style='height:100vh' onclick=\"document.body.textContent = 'clicked'\">click");
    world.farm.visit(&lease, &page).await;
    world.farm.execute(&lease, json!({"click_coords": {"x": 640, "y": 60}})).await.ok();
    world.says(&lease, "clicked").await;
    world.farm.reset(&lease).await.ok();
}

async fn follows_forbidden_schemes(world: Arc<World>) {
    let mut lease = world.farm.get().await;
    for url in [
        "file:///etc/passwd",
        "chrome://version",
        "chrome://crash",
        "chrome://gpucrash",
        "chrome-untrusted://print/",
        "devtools://devtools/bundled/inspector.html",
        "view-source:file:///etc/passwd",
        "filesystem:http://x/temporary/",
        "data:text/html,<title>data</title>top",
        "javascript:document.write('file:///etc/passwd')",
        "about:inducebrowsercrashforrealz",
    ] {
        let page = world.page(&format!(
            "<body style='height:100vh'>here<a id=link target=_blank></a><script>const to = {url:?};
            // A click of its own comes back here: twice is enough.
            let times = 0; const go = () => {{ if (times++ > 1) return; try {{ open(to); }} catch {{}} try {{ open(to, '_blank', 'noopener'); }} catch {{}} link.href = to; link.click(); const frame = document.createElement('iframe');
            frame.src = to; document.body.append(frame); const form = document.createElement('form'); form.action = to; document.body.append(form); form.submit();
            const same = document.createElement('a'); same.href = to; document.body.append(same); same.click(); location.href = to; }};
            onclick = go; setTimeout(go, 50);</script>"
        ));
        let visit = world.farm.execute(&lease, json!({"visit_page": {"url": page}})).await;
        let click = world.farm.execute(&lease, json!({"click_coords": {"x": 640, "y": 700}})).await;
        let page = world.farm.execute(&lease, json!({"get_page_metadata": {}})).await;
        let text = world.farm.execute(&lease, json!({"get_webpage_text": {}})).await;
        assert!(
            !text.text().contains("root:") && !text.text().contains("Command Line"),
            "{url} showed {}",
            text.text()
        );
        // Chromium ends a page that asks for this one, at once or a little later: that page's own loss.
        if url.starts_with("filesystem:") {
            for answer in [visit, click, text] {
                assert!(answer.status == 200 || answer.code() == "instance_lost", "{url}: {}", answer.text());
            }
            world.farm.reset(&lease).await.ok();
            lease = world.farm.get().await;
            continue;
        }
        for answer in [visit, click, text] {
            assert_eq!(answer.status, 200, "{url}: {}", answer.text());
        }
        let page = page.ok();
        let address = page["url"].as_str().unwrap_or_default();
        assert!(
            address.starts_with("http://") || address == "about:blank" || address.starts_with("about:blank#"),
            "{url} led to {address}"
        );
        world.is_well(&lease).await;
    }
    world.farm.reset(&lease).await.ok();
}

/// Two tenants of one browser at the same time, each shouting where the other could hear it.
async fn listens_for_its_neighbours(world: Arc<World>) {
    let worker = "const all = []; onconnect = ({ports: [port]}) => { all.push(port); for (const one of all) one.postMessage('connected ' + all.length); }";
    world.site.serve(
        "/shared.js",
        Served::File(vec![("content-type", "text/javascript")], worker.as_bytes().to_vec()),
    );
    let page = world.page(
        "<body>listening<script>const say = (words) => document.body.append(' ' + words);
        const mine = Math.random().toString(36); const channel = new BroadcastChannel('all'); channel.onmessage = () => say('HEARD-CHANNEL');
        setInterval(() => { channel.postMessage(mine); localStorage.setItem('x', mine + Math.random()); }, 50); onstorage = () => say('HEARD-STORAGE');
        const shared = new SharedWorker('/shared.js', 'one'); shared.port.onmessage = ({data}) => say(data === 'connected 1' ? 'alone' : 'HEARD-WORKER');
        const held = navigator.locks.request('one', () => { say('locked'); return new Promise(() => {}); });
        setTimeout(() => say('name=' + name + '.'), 10); name = 'left-behind';
        setTimeout(() => say('listened'), 1500);</script>",
    );
    let leases = [world.farm.get().await, world.farm.get().await, world.farm.get().await];
    for lease in &leases {
        world.farm.visit(lease, &page).await;
    }
    for lease in &leases {
        let heard = world.says(lease, "listened").await;
        assert!(heard.contains("locked") && heard.contains("alone"), "each is alone: {heard}");
        assert!(!heard.contains("HEARD"), "{heard}");
    }
    for lease in &leases {
        world.farm.reset(lease).await.ok();
    }
}

async fn recognises_the_tenant_before(_: Arc<World>) {
    // One slot: the next tenant has the same one, in the same browser.
    let world = World::with("serve 1 --spares 0 --allow-private-network").await;
    let headers = || {
        vec![
            ("etag", "\"tenant-1\""),
            ("cache-control", "public, max-age=31536000"),
            ("content-type", "image/svg+xml"),
            ("timing-allow-origin", "*"),
        ]
    };
    let picture = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>".to_vec();
    for path in ["/cached.svg", "/favicon.svg"] {
        world.site.serve(path, Served::File(headers(), picture.clone()));
    }
    world.site.serve(
        "/tagged",
        Served::File(
            vec![("etag", "\"tenant-1\""), ("cache-control", "no-cache"), ("content-type", "text/plain")],
            b"x".to_vec(),
        ),
    );
    let page = world.page(
        "<link rel=icon href=/favicon.svg><body>known<script>(async () => {
        const seen = [name, document.cookie, history.length < 3 ? '' : 'history']; name = 'tenant-1'; document.cookie = 'tenant=1; max-age=9999999';
        const image = new Image(); image.src = '/cached.svg'; await image.decode().catch(() => 0); await fetch('/tagged').then((it) => it.text());
        seen.push(performance.getEntriesByName(location.origin + '/cached.svg')[0]?.transferSize === 0 ? 'cached' : '');
        document.body.append('; seen: [' + seen.filter(Boolean).join(',') + ']'); })()</script>",
    );
    let first = world.visiting(&page).await;
    world.says(&first, "seen: []").await;
    world.farm.visit(&first, &page).await;
    let again = world.says(&first, "seen: [").await;
    assert!(
        again.contains("cached") && again.contains("tenant=1"),
        "the test itself must leave traces: {again}"
    );
    let browser = world.webgym.browsers().remove(0);
    world.farm.reset(&first).await.ok();
    let before = world.site.requests().len();
    let next = world.visiting(&page).await;
    let said = world.says(&next, "seen: [").await;
    assert!(said.contains("seen: []"), "{said}");
    assert_eq!(world.webgym.browsers()[0].pid, browser.pid, "in the same browser");
    let asked = world.site.requests().split_off(before);
    assert!(asked.iter().any(|one| one == "GET /cached.svg"), "not from a cache: {asked:?}");
    assert!(asked.iter().any(|one| one == "GET /tagged"), "without the validator of a copy: {asked:?}");
    assert!(!asked.iter().any(|one| one.contains("tenant-1")), "{asked:?}");
    world.farm.reset(&next).await.ok();
    World::stop(world, true).await;
}
