//! A Redis behind a password and TLS: found with the right words, and with the wrong ones the mistake is named, without
//! ever showing the password.

use testkit::{REDIS_USER, Redis, Webgym, eventually};
use tokio::process::Command;

use crate::{SECONDS, WEBGYM, webgym};

const PASSWORD: &str = "s3cret-of-the-farm";

async fn finds_a_node(redis: &Redis, words: &str) {
    let node = webgym(&format!("node 1 --port 0 {words}")).await;
    let front = webgym(&format!("master --port 0 {words}")).await;
    eventually("the node is registered", SECONDS, async || redis.registered_nodes().await.len() == 1).await;
    let master = front.master();
    eventually("the master finds it", SECONDS, async || {
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
async fn redis_with_password() {
    let redis = Redis::secured(PASSWORD).await;
    finds_a_node(&redis, &format!("--redis {}", redis.url_as(&format!(":{PASSWORD}")))).await;
    finds_a_node(&redis, &format!("--redis {}", redis.url_as(&format!("{REDIS_USER}:{PASSWORD}")))).await;
}

#[tokio::test]
async fn redis_with_tls() {
    let redis = Redis::secured(PASSWORD).await;
    let ca = redis.ca();
    let words = format!("--redis {} --redis-ca {}", redis.tls_url_as(&format!(":{PASSWORD}")), ca.display());
    finds_a_node(&redis, &words).await;
}

/// What `webgym doctor` says of a Redis.
async fn diagnosis(url: &str, ca: Option<&str>) -> String {
    let mut command = Command::new(WEBGYM);
    command.args(["doctor", "--redis", url]).args(ca.into_iter().flat_map(|ca| ["--redis-ca", ca]));
    let said = command.env_remove("WEBGYM_REDIS_CA").output().await.expect("it runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let line = said.lines().find(|line| line.contains(" Redis: "));
    line.unwrap_or_else(|| panic!("nothing about Redis in\n{said}")).to_owned()
}

#[tokio::test]
async fn redis_mistakes_are_named() {
    let redis = Redis::secured(PASSWORD).await;
    let folder = redis.ca().parent().expect("a folder").to_owned();
    let ca = redis.ca().display().to_string();
    let (no_ca, not_ca) = (folder.join("absent.crt"), folder.join("redis.key"));
    let open = redis.url_as(&format!(":{PASSWORD}"));
    let tls = redis.tls_url_as(&format!(":{PASSWORD}"));
    let wrong = redis.url_as(":wr0ng-word");
    let stranger = redis.url_as("nobody:wr0ng-word");
    let cases = [
        (open.clone(), None, "ok"),
        (tls.clone(), Some(ca.clone()), "ok"),
        (redis.url(), None, "requires a password"),
        (wrong, None, "rejects the user name or password"),
        (stranger, None, "rejects the user name or password"),
        (tls.clone(), None, "is not trusted"),
        (tls.clone(), Some(no_ca.display().to_string()), "No such file"),
        (tls.clone(), Some(not_ca.display().to_string()), "no certificate"),
        (tls.replace("localhost", "127.0.0.1"), Some(ca.clone()), "is not trusted"),
        (open.replace("redis://", "rediss://"), Some(ca), "does not speak TLS"),
        (tls.replace("rediss://", "redis://"), None, "wants TLS"),
        (format!("http://:{PASSWORD}@localhost:1"), None, "is not a Redis address"),
        (format!("redis://:{PASSWORD}@127.0.0.1:1"), None, "nothing listens on that port"),
    ];
    for (url, ca, words) in cases {
        let said = diagnosis(&url, ca.as_deref()).await;
        assert!(said.contains(words), "{url}: {words:?} not in {said:?}");
        assert!(!said.contains(PASSWORD) && !said.contains("wr0ng-word"), "{said}");
    }
}

#[tokio::test]
async fn redis_with_a_wrong_password_is_told_and_lived_without() {
    let redis = Redis::secured(PASSWORD).await;
    let words = format!("serve 1 --master-port 0 --node-port 0 --redis {}", redis.url_as(":wr0ng-word"));
    let farm: Webgym = webgym(&words).await;
    let lease = farm.master().get().await;
    farm.master().reset(&lease).await.ok();
    eventually("it says what is wrong", SECONDS, async || {
        farm.log().contains("rejects the user name or password")
    })
    .await;
    assert!(!farm.log().contains("wr0ng-word"), "{}", farm.log());
}
