//! Pages that try to reach private addresses, and API keys that would not protect a farm.

use serde_json::json;
use testkit::{Farm, Http, Lease, RecordingServer, Served, Slots, Tier, Webgym, poll_until};

use crate::{TIMEOUT, WEBGYM, webgym};

/// Returns a page that tries every way to reach `target` and reports when it is done.
fn probing_page(target: &str) -> String {
    let socket = target.replace("http:", "ws:");
    format!(
        r#"<!doctype html><title>Probing</title><link rel=stylesheet href="{target}/style.css"><link rel=prefetch href="{target}/prefetch">
<link rel=preconnect href="{target}"><img src="{target}/image.png"><iframe src="{target}/frame"></iframe><script src="{target}/script.js"></script>
<video src="{target}/video.mp4"></video><object data="{target}/object"></object><a id=link href="{target}/link">A link</a>
<form action="{target}/form" method=post><button>Send a form</button></form><button onclick="open('{target}/popup')">Open a window</button>
<output id=result></output><script>
const tries = [
  fetch('{target}/fetch', {{mode: 'no-cors'}}).then(() => 'through', () => 'refused'),
  fetch('{target}/cors').then(async (answer) => answer.ok ? await answer.text() : 'refused', () => 'refused'),
  new Promise((done) => {{ const socket = new WebSocket('{socket}/socket'); socket.onopen = () => done('through'); socket.onerror = () => done('refused'); }}),
  new Promise((done) => {{ const events = new EventSource('{target}/events'); events.onopen = () => done('through'); events.onerror = () => done('refused'); }}),
  Promise.resolve(navigator.sendBeacon('{target}/beacon', 'x')),
];
Promise.all(tries).then((seen) => document.getElementById('result').textContent = 'tried: ' + seen.join(', '));
</script>"#
    )
}

async fn assert_refused(farm: &Farm, lease: &Lease, url: &str) {
    let reply = farm.execute(lease, json!({"visit_page": {"url": url}})).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "url_refused"), "{url}: {}", reply.text());
}

/// A visit that is redirected to a forbidden address fails like a direct one, and the previous page stays open.
async fn assert_redirect_refused(farm: &Farm, lease: &Lease, url: &str, target: &str) {
    let before = farm.text(lease).await;
    let reply = farm.execute(lease, json!({"visit_page": {"url": url}})).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "url_refused"), "{url}: {}", reply.text());
    assert!(reply.text().contains(target) && reply.text().contains("redirects there"), "{}", reply.text());
    let step = json!({"command": {"visit_page": {"url": url}}, "include": ["metadata"]});
    let seen = farm.step(lease, step).await.ok();
    assert_eq!(seen["error"]["code"], "url_refused", "{seen}");
    assert_eq!(farm.text(lease).await, before);
}

async fn click(farm: &Farm, lease: &Lease, name: &str) {
    let seen = farm.observe(lease, json!({"include": ["screenshot", "ac_tree"]})).await.ok();
    let tree = seen["ac_tree"].as_str().unwrap_or_default().to_owned();
    let line = tree
        .lines()
        .find(|line| line.contains(&format!("text: {name},")))
        .expect("the element is on the page");
    let id = line.trim_start_matches("id: ").split(',').next().expect("an id").to_owned();
    farm.execute(lease, json!({"click_id": {"id": id}})).await;
}

#[tokio::test]
async fn private_addresses_are_refused() {
    let (outside, inside) = (RecordingServer::start().await, RecordingServer::start().await);
    let allowed = format!("allowed.localhost:{}", outside.address.port());
    let farm = webgym(&format!("serve 1 --master-port 0 --node-port 0 --allow-host {allowed}")).await;
    let master = farm.master();
    let lease = master.get().await;
    let port = inside.address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "x.localhost",
        "[::1]",
        "0.0.0.0",
        "127.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
    ] {
        assert_refused(&master, &lease, &format!("http://{host}:{port}/visit")).await;
    }
    assert_refused(&master, &lease, &format!("http://not-allowed.localhost:{}/", outside.address.port()))
        .await;
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "https://[fd00::1]/",
    ] {
        assert_refused(&master, &lease, url).await;
    }
    let base = format!("http://{allowed}");
    for target in [format!("http://127.0.0.1:{port}"), format!("http://deep.localhost:{port}")] {
        outside.serve("/probing", Served::Page(probing_page(&target)));
        outside.serve("/redirect", Served::Redirect(format!("{target}/redirected")));
        master.visit(&lease, &format!("{base}/probing")).await;
        let text = poll_until("the page has tried every way", TIMEOUT, async || {
            let text = master.text(&lease).await;
            text.contains("tried:").then_some(text)
        })
        .await;
        assert!(!text.contains(RecordingServer::SECRET), "{text}");
        for name in ["A link", "Send a form", "Open a window"] {
            master.visit(&lease, &format!("{base}/probing")).await;
            click(&master, &lease, name).await;
        }
        assert_redirect_refused(&master, &lease, &format!("{base}/redirect"), &target).await;
    }
    outside.serve("/redirect", Served::Redirect(format!("https://127.0.0.1:{port}/secure")));
    assert_redirect_refused(&master, &lease, &format!("{base}/redirect"), "https://127.0.0.1").await;
    assert_eq!(inside.requests(), Vec::<String>::new(), "no request reached the private address");
    assert!(outside.requests().iter().any(|one| one == "GET /redirect"), "the allowed host was reached");
    let metrics = master.http.get("/metrics", &[]).await.text();
    let refusals = metrics.lines().find_map(|line| line.strip_prefix("webgym_addresses_refused_total "));
    assert!(refusals.is_some_and(|count| count.parse::<u32>().is_ok_and(|count| count > 10)), "{refusals:?}");
    master.reset(&lease).await.ok();
    Slots::wait_all_free(&farm, &master.http, TIMEOUT).await;
}

