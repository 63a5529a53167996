//! Pages that try to escape their page: downloads, permissions, internal schemes and other tenants.

use std::{fs, path::Path, sync::Arc};

use serde_json::json;
use testkit::{Served, eventually};

use crate::{TIMEOUT, attacks, environment::Environment};

attacks![
    downloads_are_blocked,
    permissions_are_denied,
    forbidden_schemes_are_blocked,
    tenants_cannot_message_each_other,
    tenants_cannot_recognize_each_other,
];

/// Returns the files below a folder that contain these bytes.
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.flat_map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => files_with(&entry.path(), bytes),
        Ok(data) if data.is_file() => {
            let content = fs::read(entry.path()).unwrap_or_default();
            let found = content.windows(bytes.len()).any(|window| window == bytes);
            found.then(|| entry.path().display().to_string()).into_iter().collect()
        }
        _ => Vec::new(),
    });
    found.collect()
}

async fn downloads_are_blocked(env: Arc<Environment>) {
    const MARK: &str = "downloaded-7f3a91";
    let headers = vec![
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename=\"a.sh\""),
    ];
    env.site.serve(
        "/attachment",
        Served::File(headers, format!("#!/bin/sh\n# {MARK}\n").repeat(1000).into_bytes()),
    );
    let page = env.page(&format!(
        "<body><script>for (let n = 0; n < 40; n++) {{
          const link = document.createElement('a'); link.download = `../../../../tmp/evil-${{n}}.sh`;
          link.href = n % 2 ? '/attachment' : URL.createObjectURL(new Blob(['{MARK}'.repeat(100)])); document.body.append(link); link.click();
          const frame = document.createElement('iframe'); frame.src = '/attachment?' + n; document.body.append(frame);
        }}
        setTimeout(() => location.href = '/attachment?top', 200); setTimeout(() => document.body.append('all asked'), 1500);</script>"
    ));
    let lease = env.lease_on(&page).await;
    env.wait_for_text(&lease, "all asked").await;
    assert!(
        env.site.requests().iter().any(|one| one.starts_with("GET /attachment")),
        "the attachment was requested"
    );
    let visit = json!({"visit_page": {"url": env.url("/attachment")}});
    env.farm.execute(&lease, visit).await.assert_error(422, "navigation_failed", "download");
    // Chromium writes a temporary file until it learns that the download is denied.
    eventually("no downloaded file is left", TIMEOUT, async || {
        files_with(env.webgym.folder(), MARK.as_bytes()).is_empty()
    })
    .await;
    assert!(!Path::new("/tmp/evil-0.sh").exists() && !Path::new("/tmp/evil-1.sh").exists());
    env.assert_usable(&lease).await;
    env.farm.reset(&lease).await.ok();
}

const PERMISSIONS: &str = "<body style='height:100vh'><script>
const asks = {
  geolocation: () => new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no)),
  notifications: () => Notification.requestPermission().then((result) => result === 'granted' || Promise.reject()),
  camera: () => navigator.mediaDevices.getUserMedia({video: true}), microphone: () => navigator.mediaDevices.getUserMedia({audio: true}),
  screen: () => navigator.mediaDevices.getDisplayMedia(), midi: () => navigator.requestMIDIAccess({sysex: true}),
  clipboard: () => navigator.clipboard.readText(), push: () => navigator.serviceWorker.ready.then((it) => it.pushManager.subscribe()),
  bluetooth: () => navigator.bluetooth.requestDevice({acceptAllDevices: true}), usb: () => navigator.usb.requestDevice({filters: []}),
  serial: () => navigator.serial.requestPort(), hid: () => navigator.hid.requestDevice({filters: []}).then((all) => all.length || Promise.reject()),
  file: () => showOpenFilePicker(), save: () => showSaveFilePicker(), folder: () => showDirectoryPicker(), fonts: () => queryLocalFonts().then((all) => all.length || Promise.reject()),
  idle: () => IdleDetector.requestPermission().then((result) => result === 'granted' || Promise.reject()),
  payment: () => new PaymentRequest([{supportedMethods: 'https://pay.test/'}], {total: {label: 'x', amount: {currency: 'EUR', value: '1'}}}).show(),
  contact: () => navigator.contacts.select(['name']), credential: () => navigator.credentials.get({publicKey: {challenge: new Uint8Array(8)}}),
  screens: () => getScreenDetails(), share: () => navigator.share({title: 'x'}), ar: () => navigator.xr.requestSession('immersive-vr'),
};
const all = () => Promise.all(Object.entries(asks).map(async ([name, ask]) => {
  let result; try { result = await Promise.race([ask().then(() => 'GRANTED'), new Promise((done) => setTimeout(done, 4000, 'nothing'))]); } catch { result = 'refused'; }
  document.body.append(`${name}: ${result}; `);
})).then(() => document.body.append('all answered.'));
all(); onclick = () => { onclick = null; document.body.textContent = ''; all().then(() => document.body.append(' by a click.')); };
</script>";

