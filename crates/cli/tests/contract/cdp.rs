//! The CDP endpoint of a lease: addresses, what a client sees, and what it shares with HTTP commands.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{CdpClient, Http};

use crate::{Context, checks};

checks![
    cdp_endpoint_describes_itself,
    cdp_client_and_commands_share_a_page,
    cdp_client_copies_and_pastes_by_keys,
    cdp_session_options_hold_again_after_a_client,
    cdp_new_page_waits_for_its_client,
    cdp_connections_are_closed_by_reset,
    cdp_wrong_secret_is_refused,
    cdp_contexts_of_a_client_are_bounded,
    cdp_dialogs_are_left_to_the_client,
    cdp_connection_can_be_one_page,
    cdp_browser_close_ends_the_lease,
];

async fn cdp_endpoint_describes_itself(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.cdp_url(&lease).await;
    // The secret is the key.
    let http = Http::new(&url, None);
    let version = http.get("/json/version", &[]).await.ok();
    assert!(version["Browser"].as_str().is_some_and(|name| name.contains("Chrom")), "{version}");
    let socket = version["webSocketDebuggerUrl"].as_str().unwrap().to_owned();
    assert!(socket.starts_with(&url.replace("http://", "ws://")), "{socket}");
    farm.visit(&lease, &context.page("/course/buttons")).await;
    let list = http.get("/json/list", &[]).await.ok();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "only the page of this lease: {list}");
    assert_eq!(list[0]["url"], context.page("/course/buttons"));
    let mut client = CdpClient::connect(&socket).await;
    assert_eq!(client.pages().await, [list[0]["id"].as_str().unwrap()]);
    let protocol = http.get("/json/protocol", &[]).await.ok();
    let domain =
        |name: &str| protocol["domains"].as_array().unwrap().iter().find(|domain| domain["domain"] == name);
    let has = |domain: &Value, command: &str| {
        domain["commands"].as_array().unwrap().iter().any(|entry| entry["name"] == command)
    };
    let page = domain("Page").expect("the domain Page is described");
    assert!(has(page, "navigate") && !has(page, "crash"), "only what the endpoint answers");
    http.get("/json/nothing", &[]).await.assert_error(404, "not_found", "nothing");
    let plain = http.get("", &[]).await;
    plain.assert_error(400, "bad_request", "WebSocket");
    farm.reset(&lease).await.ok();
}

async fn cdp_client_and_commands_share_a_page(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    let page = client.pages().await.remove(0);
    let session = client.attach(&page).await;
    let target = context.page("/course/buttons");
    client.ok(Some(&session), "Page.enable", json!({})).await;
    client.ok(Some(&session), "Page.navigate", json!({"url": target})).await;
    client.event("Page.loadEventFired", |_| true).await;
    let metadata = farm.execute(&lease, json!({"get_page_metadata": {}})).await.ok();
    assert_eq!(metadata["url"], target, "commands see what the client did");
    farm.visit(&lease, &context.page("/course/storage")).await;
    assert_eq!(client.evaluate(&session, "location.href").await, context.page("/course/storage"));
    let reply = client.ok(Some(&session), "Page.captureScreenshot", json!({"format": "png"})).await;
    assert!(reply["data"].as_str().is_some_and(|data| data.starts_with("iVBOR")), "a PNG");
    farm.reset(&lease).await.ok();
}

async fn cdp_client_copies_and_pastes_by_keys(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    let page = client.pages().await.remove(0);
    let session = client.attach(&page).await;
    client.ok(Some(&session), "Page.enable", json!({})).await;
    client.ok(Some(&session), "Page.navigate", json!({"url": context.page("/course/clipboard")})).await;
    client.event("Page.loadEventFired", |_| true).await;
    client.evaluate(&session, "from.value = 'heron'; from.focus()").await;
    for (element, key) in [("from", 'a'), ("from", 'c'), ("to", 'v')] {
        client.evaluate(&session, &format!("{element}.focus()")).await;
        let code = u32::from(key.to_ascii_uppercase());
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "modifiers": 2});
            client.ok(Some(&session), "Input.dispatchKeyEvent", event).await;
        }
    }
    let pasted = async {
        while client.evaluate(&session, "to.value").await != "heron" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), pasted).await.expect("the copied text is pasted");
    farm.reset(&lease).await.ok();
}

