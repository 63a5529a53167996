//! Pages that would take the browser down, or hold it for ever. Their neighbours in the same browser must not notice.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use testkit::{Lease, Served, eventually};

use crate::{
    SECONDS, attacks,
    world::{World, within},
};

attacks![
    opens_a_thousand_windows,
    spins_the_main_thread,
    traps_with_beforeunload,
    redirects_for_ever,
    redirects_for_ever_by_script,
    sends_a_message_too_long_for_anyone,
    has_a_title_of_a_hundred_megabytes,
];

async fn opens_a_thousand_windows(world: Arc<World>) {
    let innocent = world.visiting(&world.innocent()).await;
    let script = "function go() { for (let n = 0; n < 1000; n++) open('/elsewhere?' + n, '_blank', n % 2 ? 'noopener' : ''); }";
    let page = world
        .page(&format!("<body style='height:100vh' onclick='go()'>windows<script>{script}; go()</script>"));
    let lease = world.farm.get().await;
    let visit = world.farm.execute(&lease, json!({"visit_page": {"url": page}}));
    within(SECONDS, "a thousand windows on load", visit).await;
    within(Duration::from_secs(20), "the neighbour goes on", world.is_well(&innocent)).await;
    let click = world.farm.execute(&lease, json!({"click_coords": {"x": 600, "y": 400}}));
    within(SECONDS, "a thousand windows on a click", click).await;
    for _ in 0..5 {
        within(Duration::from_secs(20), "the neighbour goes on", world.is_well(&innocent)).await;
    }
    let renderers: usize = world.webgym.browsers().iter().map(|browser| browser.renderers().len()).sum();
    assert!(renderers < 60, "{renderers} processes of pages");
    within(Duration::from_secs(20), "it is given back at any time", world.farm.reset(&lease)).await.ok();
    let next = world.farm.get().await;
    world.is_well(&next).await;
    for lease in [next, innocent] {
        world.farm.reset(&lease).await.ok();
    }
    eventually("no window is left over", SECONDS, async || {
        let renderers: usize = world.webgym.browsers().iter().map(|browser| browser.renderers().len()).sum();
        renderers < 30
    })
    .await;
}

async fn spins_the_main_thread(world: Arc<World>) {
    let page = world.page("<body>spinning<script>setTimeout(() => { for (;;); }, 300)</script>");
    let lease = world.visiting(&page).await;
    let innocent = world.visiting(&world.innocent()).await;
    eventually("it spins", SECONDS, async || {
        let ask = world.farm.execute(&lease, json!({"get_webpage_text": {}}));
        tokio::time::timeout(Duration::from_secs(2), ask).await.is_err()
    })
    .await;
    let (asking, asked) = (Instant::now(), Arc::clone(&world));
    let held = lease.clone();
    let question =
        tokio::spawn(async move { asked.farm.execute(&held, json!({"get_webpage_text": {}})).await });
    let mut visits = 0;
    while !question.is_finished() {
        within(Duration::from_secs(20), "the neighbour goes on", world.is_well(&innocent)).await;
        visits += 1;
    }
    question.await.expect("it is answered").assert_error(504, "timeout", "did not answer within");
    assert!(asking.elapsed() < SECONDS * 2, "{:?}", asking.elapsed());
    assert!(visits > 5, "the neighbour made {visits} visits meanwhile");
    // A way out for the agent, and one for the farm.
    world.is_well(&lease).await;
    world.farm.visit(&lease, &page).await;
    within(Duration::from_secs(20), "a spinning page is given back", world.farm.reset(&lease)).await.ok();
    world.farm.reset(&innocent).await.ok();
}

async fn traps_with_beforeunload(world: Arc<World>) {
    let page = world.page(
        "<body style='height:100vh'>trapped<script>
        const stay = (event) => { event.preventDefault(); event.returnValue = 'stay!'; history.pushState(0, '', '#' + Math.random()); alert('no'); return 'stay!'; };
        onbeforeunload = stay; onunload = stay; onpagehide = stay; onpopstate = () => history.go(1);
        for (let n = 0; n < 20; n++) history.pushState(n, '', '#' + n);
        </script>",
    );
    let lease = world.visiting(&page).await;
    world.farm.execute(&lease, json!({"click_coords": {"x": 500, "y": 300}})).await.ok();
    within(SECONDS, "back is answered", world.farm.execute(&lease, json!({"back": {}}))).await;
    within(SECONDS, "another page is visited", world.is_well(&lease)).await;
    world.farm.visit(&lease, &page).await;
    world.farm.execute(&lease, json!({"click_coords": {"x": 500, "y": 300}})).await.ok();
    within(SECONDS, "it is given back", world.farm.reset(&lease)).await.ok();
}

