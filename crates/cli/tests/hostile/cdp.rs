//! A CDP client of one tenant that tries every method of the protocol with the ids of another tenant, at the browser and at
//! its own page. The list of methods is the browser's own description of the protocol.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cdp::{Launch, find_browser, find_browsers};
use serde_json::{Value, json};
use testkit::{CdpClient, Lease, Served};

use crate::{attacks, environment::Environment};

attacks![
    foreign_ids_are_of_no_use,
    every_method_is_reviewed,
    local_files_cannot_be_opened,
    invalid_messages_are_survived
];

const SECRET: &str = "victim-6b1f0c";

/// Returns the description of the protocol that a browser serves.
async fn protocol(executable: cdp::Executable) -> Value {
    Launch::new(executable).protocol_description().await.unwrap()
}

/// Lists the commands of a protocol description: full name and parameters.
fn commands(protocol: &Value) -> Vec<(String, Vec<Value>)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for domain in list(&protocol["domains"]) {
        for command in list(&domain["commands"]) {
            let name =
                format!("{}.{}", domain["domain"].as_str().unwrap(), command["name"].as_str().unwrap());
            found.push((name, list(&command["parameters"])));
        }
    }
    found
}

async fn every_method_is_reviewed(_: Arc<Environment>) {
    for executable in find_browsers() {
        let path = executable.path.clone();
        let served: BTreeSet<String> =
            commands(&protocol(executable).await).into_iter().map(|(name, _)| name).collect();
        assert!(served.len() > 600, "{}", served.len());
        let new: Vec<&String> = served.iter().filter(|name| !farm::is_reviewed(name)).collect();
        assert!(
            new.is_empty(),
            "{}: decide about these in crates/farm/src/cdp/methods.tsv: {new:?}",
            path.display()
        );
    }
}

/// The ids of the victim that the attacker is assumed to know.
struct Victim {
    client: CdpClient,
    lease: Lease,
    target: String,
    session: String,
    frame: String,
    context: String,
    window: Value,
    stream: String,
    object: String,
}

impl Victim {
    async fn start(env: &Environment) -> Self {
        let page = env.page(&format!(
            "<title>{SECRET}</title><body>{SECRET}<script>document.cookie = '{SECRET}=1'</script>"
        ));
        let lease = env.lease_on(&page).await;
        let mut client = CdpClient::connect(&env.farm.cdp_url(&lease).await).await;
        let target = client.pages().await.remove(0);
        let session = client.attach(&target).await;
        let info = client.ok(None, "Target.getTargetInfo", json!({"targetId": target})).await;
        let tree = client.ok(Some(&session), "Page.getFrameTree", json!({})).await;
        let window = client.ok(None, "Browser.getWindowForTarget", json!({"targetId": target})).await;
        let pdf =
            client.ok(Some(&session), "Page.printToPDF", json!({"transferMode": "ReturnAsStream"})).await;
        let object = client.ok(Some(&session), "Runtime.evaluate", json!({"expression": "document"})).await;
        let cookies = client.ok(None, "Storage.getCookies", json!({})).await.to_string();
        assert!(cookies.contains(SECRET), "there is something to find: {cookies}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            lease,
            target,
            session,
            frame: text(&tree["frameTree"]["frame"]["id"]),
            context: text(&info["targetInfo"]["browserContextId"]),
            window: window["windowId"].clone(),
            stream: text(&pdf["stream"]),
            object: text(&object["result"]["objectId"]),
            client,
        }
    }

    /// A value for a parameter: the victim's, if it names something.
    fn value(&self, parameter: &Value) -> Value {
        match parameter["name"].as_str().unwrap() {
            "targetId" => json!(self.target),
            "sessionId" if parameter["type"] != "integer" && parameter.get("$ref").is_some() => {
                json!(self.session)
            }
            "browserContextId" => json!(self.context),
            "frameId" => json!(self.frame),
            "windowId" => self.window.clone(),
            "handle" => json!(self.stream),
            "objectId" => json!(self.object),
            "url" => json!("file:///etc/hostname"),
            "flatten" | "autoAttach" | "discover" | "waitForDebuggerOnStart" => json!(true),
            "proxyServer" => json!("127.0.0.1:1"),
            "downloadPath" => json!("/tmp/webgym-cdp-download-8c1d"),
            "files" => json!(["/etc/hostname"]),
            "behavior" => json!("allow"),
            "filter" => json!([{}]),
            _ => match parameter["type"].as_str() {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!("x"),
            },
        }
    }
}

