//! A fork reaches the state of its original, or says why not.

use practice::Sites;
use serde_json::json;
use testkit::{
    Farm, Lease, Reply,
    episode::{Act, run_episode},
};

use crate::common::World;

impl World {
    async fn try_fork(&self, lease: &Lease, steps: Option<usize>) -> Reply {
        fork(&self.farm, lease, steps).await
    }
}

async fn fork(farm: &Farm, lease: &Lease, steps: Option<usize>) -> Reply {
    let steps = steps.map(|steps| steps.to_string());
    let mut query =
        vec![("node", lease.node.as_str()), ("instance_id", lease.id.as_str()), ("wait_secs", "30")];
    query.extend(steps.as_ref().map(|steps| ("steps", steps.as_str())));
    farm.http.post("/fork", &query).await
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_from_every_step_reaches_the_same_page() {
    let world = World::start().await;
    let sites = Sites::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let visit = |path: &str| Act::Visit(sites.url(path));
    let acts = [
        visit("/shop/"),
        Act::Fill("Search", "lamp"),
        visit("/shop/cart"),
        visit("/wiki/"),
        Act::Fill("Search", "river"),
        Act::Wait,
        visit("/course/buttons"),
        visit("/course/inputs"),
        visit("/jobs/"),
        visit("/"),
    ];
    let recording = world.farm.get_with(&json!({"network": {"record": "practice"}})).await;
    run_episode(&world.farm, &recording, &acts).await;
    world.farm.reset(&recording).await.ok();
    let original = world.farm.get_with(&json!({"network": {"replay": "practice", "seed": 5}})).await;
    drop(sites);
    let shown = run_episode(&world.farm, &original, &acts).await;
    for (step, shown) in shown.iter().enumerate() {
        // Each step of the episode is a command and a reading of its text.
        let reply = world.try_fork(&original, Some(2 * (step + 1))).await;
        let lease = Lease::parse(&reply.ok());
        assert_eq!(world.farm.text(&lease).await, shown.text, "step {step}");
        world.farm.reset(&lease).await.ok();
    }
    let present = Lease::parse(&world.try_fork(&original, None).await.ok());
    assert_eq!(Some(world.farm.text(&present).await), shown.last().map(|shown| shown.text.clone()));
    let too_many = world.try_fork(&original, Some(100)).await;
    too_many.assert_error(400, "bad_request", "it has had 20 steps, and the fork wants 100");
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_that_missed_a_request_is_forked_as_it_was_before() {
    let world = World::start().await;
    let recording = world.farm.get_with(&json!({"network": {"record": "shop"}})).await;
    world.farm.visit(&recording, &world.url("/next")).await;
    let recorded = async || world.farm.network(&recording).await.ok()["recorded"] == 1;
    testkit::eventually("the page is recorded", std::time::Duration::from_secs(30), recorded).await;
    let replay = |on_miss: &str| json!({"network": {"replay": "shop", "on_miss": on_miss}});
    let lease = world.farm.get_with(&replay("fail")).await;
    world.farm.visit(&lease, &world.url("/next")).await;
    let missed = world.farm.execute(&lease, json!({"visit_page": {"url": world.url("/account")}})).await;
    missed.assert_error(422, "replay_miss", "/account");
    world.try_fork(&lease, None).await.assert_error(
        400,
        "bad_request",
        "use steps to fork it as it was before",
    );
    let fork = Lease::parse(&world.try_fork(&lease, Some(1)).await.ok());
    assert!(world.farm.text(&fork).await.contains("Next page"));
    let live = world.farm.get_with(&replay("live")).await;
    world.try_fork(&live, None).await.assert_error(400, "bad_request", "on_miss: \"live\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_replayed_leases_can_be_forked() {
    let world = World::start().await;
    let lease = world.farm.get().await;
    world.try_fork(&lease, None).await.assert_error(400, "bad_request", "it replays no archive");
    let ended = Lease { id: lease.id.replace(|c: char| c.is_ascii_digit(), "0"), ..lease.clone() };
    world.try_fork(&ended, None).await.assert_error(400, "invalid_instance", "Invalid instance");
}
