//! Isolation: no data of one tenant reaches another, at the same time or later.

use std::time::{Duration, Instant};

use browser::{BrowserKind, Host, Launch, ObserveRequest, Options};
use proto::{InteractionMode, SessionOptions};
use serde_json::json;

use crate::common::{
    fixture::{Fixture, executable, with_fixture},
    raw_site::{self, RawResponse},
    table::{Eventually, HasText, Logged, NotLogged, by_id},
    tester::Tester,
};

async fn tenant(fixture: &'static Fixture) -> Tester {
    let instance = fixture.host.instance(&Options::default()).await.expect("an instance");
    Tester::new(instance, &fixture.sites)
}

/// Visits `/course/storage` and returns what it found in each kind of storage.
async fn stored_values(tester: &mut Tester, path: &str) -> Vec<(&'static str, String)> {
    const STORAGES: [&str; 7] = ["cookie", "local", "session", "indexeddb", "cache", "http-cache", "http"];
    tester.visit(path).await;
    tester.wait_until("document.getElementById('result').textContent === 'yes'").await;
    let mut all = Vec::new();
    for storage in STORAGES {
        all.push((storage, tester.text(&format!("#seen-{storage}")).await));
    }
    all
}

#[test]
fn storage_is_isolated_and_deleted_with_tenant() {
    with_fixture(async |fixture| {
        let mut owner = tenant(fixture).await;
        stored_values(&mut owner, "/course/storage?set=crumb").await;
        for (storage, value) in stored_values(&mut owner, "/course/storage").await {
            assert_eq!(value, "crumb", "{storage}: the tenant does not see its own value");
        }
        let mut other = tenant(fixture).await;
        for (storage, value) in stored_values(&mut other, "/course/storage").await {
            assert_eq!(value, "none", "{storage}: another tenant sees the value");
        }
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        for (storage, value) in stored_values(&mut next, "/course/storage").await {
            assert_eq!(value, "none", "{storage}: the next tenant sees the value");
        }
        assert_eq!(next.text("#seen-history").await, "2", "the initial empty page, and this one");
        other.instance.dispose().await.unwrap();
        next.instance.dispose().await.unwrap();
    });
}

#[test]
fn service_worker_is_isolated_and_deleted_with_tenant() {
    with_fixture(async |fixture| {
        let mut owner = tenant(fixture).await;
        owner.visit("/course/service-worker/").await;
        owner.run_step(&by_id("click_id", "#register")).await;
        owner
            .run_step(&Eventually("document.getElementById('log').textContent.includes('registered')"))
            .await;
        owner.visit("/course/service-worker/").await;
        owner
            .run_step(&Eventually(
                "document.getElementById('result').textContent === 'hello from the worker'",
            ))
            .await;
        let mut other = tenant(fixture).await;
        other.visit("/course/service-worker/").await;
        other.run_step(&HasText("#result", "hello from the server")).await;
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        next.visit("/course/service-worker/").await;
        next.run_step(&HasText("#result", "hello from the server")).await;
        next.run_step(&by_id("click_id", "#ask")).await;
        next.run_step(&Logged("hello from the server")).await;
        other.instance.dispose().await.unwrap();
        next.instance.dispose().await.unwrap();
    });
}

#[test]
fn instances_act_concurrently() {
    with_fixture(async |fixture| {
        let act = async |name: &str| {
            let mut tester = tenant(fixture).await;
            tester.visit("/course/keys").await;
            for _ in 0..3 {
                let id = tester.mark("#target").await;
                tester.run(json!({"fill_id": {"id": id, "value": name, "delete_existing": true}})).await;
                assert_eq!(tester.js("target.value").await, name);
            }
            tester.instance.dispose().await.unwrap();
        };
        tokio::join!(act("one"), act("two"), act("three"), act("four"));
    });
}

#[test]
fn dropped_instance_is_disposed() {
    with_fixture(async |_| {
        // A separate browser: the shared one has instances of other tests.
        let host = crate::common::fixture::launch(crate::KIND).await;
        let dropped = host.instance(&Options::default()).await.unwrap();
        let remaining = host.instance(&Options::default()).await.unwrap();
        assert_eq!(remaining.browser_window_count().await.unwrap(), 2);
        drop(dropped);
        let deadline = Instant::now() + Duration::from_secs(20);
        while remaining.browser_window_count().await.unwrap() > 1 {
            assert!(Instant::now() < deadline, "the dropped instance is not disposed");
        }
        remaining.dispose().await.unwrap();
        host.close().await;
    });
}

/// Visits a page of a raw site and returns its text.
async fn text_at(tester: &mut Tester, url: &str) -> String {
    tester.run(json!({"visit_page": {"url": url}})).await;
    tester.js("document.body.innerText").await.as_str().unwrap_or_default().to_owned()
}

