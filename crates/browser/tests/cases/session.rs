//! The options of a session, and its storage state.

use browser::ObserveRequest;
use proto::{ErrorCode, InteractionMode};
use serde_json::{Value, json};

use crate::common::{
    fixture::{Fixture, session_options as options, with_fixture, with_session},
    tester::Tester,
};

#[test]
fn viewport_and_scale_factor_are_set() {
    with_session(
        &json!({"viewport": {"width": 900, "height": 500}, "device_scale_factor": 2}),
        async |tester| {
            tester.visit("/course/long").await;
            let sizes =
                tester.js("[innerWidth, innerHeight, devicePixelRatio, screen.width, screen.height]").await;
            assert_eq!(sizes, json!([900, 500, 2, 900, 500]));
            for mode in [InteractionMode::Coordinates, InteractionMode::SetOfMarks] {
                tester.run(json!({"page_down": {"amount": 300}})).await;
                let observation = tester.instance.observe(&ObserveRequest::screenshot(mode)).await.unwrap();
                let screenshot = observation.screenshot.unwrap();
                assert_eq!((screenshot.width, screenshot.height), (900, 500), "CSS pixels");
                let header = &screenshot.bytes[16..24];
                assert_eq!(header, [0, 0, 3, 132, 0, 0, 1, 244], "900 by 500");
            }
            let error = tester.expect_error(json!({"click_coords": {"x": 901, "y": 10}})).await;
            assert!(error.to_string().contains("900 by 500"), "{error}");
        },
    );
}

#[test]
fn locale_time_zone_and_colour_scheme_are_set() {
    let session = json!({"locale": "de-DE", "timezone_id": "Asia/Tokyo", "color_scheme": "dark"});
    with_session(&session, async |tester| {
        tester.visit("/echo/headers").await;
        assert_eq!(tester.js("navigator.language").await, "de-DE");
        assert_eq!(tester.js("(1234.5).toLocaleString()").await, "1.234,5");
        assert_eq!(tester.js("Intl.DateTimeFormat().resolvedOptions().timeZone").await, "Asia/Tokyo");
        assert_eq!(tester.js("matchMedia('(prefers-color-scheme: dark)').matches").await, true);
        let headers = tester.js("fetch('/echo/headers').then((response) => response.text())").await;
        assert!(headers.as_str().unwrap().contains("de-DE"), "{headers}");
    });
}

#[test]
fn user_agent_has_matching_client_hints() {
    let agent = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.7339.80 Safari/537.36";
    let session = json!({"user_agent": agent, "extra_http_headers": {"X-Team": "blue"}});
    with_session(&session, async |tester| {
        tester.visit("/echo/headers").await;
        assert_eq!(tester.js("navigator.userAgent").await, agent);
        assert_eq!(tester.js("navigator.platform").await, "Win32");
        assert_eq!(tester.js("navigator.userAgentData.platform").await, "Windows");
        let hints = tester.js("navigator.userAgentData.getHighEntropyValues(['uaFullVersion', 'fullVersionList']).then((hints) => JSON.stringify(hints))").await;
        assert!(hints.as_str().unwrap().contains("140.0.7339.80"), "{hints}");
        let headers = tester.js("fetch('/echo/headers').then((response) => response.text())").await;
        let headers = headers.as_str().unwrap().to_ascii_lowercase();
        for expected in ["windows nt 10.0", "google chrome", "\"x-team\":\"blue\""] {
            assert!(headers.contains(expected), "{expected}: {headers}");
        }
    });
}

#[test]
fn geolocation_and_permissions_are_granted() {
    let session = json!({"geolocation": {"latitude": 52.5, "longitude": 13.4, "accuracy": 5}, "permissions": ["notifications"]});
    with_session(&session, async |tester| {
        tester.visit("/course/permissions").await;
        let place = tester.js("new Promise((resolve) => navigator.geolocation.getCurrentPosition(({coords}) => resolve([coords.latitude, coords.longitude]), (error) => resolve(error.message)))").await;
        assert_eq!(place, json!([52.5, 13.4]));
        assert_eq!(
            tester
                .js("navigator.permissions.query({name: 'notifications'}).then((status) => status.state)")
                .await,
            "granted"
        );
        assert_eq!(
            tester.js("navigator.permissions.query({name: 'camera'}).then((status) => status.state)").await,
            "denied"
        );
    });
}

