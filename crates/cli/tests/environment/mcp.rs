//! The browser as MCP tools: the handshake, the stateless version, and standard input and output.

use std::process::Stdio;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Http, Reply, Webgym};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{LIMIT, Server};

const STATELESS: &str = "2026-07-28";

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn post(http: &Http, headers: &[(&str, &str)], body: &Value) -> Reply {
    let all: Vec<_> =
        [("content-type", "application/json")].into_iter().chain(headers.iter().copied()).collect();
    http.send("POST".parse().unwrap(), "/mcp", &[], body.to_string(), &all).await
}

/// A client that has made the handshake.
struct Client {
    http: Http,
    session: String,
}

impl Client {
    async fn initialize(server: &Server) -> Self {
        let http = server.http();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let reply = post(&http, &[], &request("initialize", &params)).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], "2025-11-25");
        let session = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let client = Self { http, session };
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&note).await.status, 202);
        client
    }

    async fn post(&self, body: &Value) -> Reply {
        post(&self.http, &[("mcp-session-id", &self.session), ("mcp-protocol-version", "2025-11-25")], body)
            .await
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let reply = self.post(&request("tools/call", &json!({"name": name, "arguments": arguments}))).await;
        let mut reply = reply.json();
        assert!(reply["result"].is_object(), "{name}: {reply}");
        reply["result"].take()
    }

    async fn text(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments).await;
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    async fn end(&self) -> u16 {
        let headers = [("mcp-session-id", self.session.as_str())];
        self.http.send("DELETE".parse().unwrap(), "/mcp", &[], "", &headers).await.status
    }
}

