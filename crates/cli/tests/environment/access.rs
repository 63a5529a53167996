//! The API key and the check of origins.

use testkit::{EnvClient, Webgym};

use crate::Server;

#[tokio::test(flavor = "multi_thread")]
async fn key_is_required_except_for_pages_that_describe_the_environment() {
    let server = Server::start(&["--api-key=secret"]).await;
    let url = server.url();
    let connect =
        async |headers: &[(&'static str, &str)]| EnvClient::try_connect(&url, headers).await.map(drop);
    assert_eq!(connect(&[]).await, Err(401));
    assert_eq!(connect(&[("x-api-key", "wrong")]).await, Err(401));
    assert_eq!(connect(&[("x-api-key", "secret")]).await, Ok(()));
    assert_eq!(connect(&[("authorization", "Bearer secret")]).await, Ok(()));
    assert_eq!(connect(&[("x-api-key", "secret"), ("origin", "https://evil.test")]).await, Err(403));
    for (path, status) in [("/health", 200), ("/schema", 200), ("/metrics", 401), ("/webgym/splits", 401)] {
        assert_eq!(server.http().get(path, &[]).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_key_is_for_this_machine_only() {
    let server = Server::start(&[]).await;
    let connect = async |headers: &[(&'static str, &str)]| {
        EnvClient::try_connect(&server.url(), headers).await.map(drop)
    };
    assert_eq!(connect(&[("host", "evil.test")]).await, Err(403));
    assert_eq!(connect(&[("origin", "http://localhost:3000")]).await, Ok(()));
    let mut open =
        Webgym::spawn(env!("CARGO_BIN_EXE_webgym"), &["env", "--host=0.0.0.0", "--port=0", "--instances=1"]);
    assert_ne!(open.wait_for_exit(crate::LIMIT).await.code(), Some(0));
    assert!(open.log().contains("API key is required"), "{}", open.log());
}