#[test]
fn http_credentials_are_isolated() {
    with_fixture(async |fixture| {
        let site = raw_site::start(|request| {
            if request.head.contains("authorization: basic") {
                return RawResponse::page("welcome");
            }
            RawResponse {
                status: "401 Unauthorized",
                headers: "www-authenticate: Basic realm=\"vault\"\r\n",
                ..RawResponse::page("who are you?")
            }
        })
        .await;
        let (mut owner, mut other) = (tenant(fixture).await, tenant(fixture).await);
        // The full browser sends no passwords at all: it would ask for them in a window.
        let own = if crate::KIND == BrowserKind::Full { "who are you?" } else { "welcome" };
        assert_eq!(text_at(&mut owner, &format!("http://ada:secret@{site}/")).await, own);
        assert_eq!(text_at(&mut owner, &format!("http://{site}/again")).await, own, "remembered");
        assert_eq!(text_at(&mut other, &format!("http://{site}/")).await, "who are you?");
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        assert_eq!(text_at(&mut next, &format!("http://{site}/")).await, "who are you?");
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

/// A shared connection would tell a site that two tenants belong together, and let one see the other's TLS session.
#[test]
fn connections_are_not_shared() {
    with_fixture(async |fixture| {
        let site = raw_site::start(|request| RawResponse::page(request.connection.to_string())).await;
        let url = format!("http://{site}/");
        let (mut owner, mut other) = (tenant(fixture).await, tenant(fixture).await);
        let own = text_at(&mut owner, &url).await;
        assert_eq!(text_at(&mut owner, &url).await, own, "a tenant reuses its connection");
        assert_ne!(text_at(&mut other, &url).await, own);
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        assert_ne!(text_at(&mut next, &url).await, own);
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn client_hint_preferences_are_isolated() {
    with_fixture(async |fixture| {
        let site = raw_site::start(|request| RawResponse {
            headers: "accept-ch: sec-ch-ua-full-version-list\r\n",
            ..RawResponse::page(request.head.contains("sec-ch-ua-full-version-list").to_string())
        })
        .await;
        let url = format!("http://{site}/");
        let (mut owner, mut other) = (tenant(fixture).await, tenant(fixture).await);
        text_at(&mut owner, &url).await;
        assert_eq!(text_at(&mut owner, &url).await, "true", "the browser remembers the preference");
        assert_eq!(text_at(&mut other, &url).await, "false");
        owner.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn visited_links_are_isolated() {
    with_fixture(async |fixture| {
        let page = "<style>a { font-size: 80px } a:visited { color: red }</style><a href='/there'>there</a>";
        let site = raw_site::start(move |_| RawResponse::page(page)).await;
        let (start, there) = (format!("http://{site}/"), format!("http://{site}/there"));
        let look = async |tester: &mut Tester| {
            text_at(tester, &start).await;
            let request = ObserveRequest::screenshot(InteractionMode::Coordinates);
            tester.instance.observe(&request).await.unwrap().screenshot.unwrap().bytes
        };
        let (mut owner, mut other) = (tenant(fixture).await, tenant(fixture).await);
        let unvisited = look(&mut other).await;
        text_at(&mut owner, &there).await;
        // Chromium records no visited links in the contexts of sessions, so the tenant itself sees none either.
        assert!(look(&mut other).await == unvisited, "another tenant sees which links were visited");
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        assert!(look(&mut next).await == unvisited, "the next tenant sees which links were visited");
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

/// Messages, locks, workers, speech and fonts of the same origin.
#[test]
fn pages_of_one_origin_do_not_meet() {
    const LISTEN: &str = "window.heard = []; window.channel = new BroadcastChannel('shared'); window.listener = new BroadcastChannel('shared'); listener.onmessage = (event) => heard.push(event.data); addEventListener('storage', (event) => heard.push(event.key)); true";
    const SPEAK: &str = "channel.postMessage('secret'); localStorage.setItem('secret', 1); window.name = 'meeting-point'; speechSynthesis.speak(new SpeechSynthesisUtterance('secret')); navigator.locks.request('shared', () => new Promise(() => {})); true";
    const LOCK: &str = "navigator.locks.request('shared', {ifAvailable: true}, (lock) => lock !== null)";
    const COUNT: &str = "new Promise((resolve) => { const worker = new SharedWorker('data:text/javascript,let count = 0; onconnect = (event) => event.ports[0].postMessage(++count)', 'shared'); worker.port.onmessage = (event) => resolve(event.data); })";
    with_fixture(async |fixture| {
        let site = raw_site::start(|_| RawResponse::page("here")).await;
        let url = format!("http://{site}/");
        let (mut owner, mut other) = (tenant(fixture).await, tenant(fixture).await);
        for tester in [&mut owner, &mut other] {
            text_at(tester, &url).await;
            tester.js(LISTEN).await;
        }
        owner.js(SPEAK).await;
        owner.wait_until("heard.includes('secret')").await;
        assert_eq!(owner.js("navigator.locks.query().then((all) => all.held.length)").await, 1);
        assert_eq!(owner.js(COUNT).await, 1);
        assert_eq!(other.js(COUNT).await, 1, "a shared worker has its own tenant's pages only");
        assert_eq!(other.js(LOCK).await, true, "the lock is free for another tenant");
        assert_eq!(
            other.js("[speechSynthesis.speaking, speechSynthesis.pending]").await,
            json!([false, false])
        );
        assert_eq!(other.js("typeof queryLocalFonts").await, "undefined");
        assert_eq!(other.js("heard").await, json!([]), "messages of another tenant arrive");
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        text_at(&mut next, &url).await;
        assert_eq!(next.js(LOCK).await, true, "the lock has ended with its tenant");
        assert_eq!(next.js("window.name").await, "");
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn permissions_are_isolated() {
    const PLACE: &str = "new Promise((resolve) => navigator.geolocation.getCurrentPosition(({coords}) => resolve(coords.latitude), () => resolve('denied')))";
    with_fixture(async |fixture| {
        let session =
            json!({"geolocation": {"latitude": 52.5, "longitude": 13.4}, "permissions": ["notifications"]});
        let session = SessionOptions::from_json(session.as_object().unwrap()).unwrap();
        let options = Options::default().with_session(session, None);
        let instance = fixture.host.instance(&options).await.unwrap();
        let mut owner = Tester::new(instance, &fixture.sites);
        let mut other = tenant(fixture).await;
        for tester in [&mut owner, &mut other] {
            tester.visit("/course/arrived").await;
        }
        assert_eq!(owner.js(PLACE).await, 52.5);
        assert_eq!(other.js(PLACE).await, "denied");
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        next.visit("/course/arrived").await;
        assert_eq!(next.js(PLACE).await, "denied");
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn drags_and_selections_are_isolated() {
    with_fixture(async |fixture| {
        let (mut owner, mut other) = (tenant(fixture).await, tenant(fixture).await);
        for tester in [&mut owner, &mut other] {
            tester.visit("/course/mouse").await;
        }
        let (from, to) = (owner.find("#source").await.centre(), owner.find("#target").await.centre());
        owner.run(json!({"mouse_down": {"x": from.0, "y": from.1}})).await;
        owner.run(json!({"mouse_move": {"x": from.0 + 20.0, "y": from.1 + 20.0}})).await;
        owner.run_step(&Logged("dragstart")).await;
        other.run(json!({"mouse_move": {"x": to.0, "y": to.1}})).await;
        other.run(json!({"mouse_up": {"x": to.0, "y": to.1}})).await;
        other.run_step(&NotLogged("dropped parcel")).await;
        owner.run(json!({"mouse_up": {"x": to.0, "y": to.1}})).await;
        owner.run_step(&Logged("dropped parcel")).await;
        // On Linux a selection is a second clipboard, which a middle click pastes.
        let (x, y) = owner.find("#words").await.centre();
        owner.run(json!({"mouse_click": {"x": x, "y": y, "clicks": 3}})).await;
        other.visit("/course/clipboard").await;
        let (x, y) = other.find("#to").await.centre();
        other.run(json!({"mouse_click": {"x": x, "y": y, "button": "middle"}})).await;
        assert_eq!(other.js("to.value").await, "");
        owner.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

/// Only the tenant that has visited a site with HSTS remembers that the site requires TLS.
#[test]
fn hsts_is_isolated() {
    with_fixture(async |fixture| {
        let (site, key_hash) = raw_site::start_tls("hsts.test", |_| RawResponse {
            headers: "strict-transport-security: max-age=1000\r\n",
            ..RawResponse::page("secure")
        })
        .await;
        let mut launch = Launch::new(executable(crate::KIND));
        launch.extra_flags = vec![
            "--host-resolver-rules=MAP hsts.test 127.0.0.1".to_owned(),
            format!("--ignore-certificate-errors-spki-list={key_hash}"),
        ];
        let host = Host::launch(&launch).await.expect("the browser starts");
        let new_tenant = async || {
            let instance = host.instance(&Options::default()).await.expect("an instance");
            Tester::new(instance, &fixture.sites)
        };
        let port = site.port();
        let plain = json!({"visit_page": {"url": format!("http://hsts.test:{port}/")}});
        let (mut owner, mut other) = (new_tenant().await, new_tenant().await);
        assert_eq!(text_at(&mut owner, &format!("https://hsts.test:{port}/")).await, "secure");
        owner.run(plain.clone()).await;
        assert_eq!(owner.js("location.protocol").await, "https:", "upgraded for the tenant");
        other.expect_error(plain.clone()).await;
        owner.instance.dispose().await.unwrap();
        let mut next = new_tenant().await;
        next.expect_error(plain).await;
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
        host.close().await;
    });
}
