//! The farm client against real HTTP servers that answer as our farm and as the Python system do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

mod support;

use std::time::Duration;

use client::{
    farm::{ClientError, FarmClient, FarmOptions, Lease, ObserveOptions, Viewport},
    http::{Deadline, RetryPolicy},
};
use proto::{
    Command, ImageFormat, InteractionMode,
    command::{Point, Scroll},
};
use serde::Serialize;
use serde_json::{Value, json};
use support::{Answer, Server, json as answer, nobody, say};

fn options() -> FarmOptions {
    let retry = RetryPolicy {
        max_retries: 2,
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    FarmOptions { retry, ..FarmOptions::default() }
}

fn client(server: &Server) -> FarmClient {
    FarmClient::new(&server.url(), "k1", options()).unwrap()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn lease() -> Lease {
    Lease { instance_id: "u-1:9000".into(), node: "http://10.0.0.1:8080".into() }
}

/// The start of a PNG of 1280 by 768.
fn png() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(1280_u32.to_be_bytes());
    bytes.extend(768_u32.to_be_bytes());
    bytes
}

fn success() -> Answer {
    answer(200, &json!({"status": "success"}))
}

fn click() -> Command {
    Command::ClickCoords { point: Point { x: 1.0, y: 2.0 } }
}

const MARKS: InteractionMode = InteractionMode::SetOfMarks;

#[tokio::test]
async fn lease_is_acquired_and_released() {
    let granted = json!({"instance_id": "u-1:9000", "node": "http://10.0.0.1:8080"});
    let server = Server::start(vec![answer(200, &granted), success()]).await;
    let farm = client(&server);
    assert_eq!(farm.acquire(50, Some(5), "key-1", soon()).await, Ok(lease()));
    assert_eq!(farm.release(&lease(), soon()).await, Ok(()));
    let asked = server.asked();
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("POST", "/get"));
    assert_eq!(asked[0].query, "lifetime_mins=50&idempotency_key=key-1&wait_secs=5");
    assert_eq!((asked[1].method.as_str(), asked[1].path.as_str()), ("POST", "/reset"));
    assert_eq!(asked[1].query, "instance_id=u-1%3A9000&node=http%3A%2F%2F10.0.0.1%3A8080");
    assert!(asked.iter().all(|asked| asked.header("x-api-key") == "k1"));
    assert!(!format!("{farm:?}").contains("k1"));
}

#[tokio::test]
async fn full_farm_is_retried_until_the_deadline() {
    let full = answer(503, &json!({"detail": "No available nodes with capacity to create new instance"}));
    let granted = answer(200, &json!({"instance_id": "a:1", "node": "n"}));
    let script = vec![full.clone(), full.clone(), full.clone(), full.clone(), full.clone(), granted];
    let server = Server::start(script).await;
    assert!(client(&server).acquire(60, None, "k", soon()).await.is_ok());
    assert_eq!(server.asked().len(), 6);
    let server = Server::start(vec![full]).await;
    let problem =
        client(&server).acquire(60, None, "k", Deadline::after(Duration::from_secs(1))).await.unwrap_err();
    assert!(matches!(problem, ClientError::Full(_)) && problem.is_infrastructure(), "{problem}");
}

#[tokio::test]
async fn commands_are_sent_in_contract_format() {
    let server = Server::start(vec![answer(200, &json!({"title": "T", "url": "u"}))]).await;
    let farm = client(&server);
    let got = farm.execute(&lease(), &Command::GetPageMetadata, soon()).await.unwrap();
    assert_eq!(got["title"], "T");
    farm.execute(&lease(), &Command::PageDown(Scroll { amount: 200.0, full_page: true }), soon())
        .await
        .unwrap();
    let asked = server.asked();
    assert_eq!(
        asked[0].json(),
        json!({"node": lease().node, "instance_id": lease().instance_id, "get_page_metadata": {}})
    );
    assert_eq!(asked[1].json()["page_down"], json!({"amount": 200.0, "full_page": true}));
}

#[tokio::test]
async fn metadata_probe_and_info_are_read() {
    let info = json!({"nodes": [{"url": "u", "hash": "h", "healthy": true, "capacity": 4, "available": 3, "instances": ["a:1"], "new": 1}]});
    let script = vec![
        answer(200, &json!({"width": 1280, "height": 768.0})),
        answer(200, &json!({"status": "success", "message": "Probe successful"})),
        answer(200, &info),
        answer(500, &json!({"detail": "dead"})),
    ];
    let server = Server::start(script).await;
    let farm = client(&server);
    assert_eq!(farm.metadata(&lease(), soon()).await, Ok(Viewport { width: 1280, height: 768 }));
    assert_eq!(farm.probe(&lease(), soon()).await, Ok(()));
    let nodes = farm.info(soon()).await.unwrap().nodes;
    assert_eq!((nodes[0].available, nodes[0].instances[0].as_str()), (3, "a:1"));
    assert!(matches!(farm.probe(&lease(), soon()).await, Err(ClientError::InstanceLost(_))));
}

