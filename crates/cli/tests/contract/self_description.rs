//! What a farm reports about itself: health, readiness, metrics and its OpenAPI document.

use serde_json::json;
use testkit::{Slots, Tier};

use crate::{Context, checks};

checks![
    health_and_readiness_need_no_key,
    slot_metrics_add_up,
    metrics_contain_no_urls_or_ids,
    openapi_describes_every_endpoint,
    keep_alive_connections_are_reused,
];

async fn health_and_readiness_need_no_key(context: Context) {
    let open = context.farm.http.with_key(None);
    assert_eq!(open.get("/healthz", &[]).await.ok(), json!({"status": "ok"}));
    assert_eq!(open.get("/readyz", &[]).await.ok(), json!({"status": "ready"}));
}

async fn slot_metrics_add_up(context: Context) {
    let lease = context.farm.get().await;
    let reply = context.farm.http.get("/metrics", &[]).await;
    assert!(reply.content_type().starts_with("application/openmetrics-text"), "{}", reply.content_type());
    let text = reply.text();
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(text.matches("# EOF").count(), 1);
    if context.is_tier(Tier::Master) {
        assert!(text.contains("webgym_master_healthy_nodes "), "{text}");
    }
    if text.contains("webgym_slots") {
        let slots = Slots::parse(&text);
        assert!(slots.is_consistent() && slots.in_use >= 1 && slots.browsers >= 1, "{slots:?}");
        for name in
            ["lease_age_seconds_bucket", "get_queue_length", "operation_seconds", "browser_resident_bytes"]
        {
            assert!(text.contains(&format!("webgym_{name}")), "no {name} in\n{text}");
        }
    }
    context.farm.reset(&lease).await.ok();
}

async fn metrics_contain_no_urls_or_ids(context: Context) {
    let lease = context.farm.get().await;
    context.farm.visit(&lease, &context.page("/course/buttons")).await;
    let text = context.farm.http.get("/metrics", &[]).await.text();
    let uuid = lease.id.split(':').next().expect("a uuid");
    assert!(!text.contains("course") && !text.contains("http://") && !text.contains(uuid), "{text}");
    context.farm.reset(&lease).await.ok();
}

async fn openapi_describes_every_endpoint(context: Context) {
    let open = context.farm.http.with_key(None);
    let api = open.get("/openapi.json", &[]).await.ok();
    assert_eq!(api["openapi"], "3.1.0");
    let paths = "/get /reset /screenshot /execute /observe /step /computer /metadata /probe /info /metrics /healthz /readyz";
    for path in paths.split(' ') {
        assert!(api["paths"][path].is_object(), "{path}");
    }
    let reset = &api["paths"]["/reset"]["post"]["parameters"];
    let names: Vec<_> =
        reset.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names.contains(&"node"), context.is_tier(Tier::Master), "{names:?}");
    let page = open.get("/docs", &[]).await;
    assert!(page.content_type().starts_with("text/html") && page.text().contains("openapi.json"));
}

async fn keep_alive_connections_are_reused(context: Context) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = context.farm.http.base().trim_start_matches("http://").to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address).await.expect("a connection");
    for _ in 0..3 {
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the connection is open");
        let mut response = Vec::new();
        while !response.ends_with(b"{\"status\":\"ok\"}") {
            let read = stream.read_buf(&mut response).await.expect("a response");
            assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&response));
        }
    }
}