#[test]
fn blocked_hosts_and_resource_types_are_not_requested() {
    let session = json!({"blocked_hosts": ["localhost"], "blocked_resource_types": ["image"]});
    with_session(&session, async |tester| {
        tester.visit("/course/arrived").await;
        let outcome = "fetch(`http://localhost:${location.port}/course/arrived`, {mode: 'no-cors'}).then(() => 'through', () => 'refused')";
        assert_eq!(tester.js(outcome).await, "refused");
        assert_eq!(
            tester.js("fetch('/course/arrived').then(() => 'through', () => 'refused')").await,
            "through"
        );
        let blocked = tester.url("/course/arrived").replace("127.0.0.1", "localhost");
        let error = tester.expect_error(json!({"visit_page": {"url": blocked}})).await;
        assert!(error.to_string().contains("ERR_BLOCKED_BY_CLIENT"), "{error}");
        assert_eq!(tester.js("location.hostname").await, "127.0.0.1", "the page before stays");
        let image = "new Promise((resolve) => { const image = new Image(); image.onload = () => resolve('through'); image.onerror = () => resolve('refused'); image.src = '/favicon.ico?' + Math.random(); })";
        assert_eq!(tester.js(image).await, "refused");
    });
}

#[test]
fn link_to_a_blocked_host_leaves_the_page_as_it_is() {
    with_session(&json!({"blocked_hosts": ["localhost"]}), async |tester| {
        for target in ["_self", "_blank"] {
            tester.visit("/course/arrived").await;
            let link = format!(
                "const link = document.createElement('a'); link.href = `http://localhost:${{location.port}}/course/arrived`;
                link.target = '{target}'; link.textContent = 'Blocked'; link.id = 'blocked'; document.body.prepend(link)"
            );
            tester.js(&link).await;
            let id = tester.mark("#blocked").await;
            tester.run(json!({"click_id": {"id": id}})).await;
            assert_eq!(
                tester.js("`${location.hostname} ${document.links.length > 0}`").await,
                "127.0.0.1 true",
                "{target}"
            );
        }
    });
}

#[test]
fn frame_of_a_blocked_host_stays_empty() {
    with_fixture(async |fixture| {
        for (session, has_content) in [(json!({"blocked_hosts": ["localhost"]}), false), (json!({}), true)] {
            let mut tester = tenant(fixture, &session).await;
            tester.visit("/course/iframes-cross").await;
            let elements = tester.observe_elements().await;
            assert_eq!(elements.ac_tree().contains("Button in the frame"), has_content, "{session}");
        }
    });
}

#[test]
fn option_that_the_browser_refuses_is_named() {
    with_fixture(async |fixture| {
        for (session, name) in [
            (json!({"timezone_id": "Nowhere/Land"}), "timezone_id"),
            (json!({"locale": "zz-QQQ9"}), "locale"),
        ] {
            let error = fixture.host.instance(&options(&session)).await.map(drop).unwrap_err();
            assert_eq!(error.code(), ErrorCode::BadRequest, "{error}");
            assert!(error.to_string().contains(&format!("session option {name}")), "{error}");
        }
    });
}

async fn tenant(fixture: &'static Fixture, session: &Value) -> Tester {
    Tester::new(fixture.host.instance(&options(session)).await.expect("an instance"), &fixture.sites)
}

/// Fills every kind of storage that a storage state includes.
const STORE: &str = r#"(async () => {
  document.cookie = 'crumb=sweet; max-age=1000';
  localStorage.setItem('token', 'né"w');
  await new Promise((resolve, reject) => {
    const opening = indexedDB.open('shop', 3);
    opening.onupgradeneeded = () => {
      const items = opening.result.createObjectStore('items', { keyPath: 'sku' });
      items.createIndex('by-name', ['name', 'size'], { unique: true });
      opening.result.createObjectStore('plain', { autoIncrement: true });
    };
    opening.onsuccess = () => {
      const database = opening.result;
      const transaction = database.transaction(['items', 'plain'], 'readwrite');
      const shared = { deep: [1, , -0] };
      transaction.objectStore('items').put({ sku: 'a', name: 'Tea', size: 1 });
      transaction.objectStore('items').put({ sku: 'b', when: new Date(5), map: new Map([['k', new Set([1n])]]), bytes: new Uint16Array([1, 2]), twice: [shared, shared], none: undefined, pattern: /x/gi });
      transaction.objectStore('plain').put('text', new Date(7));
      transaction.oncomplete = () => { database.close(); resolve(); };
      transaction.onerror = reject;
    };
  });
  const file = await (await (await navigator.storage.getDirectory()).getFileHandle('note.txt', { create: true })).createWritable();
  await file.write('on disk');
  await file.close();
  return true;
})()"#;

