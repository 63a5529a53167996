//! Pages that try to crash or block the browser. Their neighbours in the same browser must not be affected.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use testkit::{Lease, Served, eventually};

use crate::{
    TIMEOUT, attacks,
    environment::{Environment, within},
};

attacks![
    thousand_windows_are_contained,
    busy_main_thread_times_out,
    beforeunload_page_can_be_left,
    endless_redirects_fail,
    endless_script_redirects_are_bounded,
    oversized_websocket_message_is_dropped,
    huge_title_is_truncated,
];

async fn thousand_windows_are_contained(env: Arc<Environment>) {
    let neighbour = env.lease_on(&env.plain_page()).await;
    let script = "function go() { for (let n = 0; n < 1000; n++) open('/elsewhere?' + n, '_blank', n % 2 ? 'noopener' : ''); }";
    let page = env
        .page(&format!("<body style='height:100vh' onclick='go()'>windows<script>{script}; go()</script>"));
    let lease = env.farm.get().await;
    let visit = env.farm.execute(&lease, json!({"visit_page": {"url": page}}));
    within(TIMEOUT, "a thousand windows on load", visit).await;
    within(TIMEOUT, "the neighbour keeps working", env.assert_usable(&neighbour)).await;
    let click = env.farm.execute(&lease, json!({"click_coords": {"x": 600, "y": 400}}));
    within(TIMEOUT, "a thousand windows on a click", click).await;
    for _ in 0..5 {
        within(TIMEOUT, "the neighbour keeps working", env.assert_usable(&neighbour)).await;
    }
    let renderers: usize = env.webgym.browsers().iter().map(|browser| browser.renderers().len()).sum();
    assert!(renderers < 60, "{renderers} renderers");
    within(TIMEOUT, "it can be reset at any time", env.farm.reset(&lease)).await.ok();
    let next = env.farm.get().await;
    env.assert_usable(&next).await;
    for lease in [next, neighbour] {
        env.farm.reset(&lease).await.ok();
    }
    eventually("no window is left", TIMEOUT, async || {
        let renderers: usize = env.webgym.browsers().iter().map(|browser| browser.renderers().len()).sum();
        renderers < 30
    })
    .await;
}

async fn busy_main_thread_times_out(env: Arc<Environment>) {
    let page = env.page("<body>spinning<script>setTimeout(() => { for (;;); }, 300)</script>");
    let lease = env.lease_on(&page).await;
    let neighbour = env.lease_on(&env.plain_page()).await;
    eventually("it spins", TIMEOUT, async || {
        let request = env.farm.execute(&lease, json!({"get_webpage_text": {}}));
        tokio::time::timeout(Duration::from_secs(2), request).await.is_err()
    })
    .await;
    let (started, shared) = (Instant::now(), Arc::clone(&env));
    let held = lease.clone();
    let request =
        tokio::spawn(async move { shared.farm.execute(&held, json!({"get_webpage_text": {}})).await });
    let mut visits = 0;
    while !request.is_finished() {
        within(TIMEOUT, "the neighbour keeps working", env.assert_usable(&neighbour)).await;
        visits += 1;
    }
    request.await.expect("the request is answered").assert_error(504, "timeout", "did not answer within");
    assert!(started.elapsed() < TIMEOUT * 2, "{:?}", started.elapsed());
    assert!(visits > 1, "the neighbour made {visits} visits meanwhile");
    // The agent can leave the page, and the farm can reset the lease.
    env.assert_usable(&lease).await;
    env.farm.visit(&lease, &page).await;
    within(TIMEOUT, "a spinning page can be reset", env.farm.reset(&lease)).await.ok();
    env.farm.reset(&neighbour).await.ok();
}

async fn beforeunload_page_can_be_left(env: Arc<Environment>) {
    let page = env.page(
        "<body style='height:100vh'>trapped<script>
        const stay = (event) => { event.preventDefault(); event.returnValue = 'stay!'; history.pushState(0, '', '#' + Math.random()); alert('no'); return 'stay!'; };
        onbeforeunload = stay; onunload = stay; onpagehide = stay; onpopstate = () => history.go(1);
        for (let n = 0; n < 20; n++) history.pushState(n, '', '#' + n);
        </script>",
    );
    let lease = env.lease_on(&page).await;
    env.farm.execute(&lease, json!({"click_coords": {"x": 500, "y": 300}})).await.ok();
    within(TIMEOUT, "`back` gets a response", env.farm.execute(&lease, json!({"back": {}}))).await;
    within(TIMEOUT, "another page is visited", env.assert_usable(&lease)).await;
    env.farm.visit(&lease, &page).await;
    env.farm.execute(&lease, json!({"click_coords": {"x": 500, "y": 300}})).await.ok();
    within(TIMEOUT, "it can be reset", env.farm.reset(&lease)).await.ok();
}

