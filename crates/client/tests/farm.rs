//! The farm client against real HTTP servers that respond like our farm and like the Python system.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod support;

use std::time::Duration;

use client::{
    farm::{
        CdpUrl, ClientError, FarmClient, FarmClientOptions, GrantedLease, Lease, LiveUrl, ObserveOptions,
        Viewport,
    },
    http::{Deadline, RetryPolicy},
};
use proto::{
    Command, ImageFormat, InteractionMode, SessionOptions,
    command::{Point, Scroll},
};
use serde::Serialize;
use serde_json::{Value, json};
use support::{ScriptedResponse, Server, closed_port_url, json_response, respond};

fn options() -> FarmClientOptions {
    let retry = RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    FarmClientOptions { retry, ..FarmClientOptions::default() }
}

fn client(server: &Server) -> FarmClient {
    FarmClient::new(&server.url(), "k1", options()).unwrap()
}

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn lease() -> Lease {
    Lease { instance_id: "u-1:9000".into(), node: "http://10.0.0.1:8080".into() }
}

/// Returns the first bytes of a PNG of 1280 by 768 pixels.
fn png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(1280_u32.to_be_bytes());
    bytes.extend(768_u32.to_be_bytes());
    bytes
}

fn success() -> ScriptedResponse {
    json_response(200, &json!({"status": "success"}))
}

fn click() -> Command {
    Command::ClickCoords { point: Point { x: 1.0, y: 2.0 } }
}

const MARKS: InteractionMode = InteractionMode::SetOfMarks;

#[tokio::test]
async fn lease_is_acquired_and_released() {
    let live_url = "http://10.0.0.1:7000/live/u-1:9000.secret";
    let granted = json!({"instance_id": "u-1:9000", "node": "http://10.0.0.1:8080", "live_url": live_url, "cdp_url": "http://10.0.0.1:7000/cdp/u-1:9000.secret/"});
    let server = Server::start(vec![json_response(200, &granted), success()]).await;
    let farm = client(&server);
    let granted = farm.acquire(50, Some(5), "key-1", &SessionOptions::default(), deadline()).await.unwrap();
    let live_url = LiveUrl::new("http://10.0.0.1:7000/live/u-1:9000.secret");
    let cdp_url = CdpUrl::new("http://10.0.0.1:7000/cdp/u-1:9000.secret");
    assert!(!format!("{granted:?}").contains("secret"), "{granted:?}");
    assert_eq!(granted, GrantedLease { lease: lease(), live_url, cdp_url });
    assert_eq!(farm.release(&lease(), deadline()).await, Ok(()));
    let requests = server.requests();
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/get"));
    assert_eq!(requests[0].query, "lifetime_mins=50&idempotency_key=key-1&wait_secs=5");
    assert_eq!((requests[1].method.as_str(), requests[1].path.as_str()), ("POST", "/reset"));
    assert_eq!(requests[1].query, "instance_id=u-1%3A9000&node=http%3A%2F%2F10.0.0.1%3A8080");
    assert!(requests.iter().all(|request| request.header("x-api-key") == "k1"));
    assert!(!format!("{farm:?}").contains("k1"));
}

#[tokio::test]
async fn full_farm_is_retried_until_the_deadline() {
    let full =
        json_response(503, &json!({"detail": "No available nodes with capacity to create new instance"}));
    let granted = json_response(200, &json!({"instance_id": "a:1", "node": "n"}));
    let script = vec![full.clone(), full.clone(), full.clone(), full.clone(), full.clone(), granted];
    let server = Server::start(script).await;
    assert!(client(&server).acquire(60, None, "k", &SessionOptions::default(), deadline()).await.is_ok());
    assert_eq!(server.requests().len(), 6);
    let server = Server::start(vec![full]).await;
    let error = client(&server)
        .acquire(60, None, "k", &SessionOptions::default(), Deadline::after(Duration::from_secs(1)))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Full(_)) && error.is_infrastructure(), "{error}");
}

