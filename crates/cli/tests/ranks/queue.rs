//! One queue for all collectors: who takes what, who dies, and what Redis forgets.

use std::time::Duration;

use rustix::process::Signal;
use testkit::{
    Redis, eventually,
    sim_model::{ModelReply, SimModel},
};

use crate::scene::{LIMIT, Scene, TASKS, ends_well, reply, says};

/// Answers the first few questions, then never again.
async fn stuck_after(questions: usize) -> SimModel {
    SimModel::start(
        move |question| if question.number < questions { reply(question) } else { ModelReply::Never },
    )
    .await
}

async fn keys(redis: &Redis, pattern: &str) -> Vec<String> {
    redis.query(0, &["KEYS", pattern]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_collectors_take_every_task_once() {
    let redis = Redis::start().await;
    let scene = Scene::new(3).await.queued(&redis.url(), 60.0);
    let mut collectors: Vec<_> = (0..3).map(|rank| scene.start(rank, &scene.quick, &[])).collect();
    for collector in &mut collectors {
        ends_well(collector).await;
    }
    scene.all_are_merged();
    let by_rank: usize = (0..3).map(|rank| scene.collected_by(rank)).sum();
    assert_eq!(by_rank, TASKS, "nobody collected what another had");
    assert_eq!(keys(&redis, "webgym:work:*:tasks").await, Vec::<String>::new(), "the stream is gone");
    assert_eq!(keys(&redis, "webgym:work:*:alive:*").await, Vec::<String>::new());
    for key in keys(&redis, "webgym:work:*").await {
        assert!(redis.number(0, &["TTL", &key]).await > 0, "{key} runs out");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rank_killed() {
    let redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 2.0);
    // It finishes some, then holds three for ever.
    let stuck = stuck_after(12).await;
    let mut victim = scene.start(1, &stuck, &[]);
    scene.has_collected(1, 2).await;
    eventually("it holds some", LIMIT, async || !scene.farm.used_leases().is_empty()).await;
    victim.signal(Signal::KILL);
    victim.wait_for_exit(LIMIT).await;
    let finished = scene.collected_by(1);
    let mut survivor = scene.start(0, &scene.quick, &[]);
    ends_well(&mut survivor).await;
    scene.all_are_merged();
    assert_eq!(
        scene.collected_by(0),
        TASKS - finished,
        "what the dead rank had finished is not collected again"
    );
    // Whoever starts it once more, as Slurm does, must not begin another iteration with it.
    let mut again = scene.start(1, &scene.quick, &["--resume"]);
    ends_well(&mut again).await;
    says(&again, &["merged without this rank", "nothing left to do"]).await;
    assert!(!scene.journal(1).exists() && !scene.next_begun(), "no iteration was begun");
    says(&survivor, &["gives no sign of life"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_rank() {
    let redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 60.0);
    let slow = SimModel::start_with(Duration::from_secs(2), false, std::sync::Arc::new(reply)).await;
    let mut tortoise = scene.start(1, &slow, &[]);
    eventually("the slow one has begun", LIMIT, async || slow.count() > 0).await;
    let mut hare = scene.start(0, &scene.quick, &[]);
    ends_well(&mut hare).await;
    ends_well(&mut tortoise).await;
    scene.all_are_merged();
    let (quick, slow) = (scene.collected_by(0), scene.collected_by(1));
    assert_eq!(quick + slow, TASKS, "it lives, so nothing is taken from it");
    assert!(slow > 0 && slow < quick, "{slow} and {quick}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rank_that_was_taken_for_dead_comes_back() {
    let redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 2.0);
    let slow = SimModel::start_with(Duration::from_secs(1), false, std::sync::Arc::new(reply)).await;
    let mut sleeper = scene.start(1, &slow, &[]);
    eventually("it works on some", LIMIT, async || slow.count() >= 3).await;
    sleeper.freeze().await;
    let mut other = scene.start(0, &scene.quick, &[]);
    ends_well(&mut other).await;
    scene.all_are_merged();
    let before = scene.merged();
    sleeper.resume();
    ends_well(&mut sleeper).await;
    says(&sleeper, &["another collector had finished them first"]).await;
    assert_eq!(scene.merged(), before, "the first one counts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_restarted_without_its_memory() {
    let mut redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 2.0);
    let slow = SimModel::start_with(Duration::from_secs(1), false, std::sync::Arc::new(reply)).await;
    let second = scene.start(1, &slow, &[]);
    scene.has_collected(1, 1).await;
    let mut collectors = [scene.start(0, &slow, &[]), second];
    scene.has_collected(0, 1).await;
    redis.kill().await;
    // What is under way goes on without it.
    let before = scene.collected_by(0) + scene.collected_by(1);
    eventually("what is under way is finished", LIMIT, async || {
        scene.collected_by(0) + scene.collected_by(1) > before
    })
    .await;
    redis.restart().await;
    for collector in &mut collectors {
        ends_well(collector).await;
    }
    scene.all_are_merged();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_and_resumed_it_takes_up_what_it_had() {
    let redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 600.0);
    let stuck = stuck_after(12).await;
    let mut killed = scene.start(1, &stuck, &[]);
    scene.has_collected(1, 2).await;
    eventually("it holds some", LIMIT, async || stuck.count() > 12).await;
    killed.signal(Signal::KILL);
    killed.wait_for_exit(LIMIT).await;
    let finished = scene.collected_by(1);
    let mut other = scene.start(0, &scene.quick, &[]);
    scene.has_collected(0, TASKS - finished - 3).await;
    // Nobody takes over what it holds: its time is far from over.
    let mut resumed = scene.start(1, &scene.quick, &["--resume"]);
    ends_well(&mut resumed).await;
    ends_well(&mut other).await;
    scene.all_are_merged();
    assert_eq!(scene.collected_by(0) + scene.collected_by(1), TASKS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rank_that_comes_when_all_is_done() {
    let redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 60.0);
    let launch = ["env_config.launch_id=monday"];
    ends_well(&mut scene.start(0, &scene.quick, &launch)).await;
    scene.all_are_merged();
    let asked = scene.quick.count();
    let mut late = scene.start(1, &scene.quick, &launch);
    ends_well(&mut late).await;
    says(&late, &["merged without this rank"]).await;
    assert_eq!(scene.quick.count(), asked, "it did not begin another iteration by itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_with_another_plan_is_refused() {
    let redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 60.0);
    let stuck = stuck_after(0).await;
    let first = scene.start(0, &stuck, &[]);
    eventually("it works", LIMIT, async || stuck.count() > 0).await;
    let mut other = scene.start(1, &scene.quick, &["env_config.train_tasks_rollout_size=5"]);
    assert_eq!(other.wait_for_exit(LIMIT).await.code(), Some(1));
    says(&other, &["env_config.train_tasks_rollout_size is 5 here, but 24"]).await;
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_password_is_written_nowhere() {
    let redis = Redis::start().await;
    redis.query(0, &["CONFIG", "SET", "requirepass", "sesame-4711"]).await;
    let address = redis.url().replace("redis://", "redis://:sesame-4711@");
    let scene = Scene::new(1).await.queued(&address, 60.0);
    let mut run = scene.start(0, &scene.quick, &["--quiet"]);
    ends_well(&mut run).await;
    let mut texts = vec![run.log()];
    let root = scene.save_path();
    texts.push(std::fs::read_to_string(root.hyperparameters()).unwrap());
    assert!(texts[1].contains("redis://***@127.0.0.1"), "{}", texts[1]);
    let wrong = redis.url().replace("redis://", "redis://:sesame-4712@");
    let scene = Scene::new(1).await.queued(&wrong, 60.0);
    let mut refused = scene.start(0, &scene.quick, &[]);
    assert_eq!(refused.wait_for_exit(LIMIT).await.code(), Some(1));
    says(&refused, &["the work queue at redis://***@127.0.0.1"]).await;
    texts.push(refused.log());
    assert!(texts.iter().all(|text| !text.contains("sesame")), "{texts:?}");
}

/// Lets a Redis speak TLS as well, under a certificate of its own; answers its address and where the certificate is.
async fn with_tls(redis: &Redis, folder: &std::path::Path) -> (String, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (certificate.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned());
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = probe.local_addr().unwrap().port();
    drop(probe);
    let words =
        ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key, "tls-auth-clients", "no"];
    redis.query(0, &words).await;
    redis.query(0, &["CONFIG", "SET", "tls-port", &port.to_string()]).await;
    (format!("rediss://localhost:{port}"), certificate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_behind_tls() {
    let redis = Redis::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (address, certificate) = with_tls(&redis, folder.path()).await;
    let scene = Scene::new(1).await.queued(&address, 60.0);
    let alone = "--num-ranks=1";
    let mut run = scene.start_in(0, &scene.quick, &[alone], &[("SSL_CERT_FILE", &certificate)]);
    ends_well(&mut run).await;
    let scene = Scene::new(1).await.queued(&address, 60.0);
    let mut stranger = scene.start(0, &scene.quick, &[]);
    assert_eq!(stranger.wait_for_exit(LIMIT).await.code(), Some(1), "a certificate that nobody vouches for");
    says(&stranger, &[&address]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_absent_at_start() {
    let mut redis = Redis::start().await;
    let scene = Scene::new(2).await.queued(&redis.url(), 60.0);
    redis.kill().await;
    let mut run = scene.start(0, &scene.quick, &[]);
    assert_eq!(run.wait_for_exit(LIMIT).await.code(), Some(1));
    says(&run, &[&redis.url(), "env_config.work_queue"]).await;
    assert_eq!(scene.farm.leases_granted(), 0, "no browser was leased");
}