async fn endless_redirects_fail(env: Arc<Environment>) {
    env.site.serve("/loop", Served::Redirect("/loop".into()));
    let lease = env.lease_on(&env.plain_page()).await;
    let before = env.page_url(&lease).await;
    let visit = env.farm.execute(&lease, json!({"visit_page": {"url": env.url("/loop")}}));
    within(TIMEOUT, "the visit fails", visit).await.assert_error(
        422,
        "navigation_failed",
        "ERR_TOO_MANY_REDIRECTS",
    );
    assert_eq!(env.page_url(&lease).await, before, "the previous page is kept");
    let redirects = env.site.requests().iter().filter(|one| *one == "GET /loop").count();
    assert!(redirects <= 60, "{redirects} redirects");
    env.farm.reset(&lease).await.ok();
}

async fn endless_script_redirects_are_bounded(env: Arc<Environment>) {
    for html in [
        "<body>loop<script>location.replace(location.pathname + '?' + Math.random())</script>",
        "<body>loop<script>setInterval(() => location.href = '?' + Math.random(), 1)</script>",
        "<meta http-equiv=refresh content=0><body>loop",
        "<body>loop<script>history.replaceState(0, '', '?x'); for (;;) location.hash = Math.random();</script>",
    ] {
        let page = env.page(html);
        let lease = env.farm.get().await;
        let visit = json!({"visit_page": {"url": page}});
        within(TIMEOUT * 2, "the visit gets a response", env.farm.execute(&lease, visit)).await;
        let leave = json!({"visit_page": {"url": env.plain_page()}});
        within(TIMEOUT * 2, "another page can be visited", env.farm.execute(&lease, leave)).await;
        within(TIMEOUT, "it can be reset", env.farm.reset(&lease)).await.ok();
    }
}

/// Leases three browsers next to the attacker: four slots share one process.
async fn lease_neighbours(env: &Environment) -> Vec<Lease> {
    let url = env.plain_page();
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(env.lease_on(&url).await);
    }
    all
}

/// The browser reports what a WebSocket receives in one CDP message of any length.
async fn oversized_websocket_message_is_dropped(_: Arc<Environment>) {
    let env = Environment::with("serve 2 --allow-private-network").await;
    let neighbour = env.lease_on(&env.plain_page()).await;
    // A control character takes six bytes in JSON.
    env.site.serve("/socket", Served::Socket('\u{1}', 16 << 20));
    let page = env.page(
        "<body>waiting<script>const socket = new WebSocket('/socket'); socket.onmessage = (message) => document.body.textContent = 'received ' + \
         message.data.length; socket.onclose = () => document.body.textContent += ' closed'</script>",
    );
    let browser = env.webgym.browsers().remove(0);
    let lease = env.lease_on(&page).await;
    env.wait_for_text(&lease, "received 16777216").await;
    eventually("the oversized message is dropped", TIMEOUT, async || {
        env.webgym.log().contains("a message from the browser that is too long")
    })
    .await;
    env.assert_usable(&neighbour).await;
    env.assert_usable(&lease).await;
    assert_eq!(env.webgym.browsers()[0].pid, browser.pid, "the browser keeps running");
    for lease in [lease, neighbour] {
        env.farm.reset(&lease).await.ok();
    }
    Environment::stop(env, true).await;
}

async fn huge_title_is_truncated(env: Arc<Environment>) {
    let neighbours = lease_neighbours(&env).await;
    let page = env.page(
        "<body><pre></pre><script>const much = 'x'.repeat(100e6); document.title = much; document.querySelector('pre').textContent = much.slice(0, 5e6);
        history.replaceState(0, '', '?' + 'y'.repeat(1e6));
        for (let n = 0; n < 5000; n++) document.head.insertAdjacentHTML('beforeend', `<meta name='n${n}${'k'.repeat(1000)}' content='${'v'.repeat(5000)}'>`);
        </script>",
    );
    let lease = env.farm.get().await;
    within(TIMEOUT * 2, "it is visited", env.farm.execute(&lease, json!({"visit_page": {"url": page}})))
        .await
        .ok();
    let page = env.farm.execute(&lease, json!({"get_page_metadata": {}})).await;
    assert!(page.ok()["title"].as_str().is_some_and(|title| (1..5000).contains(&title.len())));
    assert!(page.body.len() < 3 << 20, "{} bytes of metadata", page.body.len());
    let text = env.farm.text(&lease).await;
    assert!((1000..=1_000_000).contains(&text.len()), "{} bytes of text", text.len());
    for neighbour in neighbours {
        env.assert_usable(&neighbour).await;
        env.farm.reset(&neighbour).await.ok();
    }
    env.farm.reset(&lease).await.ok();
}