const READ: &str = r"(async () => {
  const database = await new Promise((resolve) => { const opening = indexedDB.open('shop'); opening.onsuccess = () => resolve(opening.result); });
  const read = (store, key) => new Promise((resolve) => { database.transaction(store).objectStore(store).get(key).onsuccess = (event) => resolve(event.target.result); });
  const [a, b, plain] = [await read('items', 'a'), await read('items', 'b'), await read('plain', new Date(7))];
  const index = database.transaction('items').objectStore('items').index('by-name');
  const file = await (await (await navigator.storage.getDirectory()).getFileHandle('note.txt')).getFile();
  return [document.cookie, localStorage.getItem('token'), database.version, a.name, b.when.getTime(), [...b.map.get('k')][0] === 1n, b.bytes[1],
    b.twice[0] === b.twice[1], 'none' in b, b.pattern.source, plain, index.unique, index.keyPath.join(), await file.text()].join('|');
})()";

const STORED: &str = "crumb=sweet|né\"w|3|Tea|5|true|2|true|true|x|text|true|name,size|on disk";

#[test]
fn storage_state_moves_to_another_session() {
    with_fixture(async |fixture| {
        let mut first = tenant(fixture, &json!({})).await;
        first.visit("/course/arrived").await;
        first.js(STORE).await;
        assert_eq!(first.js(READ).await, STORED);
        let state = first.instance.storage_state().await.unwrap();
        first.wait_until_single_window().await;
        let state = serde_json::to_value(state).unwrap();
        assert_eq!(state["cookies"][0]["name"], "crumb", "{state}");
        assert_eq!(state["origins"][0]["localStorage"][0], json!({"name": "token", "value": "né\"w"}));
        let mut second = tenant(fixture, &json!({"storage_state": state})).await;
        second.visit("/course/arrived").await;
        assert_eq!(second.js(READ).await, STORED);
        let copy = serde_json::to_value(second.instance.storage_state().await.unwrap()).unwrap();
        assert_eq!(copy["origins"], state["origins"]);
        let refused =
            json!({"cookies": [{"name": "__Host-a", "value": "b", "domain": ".a.test", "path": "/"}]});
        second.instance.set_storage_state(&serde_json::from_value(refused).unwrap()).await.unwrap_err();
        second.visit("/course/arrived").await;
        assert_eq!(second.js(READ).await, STORED, "a refused state changes nothing");
        second.instance.set_storage_state(&serde_json::from_value(json!({})).unwrap()).await.unwrap();
        second.visit("/course/arrived").await;
        assert_eq!(second.js("[document.cookie, localStorage.length]").await, json!(["", 0]));
        assert_eq!(second.js("indexedDB.databases().then((all) => all.length)").await, 0);
        first.instance.dispose().await.unwrap();
        second.instance.dispose().await.unwrap();
    });
}

/// WebKit and Firefox keep such cookies, Chromium does not set them.
#[test]
fn insecure_cookie_for_all_sites_is_kept() {
    let cookie =
        json!({"name": "crumb", "value": "sweet", "domain": "127.0.0.1", "path": "/", "sameSite": "None"});
    with_session(&json!({"storage_state": {"cookies": [cookie]}}), async |tester| {
        tester.visit("/course/arrived").await;
        assert_eq!(tester.js("document.cookie").await, "crumb=sweet");
    });
}

#[test]
fn invalid_storage_state_names_the_part() {
    with_fixture(async |fixture| {
        let cases = [
            (
                json!({"cookies": [{"name": "a", "value": "b", "domain": "a.test"}, {"name": "bad\nname", "value": "b", "domain": "a.test"}]}),
                "cookie 1",
            ),
            (
                json!({"origins": [{"origin": "https://a.test", "indexedDB": [{"name": "x", "version": 0, "stores": []}]}]}),
                "https://a.test",
            ),
            (
                json!({"origins": [{"origin": "https://a.test:99999", "localStorage": [{"name": "a", "value": "b"}]}]}),
                "a.test:99999",
            ),
        ];
        for (state, expected) in cases {
            let error = fixture
                .host
                .instance(&options(&json!({"storage_state": state})))
                .await
                .map(drop)
                .unwrap_err();
            assert_eq!(error.code(), ErrorCode::BadRequest, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    });
}