async fn cdp_session_options_hold_again_after_a_client(context: Context) {
    const IS_DARK: &str = "matchMedia('(prefers-color-scheme: dark)').matches";
    let farm = &context.farm;
    let lease = farm.get_with(&json!({"color_scheme": "dark"})).await;
    let url = farm.cdp_url(&lease).await;
    let mut client = CdpClient::connect(&url).await;
    let page = client.pages().await.remove(0);
    let session = client.attach(&page).await;
    assert_eq!(client.evaluate(&session, IS_DARK).await, true);
    let light = json!({"features": [{"name": "prefers-color-scheme", "value": "light"}]});
    client.ok(Some(&session), "Emulation.setEmulatedMedia", light).await;
    assert_eq!(client.evaluate(&session, IS_DARK).await, false);
    drop(client);
    let restored = async {
        loop {
            let mut client = CdpClient::connect(&url).await;
            let session = client.attach(&page).await;
            if client.evaluate(&session, IS_DARK).await == true {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), restored).await.expect("the session option holds again");
    farm.reset(&lease).await.ok();
}

async fn cdp_new_page_waits_for_its_client(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    let auto = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
    client.ok(None, "Target.setAutoAttach", auto).await;
    let first = client.event("Target.attachedToTarget", |_| true).await;
    assert_eq!(first["waitingForDebugger"], false, "the page of the lease runs already");
    let id = client.send(None, "Target.createTarget", &json!({"url": "about:blank"})).await;
    let created = client.reply(id).await.unwrap();
    // The announcement comes before the reply: clients rely on it.
    let is_new = |event: &serde_json::Value| event["targetInfo"]["targetId"] == created["targetId"];
    let attached = client.take_events().into_iter().map(|event| event["params"].clone()).find(is_new);
    let attached = attached.expect("the new page was announced before the reply");
    assert_eq!(attached["waitingForDebugger"], true);
    let opener = attached["sessionId"].as_str().unwrap();
    client.ok(Some(opener), "Runtime.runIfWaitingForDebugger", json!({})).await;
    let url = context.page("/course/buttons");
    let open = json!({"expression": format!("void open({url:?})"), "userGesture": true});
    client.send(Some(opener), "Runtime.evaluate", &open).await;
    let popup = client.event("Target.attachedToTarget", |event| event["targetInfo"]["type"] == "page").await;
    let (session, waiting) = (popup["sessionId"].as_str().unwrap(), &popup["waitingForDebugger"]);
    assert_eq!(*waiting, true, "{popup}");
    let script = json!({"source": "window.early = document.readyState"});
    // A page that waits answers nothing, so clients send their whole setup before they await a reply.
    let setup = [
        ("Page.enable", json!({})),
        ("Page.addScriptToEvaluateOnNewDocument", script),
        ("Runtime.runIfWaitingForDebugger", json!({})),
    ];
    for (method, params) in setup {
        client.send(Some(session), method, &params).await;
    }
    client.event("Page.loadEventFired", |_| true).await;
    assert_eq!(client.evaluate(session, "location.href").await, url);
    assert_eq!(client.evaluate(session, "window.early").await, "loading", "the script ran first");
    farm.reset(&lease).await.ok();
}

async fn cdp_connections_are_closed_by_reset(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.cdp_url(&lease).await;
    let (mut first, mut second) = (CdpClient::connect(&url).await, CdpClient::connect(&url).await);
    first.pages().await;
    second.pages().await;
    farm.reset(&lease).await.ok();
    for client in [&mut first, &mut second] {
        assert_eq!(client.closed().await, Some((1001, "the lease has ended".to_owned())));
    }
    let next = farm.get().await;
    assert_eq!(CdpClient::try_connect(&url).await.err(), Some(404), "the old address is of no use");
    let stale = Http::new(&url, None).get("/json/version", &[]).await;
    stale.assert_error(404, "invalid_instance", "no lease");
    farm.reset(&next).await.ok();
}

async fn cdp_wrong_secret_is_refused(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.cdp_url(&lease).await;
    let (start, secret) = url.rsplit_once('.').unwrap();
    let last = if secret.ends_with('0') { '1' } else { '0' };
    let changed = format!("{start}.{}{last}", &secret[..secret.len() - 1]);
    let short = format!("{start}.{}", &secret[..16]);
    for wrong in
        [&changed, &short, &format!("{start}."), &start.to_string(), &format!("{}/cdp/x.y", farm.http.base())]
    {
        assert_eq!(CdpClient::try_connect(wrong).await.err(), Some(404), "{wrong}");
        assert_eq!(Http::new(wrong, Some("default_key")).get("/json/list", &[]).await.status, 404, "{wrong}");
    }
    farm.reset(&lease).await.ok();
}

async fn cdp_contexts_of_a_client_are_bounded(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    for _ in 0..8 {
        let created = client.ok(None, "Target.createBrowserContext", json!({})).await;
        let params =
            json!({"url": context.page("/course/buttons"), "browserContextId": created["browserContextId"]});
        client.ok(None, "Target.createTarget", params).await;
    }
    let error = client.call(None, "Target.createBrowserContext", json!({})).await.unwrap_err();
    assert!(error["message"].as_str().is_some_and(|text| text.contains("8 contexts")), "{error}");
    let listed = client.ok(None, "Target.getBrowserContexts", json!({})).await;
    assert_eq!(listed["browserContextIds"].as_array().map(Vec::len), Some(8), "{listed}");
    let context_id = &listed["browserContextIds"][0];
    client.ok(None, "Target.disposeBrowserContext", json!({"browserContextId": context_id})).await;
    assert_eq!(client.pages().await.len(), 8, "the page of the lease and seven others");
    let error = client.call(None, "Target.createBrowserContext", json!({"proxyServer": "1.2.3.4:5"})).await;
    assert!(error.unwrap_err()["message"].as_str().is_some_and(|text| text.contains("network rules")));
    farm.reset(&lease).await.ok();
}

async fn cdp_dialogs_are_left_to_the_client(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    farm.visit(&lease, &context.page("/course/buttons")).await;
    let url = farm.cdp_url(&lease).await;
    let mut client = CdpClient::connect(&url).await;
    let page = client.pages().await.remove(0);
    let session = client.attach(&page).await;
    client.ok(Some(&session), "Page.enable", json!({})).await;
    let ask = json!({"expression": "confirm('sure?')"});
    let asking = client.send(Some(&session), "Runtime.evaluate", &ask).await;
    let dialog = client.event("Page.javascriptDialogOpening", |_| true).await;
    assert_eq!(dialog["message"], "sure?");
    client.ok(Some(&session), "Page.handleJavaScriptDialog", json!({"accept": false})).await;
    assert_eq!(client.reply(asking).await.unwrap()["result"]["value"], false, "the client said no");
    // A dialog that the client leaves open is accepted when it disconnects.
    client
        .send(
            Some(&session),
            "Runtime.evaluate",
            &json!({"expression": "document.title = confirm('again?')"}),
        )
        .await;
    client.event("Page.javascriptDialogOpening", |_| true).await;
    drop(client);
    let mut next = CdpClient::connect(&url).await;
    let session = next.attach(&page).await;
    assert_eq!(next.evaluate(&session, "document.title").await, "true");
    farm.reset(&lease).await.ok();
}

async fn cdp_connection_can_be_one_page(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.cdp_url(&lease).await;
    farm.visit(&lease, &context.page("/course/buttons")).await;
    let list = Http::new(&url, None).get("/json", &[]).await.ok();
    let mut client = CdpClient::connect(list[0]["webSocketDebuggerUrl"].as_str().unwrap()).await;
    let reply = client.ok(None, "Runtime.evaluate", json!({"expression": "location.pathname"})).await;
    assert_eq!(reply["result"]["value"], "/course/buttons");
    let unknown = format!("{url}/devtools/page/0123456789ABCDEF");
    assert_eq!(CdpClient::try_connect(&unknown).await.err(), Some(404));
    farm.reset(&lease).await.ok();
}

async fn cdp_browser_close_ends_the_lease(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut client = CdpClient::connect(&farm.cdp_url(&lease).await).await;
    client.ok(None, "Browser.close", json!({})).await;
    assert_eq!(client.closed().await, Some((1001, "the lease has ended".to_owned())));
    farm.probe(&lease).await.assert_error(400, "invalid_instance", "Invalid instance UUID");
    let next = farm.get().await;
    farm.probe(&next).await.ok();
    farm.reset(&next).await.ok();
}