async fn permissions_are_denied(env: Arc<Environment>) {
    let lease = env.lease_on(&env.page(PERMISSIONS)).await;
    let on_load = env.wait_for_text(&lease, "all answered.").await;
    env.farm.execute(&lease, json!({"click_coords": {"x": 900, "y": 700}})).await.ok();
    let on_click = env.wait_for_text(&lease, "by a click.").await;
    assert!(!on_load.contains("GRANTED"), "{on_load}");
    // After a click a page may read the clipboard, which is its tenant's own.
    let others = on_click.replace("clipboard: GRANTED", "");
    assert!(!others.contains("GRANTED"), "{others}");
    // No permission prompt is left that would intercept clicks.
    env.assert_usable(&lease).await;
    let page = env.page("<body style='height:100vh' onclick=\"document.body.textContent = 'clicked'\">click");
    env.farm.visit(&lease, &page).await;
    env.farm.execute(&lease, json!({"click_coords": {"x": 640, "y": 60}})).await.ok();
    env.wait_for_text(&lease, "clicked").await;
    env.farm.reset(&lease).await.ok();
}

async fn forbidden_schemes_are_blocked(env: Arc<Environment>) {
    let mut lease = env.farm.get().await;
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
        let page = env.page(&format!(
            "<body style='height:100vh'>here<a id=link target=_blank></a><script>const to = {url:?};
            // Its own click triggers this again: twice is enough.
            let times = 0; const go = () => {{ if (times++ > 1) return; try {{ open(to); }} catch {{}} try {{ open(to, '_blank', 'noopener'); }} catch {{}} link.href = to; link.click(); const frame = document.createElement('iframe');
            frame.src = to; document.body.append(frame); const form = document.createElement('form'); form.action = to; document.body.append(form); form.submit();
            const same = document.createElement('a'); same.href = to; document.body.append(same); same.click(); location.href = to; }};
            onclick = go; setTimeout(go, 50);</script>"
        ));
        let visit = env.farm.execute(&lease, json!({"visit_page": {"url": page}})).await;
        let click = env.farm.execute(&lease, json!({"click_coords": {"x": 640, "y": 700}})).await;
        let page = env.farm.execute(&lease, json!({"get_page_metadata": {}})).await;
        let text = env.farm.execute(&lease, json!({"get_webpage_text": {}})).await;
        assert!(
            !text.text().contains("root:") && !text.text().contains("Command Line"),
            "{url} showed {}",
            text.text()
        );
        // Chromium may end the renderer that asks for such an address. Then only its own lease is lost:
        // the other attacks use the same browsers meanwhile.
        let next = env.farm.execute(&lease, json!({"visit_page": {"url": env.plain_page()}})).await;
        let answers = [&visit, &click, &page, &text, &next];
        if let Some(lost) = answers.iter().find(|answer| answer.code() == "instance_lost") {
            assert!(lost.text().contains("renderer crashed"), "{url}: {}", lost.text());
            env.farm.reset(&lease).await.ok();
            lease = env.farm.get().await;
            continue;
        }
        for answer in answers {
            assert_eq!(answer.status, 200, "{url}: {}", answer.text());
        }
        let page = page.ok();
        let address = page["url"].as_str().unwrap_or_default();
        assert!(
            address.starts_with("http://") || address == "about:blank" || address.starts_with("about:blank#"),
            "{url} led to {address}"
        );
    }
    env.farm.reset(&lease).await.ok();
}