#[tokio::test]
async fn commands_are_sent_in_contract_format() {
    let server = Server::start(vec![json_response(200, &json!({"title": "T", "url": "u"}))]).await;
    let farm = client(&server);
    let got = farm.execute(&lease(), &Command::GetPageMetadata, deadline()).await.unwrap();
    assert_eq!(got["title"], "T");
    farm.execute(&lease(), &Command::PageDown(Scroll { amount: 200.0, full_page: true }), deadline())
        .await
        .unwrap();
    let requests = server.requests();
    assert_eq!(
        requests[0].json(),
        json!({"node": lease().node, "instance_id": lease().instance_id, "get_page_metadata": {}})
    );
    assert_eq!(requests[1].json()["page_down"], json!({"amount": 200.0, "full_page": true}));
}

#[tokio::test]
async fn metadata_probe_and_info_are_read() {
    let info = json!({"nodes": [{"url": "u", "hash": "h", "healthy": true, "capacity": 4, "available": 3, "instances": ["a:1"], "new": 1}]});
    let script = vec![
        json_response(200, &json!({"width": 1280, "height": 768.0})),
        json_response(200, &json!({"status": "success", "message": "Probe successful"})),
        json_response(200, &info),
        json_response(500, &json!({"detail": "dead"})),
    ];
    let server = Server::start(script).await;
    let farm = client(&server);
    assert_eq!(farm.metadata(&lease(), deadline()).await, Ok(Viewport { width: 1280, height: 768 }));
    assert_eq!(farm.probe(&lease(), deadline()).await, Ok(()));
    let nodes = farm.info(deadline()).await.unwrap().nodes;
    assert_eq!((nodes[0].available, nodes[0].instances[0].as_str()), (3, "a:1"));
    assert!(matches!(farm.probe(&lease(), deadline()).await, Err(ClientError::InstanceLost(_))));
}

#[tokio::test]
async fn screenshot_must_be_an_image() {
    let dead = respond(200, "image/png", "Internal Server Error");
    let server = Server::start(vec![respond(200, "image/png", png()), dead]).await;
    let farm = client(&server);
    assert_eq!(farm.screenshot(&lease(), MARKS, deadline()).await.unwrap(), png());
    assert!(server.requests()[0].query.ends_with("&interaction_mode=set_of_marks"));
    let error = farm.screenshot(&lease(), MARKS, deadline()).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::InstanceLost(detail) if detail.contains("Internal Server Error")),
        "{error}"
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn only_idempotent_commands_are_retried() {
    for failure in [
        ScriptedResponse::Disconnect,
        json_response(500, &json!({"detail": "x"})),
        json_response(504, &json!({"detail": "slow"})),
    ] {
        let server = Server::start(vec![failure.clone(), success()]).await;
        let visit = Command::VisitPage { url: "https://a.example".into() };
        assert!(client(&server).execute(&lease(), &visit, deadline()).await.is_ok(), "{failure:?}");
        let server = Server::start(vec![failure.clone(), success()]).await;
        assert!(client(&server).execute(&lease(), &click(), deadline()).await.is_err(), "{failure:?}");
        assert_eq!(server.requests().len(), 1, "{failure:?}");
    }
    let server =
        Server::start(vec![json_response(422, &json!({"detail": "gone", "code": "element_not_found"}))])
            .await;
    let hover = Command::HoverId { id: "3".into() };
    let error = client(&server).execute(&lease(), &hover, deadline()).await.unwrap_err();
    assert_eq!(error, ClientError::ElementNotFound("gone".into()));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn second_release_after_lost_response_succeeds() {
    let not_in_use = json_response(400, &json!({"detail": "Instance not in use or already released"}));
    let server = Server::start(vec![ScriptedResponse::Disconnect, not_in_use.clone()]).await;
    assert_eq!(client(&server).release(&lease(), deadline()).await, Ok(()));
    let server = Server::start(vec![not_in_use]).await;
    assert!(matches!(
        client(&server).release(&lease(), deadline()).await,
        Err(ClientError::InvalidInstance(_))
    ));
}

#[tokio::test]
async fn each_kind_of_failure_has_its_own_error() {
    let unreachable = FarmClient::new(&closed_port_url().await, "k", options()).unwrap();
    let error = unreachable.execute(&lease(), &click(), deadline()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    let server = Server::start(vec![ScriptedResponse::Silence]).await;
    let short_timeout = FarmClientOptions { operation_timeout: Duration::from_millis(30), ..options() };
    let farm = FarmClient::new(&server.url(), "k", short_timeout).unwrap();
    let error = farm.execute(&lease(), &click(), deadline()).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout(_)), "{error}");
    assert_eq!(server.requests().len(), 1);
    let server = Server::start(vec![ScriptedResponse::Disconnect]).await;
    let error = client(&server).execute(&lease(), &click(), deadline()).await.unwrap_err();
    assert!(matches!(error, ClientError::ResponseLost(_)), "{error}");
    let server = Server::start(vec![json_response(401, &json!({"detail": "Invalid API Key."}))]).await;
    assert!(matches!(client(&server).info(deadline()).await, Err(ClientError::Auth(_))));
    assert_eq!(server.requests().len(), 1);
    let server = Server::start(vec![respond(200, "text/plain", "hello")]).await;
    assert!(matches!(client(&server).info(deadline()).await, Err(ClientError::Other(_))));
    let server = Server::start(vec![json_response(
        200,
        &json!({"status": "error", "message": "Node x is not found"}),
    )])
    .await;
    assert!(matches!(client(&server).info(deadline()).await, Err(ClientError::UnknownNode(_))));
}