/// Returns the ref of the last element with this tag.
fn last_ref(snapshot: &str, tag: &str) -> String {
    let line = snapshot.lines().rfind(|line| line.starts_with(&format!("- {tag}")));
    let line = line.unwrap_or_else(|| panic!("no {tag} in {snapshot}"));
    line[line.rfind("[ref=").unwrap() + 5..].trim_end_matches(']').to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_drive_the_browser_of_a_session() {
    let server = Server::start(&["+env_config.session.tabs=many"]).await;
    let client = Client::initialize(&server).await;
    assert_eq!(server.metric("active_sessions").await, 0, "the handshake needs no browser");
    let listed = client.post(&request("tools/list", &json!({}))).await.json();
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    for name in
        ["browser_navigate", "browser_click", "browser_type", "browser_snapshot", "task_goal", "task_submit"]
    {
        assert!(names.contains(&json!(name)), "{name} in {names:?}");
    }
    let start = client.text("browser_snapshot", json!({})).await;
    assert!(start.contains("/shop/"), "the first task's page is open: {start}");
    let clicked =
        client.text("browser_click", json!({"element": "a link", "ref": last_ref(&start, "a")})).await;
    assert_ne!(clicked.lines().nth(1), start.lines().nth(1), "the click opens another page");
    let back = client.text("browser_navigate_back", json!({})).await;
    assert_eq!(back.lines().nth(1), start.lines().nth(1));
    let typed = client
        .text("browser_type", json!({"ref": last_ref(&back, "input"), "text": "lamp", "submit": true}))
        .await;
    assert!(typed.contains("lamp"), "{typed}");
    client.text("browser_mouse_wheel", json!({"deltaY": 100})).await;
    client.text("browser_press_key", json!({"key": "Home"})).await;
    client.text("browser_wait_for", json!({"text": "lamp"})).await;
    let screenshot = client.call("browser_take_screenshot", json!({"type": "jpeg"})).await;
    assert_eq!(screenshot["content"][0]["mimeType"], "image/jpeg");
    let image = STANDARD.decode(screenshot["content"][0]["data"].as_str().unwrap()).unwrap();
    assert!(image.starts_with(b"\xff\xd8\xff"));
    client.text("browser_tabs", json!({"action": "new"})).await;
    let tabs = client.text("browser_tabs", json!({"action": "list"})).await;
    assert!(tabs.contains("- 0: [") && tabs.contains("- 1: (current) ["), "{tabs}");
    client.text("browser_tabs", json!({"action": "close", "index": 1.0})).await;
    let text = client.text("browser_get_text", json!({})).await;
    assert!(text.contains("Brass desk lamp"), "the page is read: {text}");
    assert_eq!(client.text("browser_get_text", json!({"lines": 1})).await.lines().count(), 1);
    let failed = client.call("browser_click", json!({"ref": "9999"})).await;
    assert_eq!(failed["isError"], true, "{failed}");
    assert_eq!(client.call("browser_click", json!({})).await["isError"], true);
    let paths = client.call("browser_file_upload", json!({"paths": ["/etc/passwd"]})).await;
    assert!(paths["content"][0]["text"].as_str().unwrap().contains("not available over HTTP"), "{paths}");
    let unknown = client.post(&request("tools/call", &json!({"name": "browser_explode"}))).await.json();
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(client.post(&request("resources/list", &json!({}))).await.json()["error"]["code"], -32601);
    assert_eq!(client.end().await, 200);
    server.wait_until_released().await;
    assert_eq!(client.post(&request("tools/list", &json!({}))).await.status, 404, "the session has ended");
    assert_eq!(client.end().await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn submitted_answer_is_judged() {
    let server = Server::start(&[]).await;
    let client = Client::initialize(&server).await;
    assert_eq!(client.text("task_goal", json!({})).await, "look at shop");
    let judged = client.call("task_submit", json!({"answer": "It is 42"})).await;
    assert_eq!(
        (&judged["structuredContent"]["reward"], &judged["structuredContent"]["outcome"]),
        (&json!(1.0), &json!("success"))
    );
    server.wait_until_released().await;
    assert_eq!(client.call("task_submit", json!({"answer": "43"})).await["isError"], true);
    assert_eq!(client.call("browser_snapshot", json!({})).await["isError"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_has_one_attempt_at_its_task() {
    let server = Server::start(&[]).await;
    let judged = Client::initialize(&server).await;
    judged.call("task_submit", json!({"answer": "wrong"})).await;
    let given_up = Client::initialize(&server).await;
    given_up.text("browser_snapshot", json!({})).await;
    for client in [&judged, &given_up] {
        client.text("browser_close", json!({})).await;
    }
    server.wait_until_released().await;
    for client in [&judged, &given_up] {
        let again = client.call("task_submit", json!({"answer": "42"})).await;
        assert!(again["content"][0]["text"].as_str().unwrap().contains("start a new session"), "{again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_task_is_refused_before_the_session_starts() {
    let server = Server::start(&[]).await;
    for query in ["task_id=nope", "split=nope", "index=99"] {
        let path = format!("/mcp?{query}");
        let body = request("initialize", &json!({"protocolVersion": "2025-11-25"})).to_string();
        let headers = [("content-type", "application/json")];
        let reply = server.http().send("POST".parse().unwrap(), &path, &[], body, &headers).await.json();
        assert_eq!(reply["error"]["code"], -32602, "{query}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stateless_client_names_its_session_in_each_call() {
    let server = Server::start(&[]).await;
    let http = server.http();
    let send = async |method: &str, params: Value, headers: &[(&str, &str)]| {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {},
        });
        let own: Vec<_> = [("mcp-protocol-version", STATELESS), ("mcp-method", method)]
            .into_iter()
            .filter(|(name, _)| !headers.iter().any(|(given, _)| given == name))
            .chain(headers.iter().copied())
            .collect();
        let reply = post(&http, &own, &request(method, &params)).await;
        (reply.status, reply.json())
    };
    let (_, discovered) = send("server/discover", json!({}), &[]).await;
    assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!(STATELESS)));
    assert_eq!(discovered["result"]["resultType"], "complete");
    let (_, listed) = send("tools/list", json!({}), &[]).await;
    let first = &listed["result"]["tools"][0];
    assert!(first["inputSchema"]["properties"]["session"].is_object(), "{first}");
    let call = async |name: &str, arguments: Value| {
        send("tools/call", json!({"name": name, "arguments": arguments}), &[("mcp-name", name)]).await
    };
    let (_, opened) = call("browser_snapshot", json!({})).await;
    let session =
        opened["result"]["_meta"]["session"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
    let (_, goal) = call("task_goal", json!({"session": session})).await;
    assert_eq!(goal["result"]["content"][0]["text"], "look at shop");
    assert_eq!(server.metric("active_sessions").await, 1, "both calls use one browser");
    let (status, unknown) = call("task_goal", json!({"session": "another"})).await;
    assert_eq!((status, &unknown["error"]["code"]), (400, &json!(-32602)));
    let (status, mismatch) = send("tools/list", json!({}), &[("mcp-method", "ping")]).await;
    assert_eq!((status, &mismatch["error"]["code"]), (400, &json!(-32020)));
    let (status, version) = send("tools/list", json!({}), &[("mcp-protocol-version", "2099-01-01")]).await;
    assert_eq!((status, &version["error"]["code"]), (400, &json!(-32020)));
    assert_eq!(send("resources/list", json!({}), &[]).await.0, 404);
    let (status, unknown) = call("browser_explode", json!({})).await;
    assert_eq!((status, &unknown["error"]["code"]), (400, &json!(-32602)));
    call("browser_close", json!({"session": session})).await;
    server.wait_until_released().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_session_ends_and_key_and_origin_are_checked() {
    let server = Server::start(&["--api-key=secret", "--idle-secs=1"]).await;
    let http = server.http();
    let invalid = post(&http, &[], &json!({})).await;
    assert_eq!(
        (invalid.status, &invalid.json()["error"]["code"]),
        (200, &json!(-32600)),
        "as openenv validate expects"
    );
    let list = request("tools/list", &json!({}));
    assert_eq!(post(&http, &[], &list).await.status, 401);
    assert_eq!(
        post(&http, &[("x-api-key", "secret"), ("origin", "https://evil.test")], &list).await.status,
        403
    );
    assert_eq!(post(&http, &[("authorization", "Bearer secret")], &list).await.status, 200);
    let keyed = http.with_key(Some("secret"));
    let call = request("tools/call", &json!({"name": "browser_snapshot"}));
    assert_eq!(post(&keyed, &[], &call).await.json()["error"]["code"], -32600, "a call needs a session");
    let created = post(&keyed, &[], &request("openenv/session/create", &json!({}))).await.json();
    let id = created["result"]["session_id"].as_str().unwrap().to_owned();
    let named = request("tools/call", &json!({"name": "task_goal", "session_id": id}));
    assert_eq!(post(&keyed, &[], &named).await.json()["result"]["isError"], false);
    let active = async || {
        let text = keyed.get("/metrics", &[]).await.text();
        text.contains("webgym_env_active_sessions 1")
    };
    testkit::eventually("the idle session ends", LIMIT, async || !active().await).await;
    let gone = post(&keyed, &[], &request("openenv/session/close", &json!({"session_id": id}))).await.json();
    assert_eq!(gone["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn stateless_call_that_fails_or_is_given_up_leaves_no_session() {
    let server = Server::start(&["--max-connections=1"]).await;
    let http = server.http();
    let call = async |name: &str, arguments: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        let headers = [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/call"), ("mcp-name", name)];
        post(&http, &headers, &request("tools/call", &params)).await.json()
    };
    for _ in 0..2 {
        let unknown = call("browser_explode", json!({})).await;
        assert!(unknown["error"]["message"].as_str().unwrap().contains("unknown tool"), "{unknown}");
    }
    // A client that goes away during its first call has not learned its session.
    let given_up = call("browser_wait_for", json!({"time": 25}));
    let started = testkit::eventually("the call has a browser", LIMIT, async || {
        server.metric("active_sessions").await == 1
    });
    tokio::select! {
        reply = given_up => panic!("{reply}"),
        () = started => {}
    }
    server.wait_until_released().await;
    let opened = call("task_goal", json!({})).await;
    assert_eq!(opened["result"]["isError"], false, "{opened}");
}

async fn write_line(input: &mut ChildStdin, message: &Value) {
    input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
}

/// Starts `webgym mcp` and returns it with its input and the lines of its output.
fn spawn_stdio(arguments: &[&str]) -> (Child, ChildStdin, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_webgym"))
        .arg("mcp")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, input, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_and_output_are_one_session() {
    let (mut child, mut input, mut lines) = spawn_stdio(&["--allow-private-network"]);
    let mut next = async || -> Value {
        let line = tokio::time::timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    };
    input.write_all(b"{\n").await.unwrap();
    assert_eq!(next().await["error"]["code"], -32700);
    write_line(&mut input, &request("initialize", &json!({"protocolVersion": "2025-06-18"}))).await;
    assert_eq!(next().await["result"]["protocolVersion"], "2025-06-18");
    write_line(&mut input, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    write_line(&mut input, &request("tools/list", &json!({}))).await;
    let listed = next().await.to_string();
    assert!(listed.contains("browser_tabs") && !listed.contains("task_goal"), "there is no task: {listed}");
    let page = "data:text/html,<title>mine</title><button>Press</button>";
    let call = json!({"name": "browser_navigate", "arguments": {"url": page}});
    write_line(&mut input, &request("tools/call", &call)).await;
    let opened = next().await;
    assert!(
        opened["result"]["content"][0]["text"].as_str().unwrap().contains("- button \"Press\" [ref="),
        "{opened}"
    );
    drop(input);
    let status = tokio::time::timeout(LIMIT, child.wait()).await.unwrap().unwrap();
    assert!(status.success());
}

/// How an MCP client ends its server.
#[derive(Clone, Copy, Debug)]
enum End {
    Terminate,
    Interrupt,
    CloseOutput,
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_released_and_episode_saved_however_the_client_ends() {
    let arguments = ["serve", "1", "--master-port=0", "--node-port=0", "--allow-private-network"];
    let farm = Webgym::start(env!("CARGO_BIN_EXE_webgym"), &arguments).await;
    let http = Http::new(&farm.url("master"), Some("default_key"));
    let sites = practice::Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let task = json!({
        "task_id": "shop", "task_name": "look", "website": sites.url("/shop/"), "domain": "d", "subdomain": "s",
        "difficulty": 1, "evaluator_reference": ["seen"], "definite_answer": "42",
    });
    let file = folder.path().join("tasks.jsonl");
    std::fs::write(&file, task.to_string()).unwrap();
    for end in [End::Terminate, End::Interrupt, End::CloseOutput] {
        let saved = folder.path().join(format!("{end:?}"));
        let options = [format!("--tasks={}", file.display()), format!("--save-path={}", saved.display())];
        let arguments = ["--farm", &farm.url("master"), &options[0], &options[1]];
        let (mut child, mut input, mut lines) = spawn_stdio(&arguments);
        let call = json!({"name": "browser_press_key", "arguments": {"key": "Home"}});
        write_line(&mut input, &request("tools/call", &call)).await;
        let line = tokio::time::timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        assert!(line.contains("\"isError\":false"), "{line}");
        let process = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
        match end {
            End::Terminate => rustix::process::kill_process(process, Signal::TERM).unwrap(),
            End::Interrupt => rustix::process::kill_process(process, Signal::INT).unwrap(),
            End::CloseOutput => {
                drop(lines);
                write_line(&mut input, &request("ping", &json!({}))).await;
            }
        }
        let status = tokio::time::timeout(LIMIT, child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{end:?}: {status}");
        let info = http.get("/info", &[]).await.json();
        assert_eq!(info["nodes"][0]["instances"], json!([]), "{end:?}: {info}");
        let id = store::IterationId::new(store::Split::Train, 0);
        let path = store::SavePath::new(&saved).iteration_file(id);
        let file = store::IterationFile::open(&path).unwrap_or_else(|error| panic!("{end:?}: {error}"));
        assert_eq!(file.summaries().len(), 1, "{end:?}");
    }
}
