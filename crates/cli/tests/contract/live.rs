//! The live view of a lease: who may watch, what a viewer sees, and what a person may do.

use serde_json::{Value, json};
use testkit::{CdpClient, Http, Lease, LiveClient, LiveMessage};

use crate::{Context, checks};

checks![
    live_page_is_served,
    live_wrong_secret_is_refused,
    live_viewer_sees_page_and_console,
    live_read_only_link_refuses_input,
    live_person_clicks_and_types,
    live_view_has_the_size_of_the_viewport,
    live_person_navigates_under_the_rules,
    live_view_follows_the_current_tab,
    live_windows_of_a_person_are_followed,
    live_views_are_closed_by_reset,
    live_viewers_are_bounded,
    live_messages_are_bounded,
    live_watching_leaves_commands_alone,
];

/// A page whose title is what was typed into its only field, which fills the top of the page.
const FIELD: &str = "data:text/html,<title>empty</title><body style='margin:0'><input id=field autofocus style='width:600px;height:100px' \
     oninput='document.title=this.value'><p>below</p>";

async fn title(context: &Context, lease: &Lease) -> Value {
    context.farm.execute(lease, json!({"get_page_metadata": {}})).await.ok()["title"].take()
}

async fn click(viewer: &mut LiveClient, x: u32, y: u32) {
    for (event, buttons) in [("move", 0), ("down", 1), ("up", 0)] {
        let button = if event == "move" { "none" } else { "left" };
        viewer
            .send(&json!({"type": "mouse", "event": event, "x": x, "y": y, "button": button, "buttons": buttons, "clicks": 1}))
            .await;
    }
}

async fn press(viewer: &mut LiveClient, key: &str) {
    let code = u32::from(key.to_ascii_uppercase().as_bytes()[0]);
    for event in ["down", "up"] {
        viewer.send(&json!({"type": "key", "event": event, "key": key, "key_code": code})).await;
    }
}