fn observation(data: impl Serialize) -> Value {
    json!({
        "result": {"status": "success"}, "error": null, "settled": true, "settle_ms": 41,
        "screenshot": {"format": "png", "width": 1280, "height": 768, "data": data},
        "metadata": {"title": "T", "url": "https://a.example/"}, "ac_tree": "id: 1, text: Buy, tag: button",
        "screenshot_info": null, "unchanged": false,
    })
}

#[tokio::test]
async fn step_is_one_request_if_farm_supports_it() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let server = Server::start(vec![json_response(200, &observation(STANDARD.encode(png())))]).await;
    let options = ObserveOptions::for_step(MARKS);
    let got = client(&server).step(&lease(), &click(), &options, deadline()).await.unwrap();
    let screenshot = got.screenshot.unwrap();
    assert_eq!((screenshot.width, screenshot.height, &screenshot.data[..]), (1280, 768, &png()[..]));
    assert_eq!(got.metadata.unwrap().title, "T");
    assert_eq!(got.ac_tree.as_deref(), Some("id: 1, text: Buy, tag: button"));
    assert_eq!((got.settled, got.settle_ms, got.unchanged, got.failure), (true, 41, false, None));
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].path.as_str(), requests[0].header("accept")), ("/step", "application/msgpack"));
    assert_eq!(
        requests[0].json(),
        json!({"node": lease().node, "instance_id": lease().instance_id, "interaction_mode": "set_of_marks", "format": "png",
               "include": ["screenshot", "metadata", "ac_tree"], "command": {"click_coords": {"x": 1.0, "y": 2.0}}})
    );
}

/// A screenshot in a MessagePack response of the farm: a map with named fields and raw bytes.
#[derive(Serialize)]
struct PackedScreenshot<'a> {
    format: &'a str,
    width: u32,
    height: u32,
    #[serde(serialize_with = "raw")]
    data: &'a [u8],
}