/// Three tenants of one farm use every channel by which pages of one origin can reach each other.
async fn tenants_cannot_message_each_other(env: Arc<Environment>) {
    let worker = "const all = []; onconnect = ({ports: [port]}) => { all.push(port); for (const one of all) one.postMessage('connected ' + all.length); }";
    env.site.serve(
        "/shared.js",
        Served::File(vec![("content-type", "text/javascript")], worker.as_bytes().to_vec()),
    );
    let page = env.page(
        "<body>listening<script>const say = (words) => document.body.append(' ' + words);
        const mine = Math.random().toString(36); const channel = new BroadcastChannel('all'); channel.onmessage = () => say('HEARD-CHANNEL');
        setInterval(() => { channel.postMessage(mine); localStorage.setItem('x', mine + Math.random()); }, 50); onstorage = () => say('HEARD-STORAGE');
        const shared = new SharedWorker('/shared.js', 'one'); shared.port.onmessage = ({data}) => say(data === 'connected 1' ? 'alone' : 'HEARD-WORKER');
        const held = navigator.locks.request('one', () => { say('locked'); return new Promise(() => {}); });
        setTimeout(() => say('name=' + name + '.'), 10); name = 'left-behind';
        setTimeout(() => say('listened'), 1500);</script>",
    );
    let leases = [env.farm.get().await, env.farm.get().await, env.farm.get().await];
    for lease in &leases {
        env.farm.visit(lease, &page).await;
    }
    for lease in &leases {
        let text = env.wait_for_text(lease, "listened").await;
        assert!(text.contains("locked") && text.contains("alone"), "each is alone: {text}");
        assert!(!text.contains("HEARD"), "{text}");
    }
    for lease in &leases {
        env.farm.reset(lease).await.ok();
    }
}

async fn tenants_cannot_recognize_each_other(_: Arc<Environment>) {
    // With one slot, the next tenant gets the same slot in the same browser.
    let env = Environment::with("serve 1 --spares 0 --allow-private-network").await;
    let headers = || {
        vec![
            ("etag", "\"tenant-1\""),
            ("cache-control", "public, max-age=31536000"),
            ("content-type", "image/svg+xml"),
            ("timing-allow-origin", "*"),
        ]
    };
    let image = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>".to_vec();
    for path in ["/cached.svg", "/favicon.svg"] {
        env.site.serve(path, Served::File(headers(), image.clone()));
    }
    env.site.serve(
        "/tagged",
        Served::File(
            vec![("etag", "\"tenant-1\""), ("cache-control", "no-cache"), ("content-type", "text/plain")],
            b"x".to_vec(),
        ),
    );
    let page = env.page(
        "<link rel=icon href=/favicon.svg><body>known<script>(async () => {
        const seen = [name, document.cookie, history.length < 3 ? '' : 'history']; name = 'tenant-1'; document.cookie = 'tenant=1; max-age=9999999';
        const image = new Image(); image.src = '/cached.svg'; await image.decode().catch(() => 0); await fetch('/tagged').then((it) => it.text());
        seen.push(performance.getEntriesByName(location.origin + '/cached.svg')[0]?.transferSize === 0 ? 'cached' : '');
        document.body.append('; seen: [' + seen.filter(Boolean).join(',') + ']'); })()</script>",
    );
    let first = env.lease_on(&page).await;
    env.wait_for_text(&first, "seen: []").await;
    env.farm.visit(&first, &page).await;
    let repeated = env.wait_for_text(&first, "seen: [").await;
    assert!(
        repeated.contains("cached") && repeated.contains("tenant=1"),
        "the page must have left traces: {repeated}"
    );
    let browser = env.webgym.browsers().remove(0);
    env.farm.reset(&first).await.ok();
    let before = env.site.requests().len();
    let next = env.lease_on(&page).await;
    let text = env.wait_for_text(&next, "seen: [").await;
    assert!(text.contains("seen: []"), "{text}");
    assert_eq!(env.webgym.browsers()[0].pid, browser.pid, "the browser is the same");
    let requests = env.site.requests().split_off(before);
    assert!(
        requests.iter().any(|one| one == "GET /cached.svg"),
        "it must not come from a cache: {requests:?}"
    );
    assert!(
        requests.iter().any(|one| one == "GET /tagged"),
        "it must be requested without a validator: {requests:?}"
    );
    assert!(!requests.iter().any(|one| one.contains("tenant-1")), "{requests:?}");
    env.farm.reset(&next).await.ok();
    Environment::stop(env, true).await;
}