/// Methods that end what the attacker works with; they are tried at the end.
const ENDING: &[&str] = &["Browser.close", "Page.close", "Target.detachFromTarget", "Page.crash"];
/// Methods that stop the attacker's own page or wait for events that never come.
const BLOCKING: &[&str] = &[
    "Debugger.pause",
    "Emulation.setVirtualTimePolicy",
    "Emulation.setScriptExecutionDisabled",
    "Page.setWebLifecycleState",
    "Runtime.terminateExecution",
    "HeapProfiler.takeHeapSnapshot",
    "HeapProfiler.stopTrackingHeapObjects",
];

/// A client of another tenant, and its session with its own page.
struct Attacker {
    client: CdpClient,
    lease: Lease,
    session: Option<String>,
}

impl Attacker {
    async fn start(env: &Environment, at_page: bool) -> Self {
        let lease = env.lease_on(&env.page("<title>attacker</title>")).await;
        let mut client = CdpClient::connect(&env.farm.cdp_url(&lease).await).await;
        let page = client.pages().await.remove(0);
        let session = if at_page { Some(client.attach(&page).await) } else { None };
        Self { client, lease, session }
    }

    /// Returns the result or the error of a call; `Null` if there is no reply in time. Fails if the connection is closed.
    async fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, ()> {
        let id = self.client.send(self.session.as_deref(), method, params).await;
        match tokio::time::timeout(Duration::from_secs(5), self.client.try_reply(id)).await {
            Ok(Ok(reply)) => Ok(reply.unwrap_or_else(|error| error)),
            Ok(Err(Some(frame))) if frame.reason.as_str() == "the browser is gone" => {
                panic!("{method} ended the browser of all tenants")
            }
            Ok(Err(_)) => Err(()),
            Err(_) => Ok(Value::Null),
        }
    }

    async fn finish(mut self, env: &Environment, victim: &Victim) {
        // The session of the victim, on the attacker's connection.
        let id =
            self.client.send(Some(&victim.session), "Runtime.evaluate", &json!({"expression": "1"})).await;
        if let Ok(reply) = self.client.try_reply(id).await {
            assert_eq!(reply.unwrap_err()["code"], -32001);
        }
        for event in self.client.take_events() {
            assert_clean(victim, "an event", &event);
        }
        for method in ENDING {
            let params = json!({"targetId": victim.target, "sessionId": victim.session});
            self.client.send(self.session.as_deref(), method, &params).await;
        }
        drop(self.client);
        let _ = env.farm.reset(&self.lease).await;
    }
}

async fn foreign_ids_are_of_no_use(_: Arc<Environment>) {
    // One browser for all tenants: in another browser, the ids would mean nothing anyway.
    let env = Environment::with("serve 4 --instances-per-browser 4 --allow-private-network").await;
    assert_eq!(env.webgym.browsers().len(), 1);
    let mut victim = Victim::start(&env).await;
    let all = commands(&protocol(find_browser(None).expect("a browser")).await);
    for at_page in [false, true] {
        let mut attacker = Attacker::start(&env, at_page).await;
        let mut own_crashes = 0;
        for (method, parameters) in &all {
            if ENDING.contains(&method.as_str()) || BLOCKING.contains(&method.as_str()) {
                continue;
            }
            let with = |chosen: &dyn Fn(&&Value) -> bool| -> Value {
                let chosen = parameters.iter().filter(|one| chosen(one));
                chosen.map(|one| (one["name"].as_str().unwrap().to_owned(), victim.value(one))).collect()
            };
            for params in [with(&|_| true), with(&|one| one["optional"] != true)] {
                if let Ok(reply) = attacker.try_call(method, &params).await {
                    assert_clean(&victim, method, &reply);
                } else {
                    // It may crash its own page, which ends its own lease.
                    own_crashes += 1;
                    assert!(own_crashes < 20, "too many crashes, the last after {method}");
                    attacker = Attacker::start(&env, at_page).await;
                }
            }
        }
        attacker.finish(&env, &victim).await;
    }
    let seen =
        victim.client.evaluate(&victim.session, "document.title + document.cookie + location.pathname").await;
    assert!(
        seen.as_str().is_some_and(|text| text.matches(SECRET).count() == 2),
        "the victim is as it was: {seen}"
    );
    let stream = victim.client.ok(Some(&victim.session), "IO.read", json!({"handle": victim.stream})).await;
    assert!(stream["data"].as_str().is_some_and(|data| !data.is_empty()), "its stream is open");
    assert_eq!(victim.client.pages().await, [victim.target.as_str()]);
    env.farm.probe(&victim.lease).await.ok();
    assert!(!std::path::Path::new("/tmp/webgym-cdp-download-8c1d").exists());
    env.farm.reset(&victim.lease).await.ok();
    drop(victim);
    Environment::stop(env, true).await;
}