fn raw<S: serde::Serializer>(bytes: &&[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

#[derive(Serialize)]
struct Packed<'a> {
    error: Option<Value>,
    settled: bool,
    settle_ms: u64,
    screenshot: PackedScreenshot<'a>,
    metadata: Value,
    unchanged: bool,
}

#[tokio::test]
async fn observation_is_read_from_messagepack() {
    let bytes = png();
    let packed = Packed {
        error: Some(json!({"code": "navigation_failed", "detail": "net::ERR_X"})),
        settled: false,
        settle_ms: 3000,
        screenshot: PackedScreenshot { format: "png", width: 1280, height: 768, data: &bytes },
        metadata: json!({"title": "T", "url": "u"}),
        unchanged: true,
    };
    let body = rmp_serde::to_vec_named(&packed).unwrap();
    let server = Server::start(vec![respond(200, "application/msgpack", body)]).await;
    let options = ObserveOptions::for_step(InteractionMode::Coordinates);
    let got = client(&server).observe(&lease(), &options, deadline()).await.unwrap();
    assert_eq!(&got.screenshot.unwrap().data[..], &bytes[..]);
    assert_eq!(got.failure, Some(ClientError::NavigationFailed("net::ERR_X".into())));
    assert!(got.unchanged && !got.settled);
    assert_eq!(server.requests()[0].path, "/observe");
    assert_eq!(server.requests()[0].json()["include"], json!(["screenshot", "metadata"]));
}

#[tokio::test]
async fn farm_without_step_uses_separate_calls() {
    let info = json!({
        "visible_rects": [1], "rects_above": [], "rects_below": [], "id_mapping": {"1": 40},
        "interactive_regions": {"40": {"aria_name": "Buy", "tag_name": "button", "role": "button", "v_scrollable": false, "rects": []}},
    });
    let script = vec![
        json_response(404, &json!({"detail": "Not Found"})),
        json_response(500, &json!({"status": "error", "message": "cannot click"})),
        respond(200, "image/png", png()),
        json_response(200, &info),
        json_response(200, &json!({"title": "", "url": "https://a.example/"})),
        success(),
        respond(200, "image/png", png()),
        json_response(200, &json!({"error": "No screenshot info available"})),
        json_response(200, &json!({"title": "Two", "url": "https://a.example/2"})),
    ];
    let server = Server::start(script).await;
    let farm = client(&server);
    let options = ObserveOptions::for_step(MARKS);
    let got = farm.step(&lease(), &click(), &options, deadline()).await.unwrap();
    assert_eq!(got.failure, Some(ClientError::Other("500: cannot click".into())));
    assert_eq!(got.ac_tree.as_deref(), Some("id: 1, text: Buy, tag: button"));
    assert_eq!(got.metadata.unwrap().title, "Unknown Page");
    assert_eq!(got.screenshot.unwrap().width, 1280);
    let second = farm.step(&lease(), &click(), &options, deadline()).await.unwrap();
    assert_eq!((second.failure, second.ac_tree), (None, None));
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(
        paths,
        [
            "/step",
            "/execute",
            "/screenshot",
            "/execute",
            "/execute",
            "/execute",
            "/screenshot",
            "/execute",
            "/execute"
        ]
    );
}

#[tokio::test]
async fn lost_browser_ends_step_without_observing() {
    let script = vec![
        json_response(405, &json!({})),
        json_response(500, &json!({"detail": "gone", "code": "instance_lost"})),
    ];
    let server = Server::start(script).await;
    let error = client(&server)
        .step(&lease(), &click(), &ObserveOptions::for_step(MARKS), deadline())
        .await
        .unwrap_err();
    assert!(error.is_instance_gone(), "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn openapi_document_is_read_once() {
    let ours = json!({"paths": {"/step": {}, "/observe": {}}});
    for (script, wanted) in [
        (json_response(200, &ours), true),
        (json_response(200, &json!({"paths": {"/execute": {}}})), false),
        (json_response(404, &json!({"detail": "Not Found"})), false),
    ] {
        let server = Server::start(vec![script]).await;
        let farm = client(&server);
        assert_eq!(farm.supports_step(deadline()).await, Ok(wanted));
        assert_eq!(farm.clone().supports_step(deadline()).await, Ok(wanted));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn screenshot_format_is_checked() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut body = observation(STANDARD.encode(b"\xff\xd8\xff\xe0rest"));
    body["screenshot"]["format"] = json!("jpeg");
    let mut wrong = body.clone();
    wrong["screenshot"]["format"] = json!("webp");
    let server = Server::start(vec![json_response(200, &body), json_response(200, &wrong)]).await;
    let options = ObserveOptions { format: ImageFormat::Jpeg, ..ObserveOptions::for_step(MARKS) };
    let farm = client(&server);
    assert_eq!(
        farm.observe(&lease(), &options, deadline()).await.unwrap().screenshot.unwrap().format,
        ImageFormat::Jpeg
    );
    assert!(matches!(farm.observe(&lease(), &options, deadline()).await, Err(ClientError::InstanceLost(_))));
}