/// A lease may have a proxy of its own, which is subject to the same rules.
#[tokio::test]
async fn lease_connects_through_its_proxy() {
    let proxy = RecordingServer::start().await;
    proxy.serve("/hello", Served::Page("<title>Hello</title>served by the proxy".into()));
    let address = format!("127.0.0.1:{}", proxy.address.port());
    let farm = webgym(&format!("serve 2 --master-port 0 --node-port 0 --allow-host {address}")).await;
    let master = farm.master();
    let options =
        json!({"proxy": {"server": format!("http://{address}"), "username": "u", "password": "hunter2"}});
    let lease = master.get_with(&options).await;
    master.visit(&lease, "http://only-the-proxy-knows.test/hello").await;
    assert!(master.text(&lease).await.contains("served by the proxy"));
    assert_refused(&master, &lease, "http://10.0.0.1/").await;
    let plain = master.get().await;
    let reply =
        master.execute(&plain, json!({"visit_page": {"url": "http://only-the-proxy-knows.test/hello"}}));
    assert_eq!(reply.await.code(), "navigation_failed", "the other lease has no proxy");
    for lease in [&lease, &plain] {
        master.reset(lease).await.ok();
    }
    let refused = json!({"proxy": {"server": "http://10.0.0.1:3128"}});
    master.try_get_with(&refused).await.assert_error(400, "bad_request", "--allow-host");
    proxy.serve("/closed", Served::ProxyAuthentication);
    let lease = master.get_with(&options).await;
    let visit = json!({"visit_page": {"url": "http://only-the-proxy-knows.test/closed"}});
    let reply = master.execute(&lease, visit).await;
    reply.assert_error(422, "navigation_failed", "ERR_PROXY_CONNECTION_FAILED");
    master.reset(&lease).await.ok();
    Slots::wait_all_free(&farm, &master.http, TIMEOUT).await;
    assert!(!farm.log().contains("hunter2"), "credentials are not logged");
}

/// A step to a refused address still returns an observation, with the error.
#[tokio::test]
async fn refused_step_still_observes() {
    let farm = webgym("instance --port 0").await;
    let instance = farm.instance();
    let lease = instance.get().await;
    let step = json!({"command": {"visit_page": {"url": "http://127.0.0.1:1/"}}, "include": ["metadata"]});
    let seen = instance.step(&lease, step).await.ok();
    assert_eq!(seen["error"]["code"], "url_refused", "{seen}");
    assert!(seen["error"]["detail"].as_str().is_some_and(|detail| detail.contains("--allow-host")), "{seen}");
    assert_eq!(seen["metadata"]["url"], "about:blank");
    instance.reset(&lease).await.ok();
}

#[tokio::test]
async fn default_key_is_refused_beyond_loopback() {
    for (arguments, variables, reason) in [
        ("serve 1 --host 0.0.0.0 --master-port 0 --node-port 0", vec![], "default key"),
        ("master --host 0.0.0.0 --port 0", vec![], "default key"),
        ("serve 1 --master-port 0 --node-port 0", vec![("WEBGYM_API_KEY", "")], "key is empty"),
        ("node 1 --port 0 --api-key a\u{1}b", vec![], "cannot be sent as a header"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut webgym = Webgym::spawn_with(WEBGYM, &arguments, &variables);
        let status = webgym.wait_for_exit(TIMEOUT).await;
        assert!(!status.success(), "{arguments:?}");
        poll_until("it logs the reason", TIMEOUT, async || webgym.log().contains(reason).then_some(())).await;
        assert_eq!(webgym.leftovers(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn configured_key_works_and_is_not_logged() {
    const KEY: &str = "a-key-nobody-guesses-7319";
    let arguments = "-vv serve 1 --host 0.0.0.0 --advertise-ip 127.0.0.1 --master-port 0 --node-port 0 --allow-private-network";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut webgym = Webgym::spawn_with(WEBGYM, &arguments, &[("WEBGYM_API_KEY", KEY)]);
    webgym.wait_for_event("ready").await;
    let url = webgym.url("master");
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    Http::new(&url, Some("default_key")).get("/info", &[]).await.assert_error(
        401,
        "wrong_key",
        "Invalid API Key.",
    );
    let bearer = [("authorization", format!("Bearer {KEY}"))];
    let bearer: Vec<(&str, &str)> = bearer.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(
        Http::new(&url, None).send(hyper::Method::GET, "/metrics", &[], "", &bearer).await.status,
        200
    );
    let farm = Farm::with_key(Tier::Master, &url, KEY);
    let lease = farm.get().await;
    farm.probe(&lease).await.ok();
    farm.reset(&lease).await.ok();
    assert!(webgym.log().contains("ready"), "it logs its progress: {}", webgym.log());
    assert!(!webgym.log().contains(KEY), "it does not log the key");
}
