//! Redis with a password and TLS: it works with the right arguments, and mistakes are explained without ever showing the
//! password.

use testkit::{REDIS_USER, Redis, Webgym, eventually};
use tokio::process::Command;

use crate::{TIMEOUT, WEBGYM, webgym};

const PASSWORD: &str = "s3cret-of-the-farm";

async fn assert_node_is_found(redis: &Redis, arguments: &str) {
    let node = webgym(&format!("node 1 --port 0 {arguments}")).await;
    let front = webgym(&format!("master --port 0 {arguments}")).await;
    eventually("the node is registered", TIMEOUT, async || redis.registered_nodes().await.len() == 1).await;
    let master = front.master();
    eventually("the master finds the node", TIMEOUT, async || {
        master.info().await["nodes"].as_array().is_some_and(|nodes| nodes.len() == 1)
    })
    .await;
    let lease = master.get().await;
    master.reset(&lease).await.ok();
    for process in [&node, &front] {
        assert!(!process.log().contains(PASSWORD), "{}", process.log());
    }
    node.stop().await;
}

#[tokio::test]
async fn node_registers_with_redis_password() {
    let redis = Redis::secured(PASSWORD).await;
    assert_node_is_found(&redis, &format!("--redis {}", redis.url_as(&format!(":{PASSWORD}")))).await;
    assert_node_is_found(&redis, &format!("--redis {}", redis.url_as(&format!("{REDIS_USER}:{PASSWORD}"))))
        .await;
}

#[tokio::test]
async fn node_registers_over_redis_tls() {
    let redis = Redis::secured(PASSWORD).await;
    let ca = redis.ca();
    let arguments =
        format!("--redis {} --redis-ca {}", redis.tls_url_as(&format!(":{PASSWORD}")), ca.display());
    assert_node_is_found(&redis, &arguments).await;
}

/// Returns the line of `webgym doctor` about Redis.
async fn diagnosis(url: &str, ca: Option<&str>) -> String {
    let mut command = Command::new(WEBGYM);
    command.args(["doctor", "--redis", url]).args(ca.into_iter().flat_map(|ca| ["--redis-ca", ca]));
    let output = command.env_remove("WEBGYM_REDIS_CA").output().await.expect("webgym runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains(" Redis: "));
    line.unwrap_or_else(|| panic!("no line about Redis in\n{text}")).to_owned()
}

#[tokio::test]
async fn redis_mistakes_are_explained() {
    let redis = Redis::secured(PASSWORD).await;
    let folder = redis.ca().parent().expect("a folder").to_owned();
    let ca = redis.ca().display().to_string();
    let (no_ca, not_ca) = (folder.join("absent.crt"), folder.join("redis.key"));
    let open = redis.url_as(&format!(":{PASSWORD}"));
    let tls = redis.tls_url_as(&format!(":{PASSWORD}"));
    let wrong = redis.url_as(":wr0ng-word");
    let unknown_user = redis.url_as("nobody:wr0ng-word");
    let cases = [
        (open.clone(), None, "ok"),
        (tls.clone(), Some(ca.clone()), "ok"),
        (redis.url(), None, "requires a password"),
        (wrong, None, "rejects the user name or password"),
        (unknown_user, None, "rejects the user name or password"),
        (tls.clone(), None, "is not trusted"),
        (tls.clone(), Some(no_ca.display().to_string()), "No such file"),
        (tls.clone(), Some(not_ca.display().to_string()), "no certificate"),
        (tls.replace("localhost", "127.0.0.1"), Some(ca.clone()), "is not trusted"),
        (open.replace("redis://", "rediss://"), Some(ca), "does not speak TLS"),
        (tls.replace("rediss://", "redis://"), None, "if it requires TLS"),
        (format!("http://:{PASSWORD}@localhost:1"), None, "is not a Redis address"),
        (format!("redis://:{PASSWORD}@127.0.0.1:1"), None, "nothing listens on that port"),
    ];
    for (url, ca, expected) in cases {
        let line = diagnosis(&url, ca.as_deref()).await;
        assert!(line.contains(expected), "{url}: {expected:?} not in {line:?}");
        assert!(!line.contains(PASSWORD) && !line.contains("wr0ng-word"), "{line}");
    }
}

#[tokio::test]
async fn wrong_redis_password_is_logged_and_tolerated() {
    let redis = Redis::secured(PASSWORD).await;
    let arguments = format!("serve 1 --master-port 0 --node-port 0 --redis {}", redis.url_as(":wr0ng-word"));
    let farm: Webgym = webgym(&arguments).await;
    let lease = farm.master().get().await;
    farm.master().reset(&lease).await.ok();
    eventually("it logs the reason", TIMEOUT, async || {
        farm.log().contains("rejects the user name or password")
    })
    .await;
    assert!(!farm.log().contains("wr0ng-word"), "{}", farm.log());
}