async fn redirects_for_ever(world: Arc<World>) {
    world.site.serve("/round", Served::Redirect("/round".into()));
    let lease = world.visiting(&world.innocent()).await;
    let before = world.address_of(&lease).await;
    let visit = world.farm.execute(&lease, json!({"visit_page": {"url": world.url("/round")}}));
    within(SECONDS, "it is given up", visit).await.assert_error(
        422,
        "navigation_failed",
        "ERR_TOO_MANY_REDIRECTS",
    );
    assert_eq!(world.address_of(&lease).await, before, "the page before is still there");
    let rounds = world.site.requests().iter().filter(|one| *one == "GET /round").count();
    assert!(rounds <= 60, "{rounds} rounds");
    world.farm.reset(&lease).await.ok();
}

async fn redirects_for_ever_by_script(world: Arc<World>) {
    for html in [
        "<body>round<script>location.replace(location.pathname + '?' + Math.random())</script>",
        "<body>round<script>setInterval(() => location.href = '?' + Math.random(), 1)</script>",
        "<meta http-equiv=refresh content=0><body>round",
        "<body>round<script>history.replaceState(0, '', '?x'); for (;;) location.hash = Math.random();</script>",
    ] {
        let page = world.page(html);
        let lease = world.farm.get().await;
        let visit = json!({"visit_page": {"url": page}});
        within(SECONDS * 2, "the visit is answered", world.farm.execute(&lease, visit)).await;
        let leave = json!({"visit_page": {"url": world.innocent()}});
        within(SECONDS * 2, "there is a way out", world.farm.execute(&lease, leave)).await;
        within(SECONDS, "it is given back", world.farm.reset(&lease)).await.ok();
    }
}

/// A neighbour in the same browser as this lease: four slots share one.
async fn neighbours(world: &World) -> Vec<Lease> {
    let url = world.innocent();
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(world.visiting(&url).await);
    }
    all
}

/// What a socket receives is told to us by the browser, in one message, whatever its length.
async fn sends_a_message_too_long_for_anyone(_: Arc<World>) {
    let world = World::with("serve 2 --allow-private-network").await;
    let innocent = world.visiting(&world.innocent()).await;
    // A control character takes six bytes in JSON.
    world.site.serve("/socket", Served::Socket('\u{1}', 16 << 20));
    let page = world.page(
        "<body>waiting<script>const socket = new WebSocket('/socket'); socket.onmessage = (said) => document.body.textContent = 'received ' + \
         said.data.length; socket.onclose = () => document.body.textContent += ' closed'</script>",
    );
    let browser = world.webgym.browsers().remove(0);
    let lease = world.visiting(&page).await;
    world.says(&lease, "received 16777216").await;
    eventually("what the browser told of it was left out", SECONDS, async || {
        world.webgym.log().contains("a message that is too long")
    })
    .await;
    world.is_well(&innocent).await;
    world.is_well(&lease).await;
    assert_eq!(world.webgym.browsers()[0].pid, browser.pid, "the browser lives on");
    for lease in [lease, innocent] {
        world.farm.reset(&lease).await.ok();
    }
    World::stop(world, true).await;
}

async fn has_a_title_of_a_hundred_megabytes(world: Arc<World>) {
    let innocents = neighbours(&world).await;
    let page = world.page(
        "<body><pre></pre><script>const much = 'x'.repeat(100e6); document.title = much; document.querySelector('pre').textContent = much.slice(0, 5e6);
        history.replaceState(0, '', '?' + 'y'.repeat(1e6));
        for (let n = 0; n < 5000; n++) document.head.insertAdjacentHTML('beforeend', `<meta name='n${n}${'k'.repeat(1000)}' content='${'v'.repeat(5000)}'>`);
        </script>",
    );
    let lease = world.farm.get().await;
    within(SECONDS * 2, "it is visited", world.farm.execute(&lease, json!({"visit_page": {"url": page}})))
        .await
        .ok();
    let page = world.farm.execute(&lease, json!({"get_page_metadata": {}})).await;
    assert!(page.ok()["title"].as_str().is_some_and(|title| (1..5000).contains(&title.len())));
    assert!(page.body.len() < 3 << 20, "{} bytes of metadata", page.body.len());
    let text = world.farm.text(&lease).await;
    assert!((1000..=1_000_000).contains(&text.len()), "{} letters", text.len());
    for innocent in innocents {
        world.is_well(&innocent).await;
        world.farm.reset(&innocent).await.ok();
    }
    world.farm.reset(&lease).await.ok();
}