#[tokio::test]
async fn screenshot_must_be_an_image() {
    let dead = say(200, "image/png", "Internal Server Error");
    let server = Server::start(vec![say(200, "image/png", png()), dead]).await;
    let farm = client(&server);
    assert_eq!(farm.screenshot(&lease(), MARKS, soon()).await.unwrap(), png());
    assert!(server.asked()[0].query.ends_with("&interaction_mode=set_of_marks"));
    let problem = farm.screenshot(&lease(), MARKS, soon()).await.unwrap_err();
    assert!(
        matches!(&problem, ClientError::InstanceLost(detail) if detail.contains("Internal Server Error")),
        "{problem}"
    );
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn only_idempotent_commands_are_retried() {
    for trouble in
        [Answer::BreakOff, answer(500, &json!({"detail": "x"})), answer(504, &json!({"detail": "slow"}))]
    {
        let server = Server::start(vec![trouble.clone(), success()]).await;
        let visit = Command::VisitPage { url: "https://a.example".into() };
        assert!(client(&server).execute(&lease(), &visit, soon()).await.is_ok(), "{trouble:?}");
        let server = Server::start(vec![trouble.clone(), success()]).await;
        assert!(client(&server).execute(&lease(), &click(), soon()).await.is_err(), "{trouble:?}");
        assert_eq!(server.asked().len(), 1, "{trouble:?}");
    }
    let server =
        Server::start(vec![answer(422, &json!({"detail": "gone", "code": "element_not_found"}))]).await;
    let hover = Command::HoverId { id: "3".into() };
    let problem = client(&server).execute(&lease(), &hover, soon()).await.unwrap_err();
    assert_eq!(problem, ClientError::ElementNotFound("gone".into()));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn second_release_after_lost_response_succeeds() {
    let not_in_use = answer(400, &json!({"detail": "Instance not in use or already released"}));
    let server = Server::start(vec![Answer::BreakOff, not_in_use.clone()]).await;
    assert_eq!(client(&server).release(&lease(), soon()).await, Ok(()));
    let server = Server::start(vec![not_in_use]).await;
    assert!(matches!(client(&server).release(&lease(), soon()).await, Err(ClientError::InvalidInstance(_))));
}

#[tokio::test]
async fn failures_to_answer_have_distinct_errors() {
    let unreachable = FarmClient::new(&nobody().await, "k", options()).unwrap();
    let problem = unreachable.execute(&lease(), &click(), soon()).await.unwrap_err();
    assert!(matches!(problem, ClientError::Unreachable(_)), "{problem}");
    let server = Server::start(vec![Answer::Silence]).await;
    let hasty = FarmOptions { operation_timeout: Duration::from_millis(30), ..options() };
    let farm = FarmClient::new(&server.url(), "k", hasty).unwrap();
    let problem = farm.execute(&lease(), &click(), soon()).await.unwrap_err();
    assert!(matches!(problem, ClientError::Timeout(_)), "{problem}");
    assert_eq!(server.asked().len(), 1);
    let server = Server::start(vec![Answer::BreakOff]).await;
    let problem = client(&server).execute(&lease(), &click(), soon()).await.unwrap_err();
    assert!(matches!(problem, ClientError::AnswerLost(_)), "{problem}");
    let server = Server::start(vec![answer(401, &json!({"detail": "Invalid API Key."}))]).await;
    assert!(matches!(client(&server).info(soon()).await, Err(ClientError::Auth(_))));
    assert_eq!(server.asked().len(), 1);
    let server = Server::start(vec![say(200, "text/plain", "hello")]).await;
    assert!(matches!(client(&server).info(soon()).await, Err(ClientError::Other(_))));
    let server =
        Server::start(vec![answer(200, &json!({"status": "error", "message": "Node x is not found"}))]).await;
    assert!(matches!(client(&server).info(soon()).await, Err(ClientError::UnknownNode(_))));
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
    let server = Server::start(vec![answer(200, &observation(STANDARD.encode(png())))]).await;
    let look = ObserveOptions::whole(MARKS);
    let got = client(&server).step(&lease(), &click(), &look, soon()).await.unwrap();
    let picture = got.screenshot.unwrap();
    assert_eq!((picture.width, picture.height, &picture.data[..]), (1280, 768, &png()[..]));
    assert_eq!(got.metadata.unwrap().title, "T");
    assert_eq!(got.ac_tree.as_deref(), Some("id: 1, text: Buy, tag: button"));
    assert_eq!((got.settled, got.settle_ms, got.unchanged, got.failure), (true, 41, false, None));
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].path.as_str(), asked[0].header("accept")), ("/step", "application/msgpack"));
    assert_eq!(
        asked[0].json(),
        json!({"node": lease().node, "instance_id": lease().instance_id, "interaction_mode": "set_of_marks", "format": "png",
               "include": ["screenshot", "metadata", "ac_tree"], "command": {"click_coords": {"x": 1.0, "y": 2.0}}})
    );
}