async fn live_page_is_served(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let (watch, control) = (farm.live_url(&lease).await, farm.live_control_url(&lease).await);
    assert_ne!(watch, control);
    for url in [&watch, &control] {
        assert!(url.starts_with(&format!("{}/live/", farm.http.base())));
        let page = Http::new(url, None).get("", &[]).await;
        assert_eq!((page.status, page.content_type()), (200, "text/html; charset=utf-8"));
        let header = |name: &str| page.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        assert_eq!((header("cache-control"), header("referrer-policy")), ("no-store", "no-referrer"));
        assert!(header("content-security-policy").starts_with("default-src 'none'"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        Http::new(url, None).get("/socket", &[]).await.assert_error(400, "bad_request", "WebSocket");
        assert_eq!(Http::new(url, None).get("/other", &[]).await.status, 404);
    }
    for asset in ["live.css", "live.js", "panel.js", "input.js"] {
        let file = Http::new(farm.http.base(), None).get(&format!("/live/assets/{asset}"), &[]).await;
        assert_eq!(file.status, 200, "{asset}");
    }
    let reply = farm.reset(&lease).await.ok();
    assert_eq!(reply, json!({"status": "success"}));
}

async fn live_wrong_secret_is_refused(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.live_control_url(&lease).await;
    let (start, secret) = url.rsplit_once('.').unwrap();
    let last = if secret.ends_with('0') { '1' } else { '0' };
    let changed = format!("{start}.{}{last}", &secret[..secret.len() - 1]);
    let swapped = |url: &str| url.replace("/live/", "/?/").replace("/cdp/", "/live/").replace("/?/", "/cdp/");
    let cdp_secret = swapped(&farm.cdp_url(&lease).await);
    let other = format!("{}/live/x.y", farm.http.base());
    for wrong in &[changed, cdp_secret, format!("{start}."), start.to_owned(), other] {
        assert_eq!(LiveClient::try_connect(wrong).await.err(), Some(404));
        assert_eq!(Http::new(wrong, Some("default_key")).get("", &[]).await.status, 404);
    }
    for live in [url, farm.live_url(&lease).await] {
        assert_eq!(CdpClient::try_connect(&swapped(&live)).await.err(), Some(404), "not for CDP clients");
    }
    farm.reset(&lease).await.ok();
}

async fn live_viewer_sees_page_and_console(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    farm.visit(&lease, "data:text/html,<title>first</title><script>console.log('early', 1)</script>").await;
    let mut viewer = LiveClient::connect(&farm.live_url(&lease).await).await;
    let hello = viewer.wait_for("hello", |_| true).await;
    assert_eq!((&hello["control"], &hello["viewport"]["width"]), (&json!(false), &json!(1280)));
    assert!(viewer.frame().await.starts_with(b"\xff\xd8\xff"), "a JPEG");
    viewer.wait_for("page", |page| page["title"] == "first").await;
    viewer.wait_for("console", |console| console["entries"][0]["text"] == "early 1").await;
    let markup = "<title><img src=x></title><h1>second</h1><script>console.error('<b>late</b>', {a: 1}); throw new Error('thrown')</script>";
    farm.visit(&lease, &format!("data:text/html,{markup}")).await;
    viewer.wait_for("page", |page| page["title"] == "<img src=x>").await;
    let second = viewer
        .wait_for("console", |console| {
            console["entries"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["text"] == "<b>late</b> {a: 1}"))
        })
        .await;
    assert!(second.to_string().contains("error"), "{second}");
    let lease_state = viewer.wait_for("lease", |_| true).await;
    assert_eq!((&lease_state["viewers"], &lease_state["controllers"]), (&json!(1), &json!(0)));
    // Another site, another process: the screencast goes on.
    let seen = viewer.frames;
    farm.visit(&lease, &context.page("/course/buttons")).await;
    viewer.wait_for("page", |page| page["url"] == context.page("/course/buttons")).await;
    if viewer.frames == seen {
        viewer.frame().await;
    }
    farm.reset(&lease).await.ok();
}

async fn live_read_only_link_refuses_input(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    farm.visit(&lease, FIELD).await;
    let mut viewer = LiveClient::connect(&farm.live_url(&lease).await).await;
    viewer.frame().await;
    press(&mut viewer, "a").await;
    click(&mut viewer, 300, 50).await;
    viewer.send(&json!({"type": "navigate", "url": "about:blank"})).await;
    for message in [
        json!({"type": "text", "text": "x"}),
        json!({"type": "reload"}),
        json!({"type": "back"}),
        json!({"type": "wheel", "x": 1, "y": 1, "dx": 0, "dy": 100}),
    ] {
        viewer.send(&message).await;
    }
    for _ in 0..10 {
        let refused = viewer.wait_for("error", |_| true).await;
        assert!(refused["detail"].as_str().is_some_and(|text| text.contains("watching only")), "{refused}");
    }
    assert_eq!(title(&context, &lease).await, "empty");
    farm.reset(&lease).await.ok();
}

async fn live_person_clicks_and_types(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    farm.visit(&lease, FIELD).await;
    let mut viewer = LiveClient::connect(&farm.live_control_url(&lease).await).await;
    assert_eq!(viewer.wait_for("hello", |_| true).await["control"], true);
    viewer.frame().await;
    click(&mut viewer, 300, 50).await;
    press(&mut viewer, "h").await;
    press(&mut viewer, "i").await;
    viewer.send(&json!({"type": "text", "text": " ñ漢👩‍🚀"})).await;
    viewer.wait_for("page", |page| page["title"] == "hi ñ漢👩‍🚀").await;
    assert_eq!(title(&context, &lease).await, "hi ñ漢👩‍🚀", "commands see what the person did");
    viewer.send(&json!({"type": "reload"})).await;
    viewer.wait_for("page", |page| page["title"] == "empty").await;
    farm.reset(&lease).await.ok();
}

async fn live_view_has_the_size_of_the_viewport(context: Context) {
    let farm = &context.farm;
    let options = json!({"viewport": {"width": 700, "height": 900}, "device_scale_factor": 2});
    let lease = farm.get_with(&options).await;
    farm.visit(
        &lease,
        "data:text/html,<title>waiting</title><body onclick='document.title=`${event.clientX} ${event.clientY}`' style='height:2000px'>",
    )
    .await;
    let mut viewer = LiveClient::connect(&farm.live_control_url(&lease).await).await;
    let hello = viewer.wait_for("hello", |_| true).await;
    assert_eq!(hello["viewport"], json!({"width": 700, "height": 900}));
    let frame = viewer.frame().await;
    let size = jpeg_size(&frame).expect("a JPEG");
    assert!(size.0 <= 700 && size.1 <= 900, "{size:?}");
    click(&mut viewer, 650, 850).await;
    viewer.wait_for("page", |page| page["title"] == "650 850").await;
    farm.reset(&lease).await.ok();
}

/// Reads width and height from the frame header of a JPEG.
fn jpeg_size(bytes: &[u8]) -> Option<(u16, u16)> {
    let mut rest = bytes.get(2..)?;
    loop {
        let [0xff, marker, high, low, ..] = *rest else { return None };
        if matches!(marker, 0xc0..=0xc2) {
            let side = |at: usize| Some(u16::from_be_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
            return Some((side(7)?, side(5)?));
        }
        rest = rest.get(2 + usize::from(u16::from_be_bytes([high, low]))..)?;
    }
}

async fn live_person_navigates_under_the_rules(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let mut viewer = LiveClient::connect(&farm.live_control_url(&lease).await).await;
    viewer.send(&json!({"type": "navigate", "url": context.page("/course/buttons")})).await;
    viewer.wait_for("page", |page| page["url"] == context.page("/course/buttons")).await;
    viewer.wait_for("done", |_| true).await;
    for refused in ["file:///etc/passwd", "chrome://version", "not a url"] {
        viewer.send(&json!({"type": "navigate", "url": refused})).await;
        let error = viewer.wait_for("error", |_| true).await;
        assert!(error["detail"].as_str().is_some_and(|detail| detail.contains(refused)), "{error}");
    }
    farm.visit(&lease, &context.page("/course/storage")).await;
    // The address is read a few times per second: a page that is left at once is not reported.
    viewer.wait_for("page", |page| page["url"] == context.page("/course/storage")).await;
    viewer.send(&json!({"type": "back"})).await;
    viewer.wait_for("page", |page| page["url"] == context.page("/course/buttons")).await;
    farm.reset(&lease).await.ok();
}

async fn live_view_follows_the_current_tab(context: Context) {
    let farm = &context.farm;
    let lease = farm.get_with(&json!({"tabs": "many"})).await;
    farm.visit(&lease, "data:text/html,<title>one</title>").await;
    let mut viewer = LiveClient::connect(&farm.live_url(&lease).await).await;
    viewer.wait_for("page", |page| page["title"] == "one").await;
    farm.execute(&lease, json!({"open_tab": {"url": "data:text/html,<title>two</title><h1>two</h1>"}}))
        .await
        .ok();
    viewer.wait_for("page", |page| page["title"] == "two").await;
    farm.execute(&lease, json!({"switch_tab": {"id": "1"}})).await.ok();
    viewer.wait_for("page", |page| page["title"] == "one").await;
    farm.execute(&lease, json!({"close_tab": {}})).await.ok();
    viewer.wait_for("page", |page| page["title"] == "two").await;
    farm.reset(&lease).await.ok();
}

async fn live_windows_of_a_person_are_followed(context: Context) {
    let farm = &context.farm;
    let target = context.page("/course/buttons");
    let link = format!(
        "data:text/html,<title>link</title><a style='position:absolute;inset:0' target=_blank href='{target}'>x</a>"
    );
    for (tabs, count) in [("single", 1), ("many", 2)] {
        let lease = farm.get_with(&json!({"tabs": tabs})).await;
        farm.visit(&lease, &link).await;
        let mut viewer = LiveClient::connect(&farm.live_control_url(&lease).await).await;
        viewer.frame().await;
        click(&mut viewer, 300, 300).await;
        viewer.wait_for("page", |page| page["url"] == target).await;
        let listed = farm.execute(&lease, json!({"list_tabs": {}})).await.ok();
        assert_eq!(listed["tabs"].as_array().map(Vec::len), Some(count), "{tabs}: {listed}");
        farm.reset(&lease).await.ok();
    }
}

async fn live_views_are_closed_by_reset(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let (watch, control) = (farm.live_url(&lease).await, farm.live_control_url(&lease).await);
    let mut viewers = [LiveClient::connect(&watch).await, LiveClient::connect(&control).await];
    for viewer in &mut viewers {
        viewer.frame().await;
    }
    farm.reset(&lease).await.ok();
    for viewer in &mut viewers {
        assert_eq!(viewer.closed().await, Some((1001, "the lease has ended".to_owned())));
    }
    let next = farm.get().await;
    for url in [watch, control] {
        assert_eq!(LiveClient::try_connect(&url).await.err(), Some(404), "the old address is of no use");
        Http::new(&url, None).get("", &[]).await.assert_error(404, "invalid_instance", "no lease");
    }
    farm.reset(&next).await.ok();
}

async fn live_viewers_are_bounded(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.live_url(&lease).await;
    let mut viewers = Vec::new();
    for _ in 0..8 {
        let mut viewer = LiveClient::connect(&url).await;
        viewer.frame().await;
        viewers.push(viewer);
    }
    let mut refused = LiveClient::connect(&url).await;
    let (code, reason) = refused.closed().await.expect("a reason");
    assert!(code == 1013 && reason.contains("8 viewers"), "{code} {reason}");
    drop(viewers.pop());
    // The farm notices a moment later that the viewer has left.
    let another = async {
        loop {
            let mut viewer = LiveClient::connect(&url).await;
            if matches!(viewer.next().await, LiveMessage::Json(hello) if hello["type"] == "hello") {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), another).await.expect("another viewer fits");
    farm.reset(&lease).await.ok();
}

async fn live_messages_are_bounded(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let url = farm.live_control_url(&lease).await;
    let mut viewer = LiveClient::connect(&url).await;
    for wrong in ["", "[]", "{}", "{\"type\":\"evaluate\"}", "{\"type\":\"mouse\",\"event\":\"down\"}"] {
        viewer.send_text(wrong).await;
        let error = viewer.wait_for("error", |_| true).await;
        assert!(error["detail"].as_str().is_some_and(|text| text.contains("not valid")), "{error}");
    }
    viewer.send(&json!({"type": "text", "text": "x".repeat(17 << 10)})).await;
    assert_eq!(viewer.closed().await, Some((1009, "a message is larger than 16 KiB".to_owned())));
    let mut viewer = LiveClient::connect(&url).await;
    for _ in 0..5000 {
        viewer.send(&json!({"type": "mouse", "event": "move", "x": 1, "y": 1})).await;
    }
    let (code, reason) = viewer.closed().await.expect("a reason");
    assert!(code == 1008 && reason.contains("200 messages per second"), "{code} {reason}");
    farm.probe(&lease).await.ok();
    farm.reset(&lease).await.ok();
}

async fn live_watching_leaves_commands_alone(context: Context) {
    let farm = &context.farm;
    let lease = farm.get().await;
    let page = context.page("/course/buttons");
    farm.visit(&lease, &page).await;
    let plain = [("interaction_mode", "coordinates")];
    let before = farm.screenshot(&lease, &plain).await;
    let mut viewer = LiveClient::connect(&farm.live_url(&lease).await).await;
    viewer.frame().await;
    assert_eq!(farm.screenshot(&lease, &plain).await.body, before.body, "the same screenshot, watched");
    farm.visit(&lease, FIELD).await;
    farm.execute(&lease, json!({"click_coords": {"x": 300, "y": 50}})).await.ok();
    farm.execute(&lease, json!({"type_text": {"text": "typed"}})).await.ok();
    assert_eq!(title(&context, &lease).await, "typed");
    drop(viewer);
    farm.visit(&lease, &page).await;
    assert_eq!(farm.screenshot(&lease, &plain).await.body, before.body, "the same screenshot afterwards");
    farm.reset(&lease).await.ok();
}