/// Fails if the attacker got anything of the victim that it did not send itself.
fn assert_clean(victim: &Victim, method: &str, reply: &Value) {
    let text = reply.to_string();
    assert!(!text.contains(SECRET), "{method} shows the victim's page: {text}");
    // Errors repeat what the caller sent.
    let is_error = reply.get("code").is_some() || reply.get("errorText").is_some();
    for id in [&victim.target, &victim.session, &victim.context] {
        assert!(is_error || !text.contains(id.as_str()), "{method} shows {id}: {text}");
    }
}

async fn local_files_cannot_be_opened(env: Arc<Environment>) {
    let lease = env.lease_on(&env.page("<title>start</title>")).await;
    let mut client = CdpClient::connect(&env.farm.cdp_url(&lease).await).await;
    let page = client.pages().await.remove(0);
    let session = client.attach(&page).await;
    let host_name = std::fs::read_to_string("/etc/hostname").unwrap_or_default().trim().to_owned();
    for url in [
        "file:///etc/hostname",
        "FILE:///etc/hostname",
        " file:/etc/hostname",
        "view-source:file:///etc/hostname",
        "chrome://version",
    ] {
        for (at, method) in [(Some(session.as_str()), "Page.navigate"), (None, "Target.createTarget")] {
            let error = client.call(at, method, json!({"url": url})).await.unwrap_err();
            assert!(error["message"].as_str().is_some_and(|text| text.contains("refused")), "{url}: {error}");
        }
    }
    // A page that the client drives is still a page: it can open no file either.
    for script in [
        "location.href = 'file:///etc/hostname'",
        "open('file:///etc/hostname')",
        "document.body.innerHTML = '<iframe src=file:///etc/hostname></iframe>'",
        "fetch('file:///etc/hostname').then(r => r.text()).catch(() => '')",
    ] {
        let run = json!({"expression": script, "userGesture": true, "awaitPromise": true});
        let _ = client.call(Some(&session), "Runtime.evaluate", run).await;
        let targets = client.ok(None, "Target.getTargets", json!({})).await.to_string();
        assert!(!targets.contains("file:"), "{script}: {targets}");
        let text = client.evaluate(&session, "document.documentElement.outerHTML").await;
        assert!(
            host_name.is_empty() || !text.as_str().unwrap_or_default().contains(&format!(">{host_name}")),
            "{script}"
        );
    }
    let error =
        client.call(Some(&session), "DOM.setFileInputFiles", json!({"files": ["/etc/hostname"]})).await;
    assert!(error.unwrap_err()["message"].as_str().is_some_and(|text| text.contains("PUT /files")));
    env.farm.reset(&lease).await.ok();
}

async fn invalid_messages_are_survived(env: Arc<Environment>) {
    env.site
        .serve("/cdp-fuzz", Served::File(vec![("content-type", "text/html")], b"<title>x</title>".to_vec()));
    let lease = env.lease_on(&env.url("/cdp-fuzz")).await;
    let mut client = CdpClient::connect(&env.farm.cdp_url(&lease).await).await;
    let deep = format!(
        "{{\"id\":9001,\"method\":\"Runtime.evaluate\",\"params\":{}1{}}}",
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    for text in [
        "",
        "{",
        "null",
        "[]",
        "{}",
        "{\"id\":9001}",
        "{\"id\":1e99,\"method\":\"x\"}",
        "{\"id\":9001,\"method\":5}",
        "{\"id\":9001,\"method\":\"Target.getTargets\",\"params\":[]}",
        "{\"id\":9001,\"method\":\"Target.setAutoAttach\",\"params\":{\"autoAttach\":\"yes\",\"flatten\":true}}",
        "{\"id\":9001,\"method\":\"Target.getTargets\",\"sessionId\":\"\"}",
        "{\"id\":9001,\"id\":9002,\"method\":\"Target.getTargets\"}",
        &deep,
    ] {
        client.send_text(text).await;
    }
    assert_eq!(client.pages().await.len(), 1, "the connection still works");
    env.farm.reset(&lease).await.ok();
}