/// The answer as a farm writes it in MessagePack: named maps, raw bytes.
#[derive(Serialize)]
struct PackedPicture<'a> {
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
    screenshot: PackedPicture<'a>,
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
        screenshot: PackedPicture { format: "png", width: 1280, height: 768, data: &bytes },
        metadata: json!({"title": "T", "url": "u"}),
        unchanged: true,
    };
    let body = rmp_serde::to_vec_named(&packed).unwrap();
    let server = Server::start(vec![say(200, "application/msgpack", body)]).await;
    let look = ObserveOptions::whole(InteractionMode::Coordinates);
    let got = client(&server).observe(&lease(), &look, soon()).await.unwrap();
    assert_eq!(&got.screenshot.unwrap().data[..], &bytes[..]);
    assert_eq!(got.failure, Some(ClientError::NavigationFailed("net::ERR_X".into())));
    assert!(got.unchanged && !got.settled);
    assert_eq!(server.asked()[0].path, "/observe");
    assert_eq!(server.asked()[0].json()["include"], json!(["screenshot", "metadata"]));
}

#[tokio::test]
async fn farm_without_step_uses_separate_calls() {
    let info = json!({
        "visible_rects": [1], "rects_above": [], "rects_below": [], "id_mapping": {"1": 40},
        "interactive_regions": {"40": {"aria_name": "Buy", "tag_name": "button", "role": "button", "v_scrollable": false, "rects": []}},
    });
    let script = vec![
        answer(404, &json!({"detail": "Not Found"})),
        answer(500, &json!({"status": "error", "message": "cannot click"})),
        say(200, "image/png", png()),
        answer(200, &info),
        answer(200, &json!({"title": "", "url": "https://a.example/"})),
        success(),
        say(200, "image/png", png()),
        answer(200, &json!({"error": "No screenshot info available"})),
        answer(200, &json!({"title": "Two", "url": "https://a.example/2"})),
    ];
    let server = Server::start(script).await;
    let farm = client(&server);
    let look = ObserveOptions::whole(MARKS);
    let got = farm.step(&lease(), &click(), &look, soon()).await.unwrap();
    assert_eq!(got.failure, Some(ClientError::Other("500: cannot click".into())));
    assert_eq!(got.ac_tree.as_deref(), Some("id: 1, text: Buy, tag: button"));
    assert_eq!(got.metadata.unwrap().title, "Unknown Page");
    assert_eq!(got.screenshot.unwrap().width, 1280);
    let again = farm.step(&lease(), &click(), &look, soon()).await.unwrap();
    assert_eq!((again.failure, again.ac_tree), (None, None));
    let paths: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
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
    let script =
        vec![answer(405, &json!({})), answer(500, &json!({"detail": "gone", "code": "instance_lost"}))];
    let server = Server::start(script).await;
    let problem =
        client(&server).step(&lease(), &click(), &ObserveOptions::whole(MARKS), soon()).await.unwrap_err();
    assert!(problem.instance_is_gone(), "{problem}");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn openapi_document_is_read_once() {
    let ours = json!({"paths": {"/step": {}, "/observe": {}}});
    for (script, wanted) in [
        (answer(200, &ours), true),
        (answer(200, &json!({"paths": {"/execute": {}}})), false),
        (answer(404, &json!({"detail": "Not Found"})), false),
    ] {
        let server = Server::start(vec![script]).await;
        let farm = client(&server);
        assert_eq!(farm.supports_step(soon()).await, Ok(wanted));
        assert_eq!(farm.clone().supports_step(soon()).await, Ok(wanted));
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn screenshot_format_is_checked() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut body = observation(STANDARD.encode(b"\xff\xd8\xff\xe0rest"));
    body["screenshot"]["format"] = json!("jpeg");
    let mut wrong = body.clone();
    wrong["screenshot"]["format"] = json!("webp");
    let server = Server::start(vec![answer(200, &body), answer(200, &wrong)]).await;
    let look = ObserveOptions { format: ImageFormat::Jpeg, ..ObserveOptions::whole(MARKS) };
    let farm = client(&server);
    assert_eq!(
        farm.observe(&lease(), &look, soon()).await.unwrap().screenshot.unwrap().format,
        ImageFormat::Jpeg
    );
    assert!(matches!(farm.observe(&lease(), &look, soon()).await, Err(ClientError::InstanceLost(_))));
}
