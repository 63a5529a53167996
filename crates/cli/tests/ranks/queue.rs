//! A work queue for all collectors: distribution of tasks, dead and slow collectors, loss of Redis' data.

use std::time::Duration;

use rustix::process::Signal;
use testkit::{
    Redis, eventually,
    sim_model::{ModelReply, SimModel},
};

use crate::harness::{LIMIT, REQUESTS_PER_TASK, TASKS, TestRun, assert_success, reply, wait_for_log};

/// Starts a model that answers only the first requests.
async fn stuck_after(requests: usize) -> SimModel {
    SimModel::start(move |request| if request.number < requests { reply(request) } else { ModelReply::Never })
        .await
}

async fn keys(redis: &Redis, pattern: &str) -> Vec<String> {
    redis.query(0, &["KEYS", pattern]).await
}

/// Waits until each of the three browsers of a rank waits for the model, and its other tasks are saved and marked as
/// finished in Redis.
async fn wait_until_stuck(redis: &Redis, model: &SimModel, answered: usize) {
    let taken = async || {
        let streams = keys(redis, "webgym:work:*:tasks").await;
        let script = "return redis.call('XPENDING', KEYS[1], 'collectors')[1]";
        redis.number(0, &["EVAL", script, "1", &streams[0]]).await
    };
    eventually("it holds only the tasks of its browsers", LIMIT, async || {
        model.count() == answered + 3 && taken().await == 3
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_collectors_collect_every_task_once() {
    let redis = Redis::start().await;
    let run = TestRun::new(3).await.queued(&redis.url(), 60.0);
    let mut collectors: Vec<_> = (0..3).map(|rank| run.start(rank, &run.quick, &[])).collect();
    for collector in &mut collectors {
        assert_success(collector).await;
    }
    run.assert_all_merged();
    assert_eq!(run.quick.count(), TASKS * REQUESTS_PER_TASK, "no task was collected twice");
    assert_eq!(keys(&redis, "webgym:work:*:tasks").await, Vec::<String>::new(), "the stream is removed");
    assert_eq!(keys(&redis, "webgym:work:*:alive:*").await, Vec::<String>::new());
    for key in keys(&redis, "webgym:work:*").await {
        assert!(redis.number(0, &["TTL", &key]).await > 0, "{key} must expire");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_killed_rank_are_taken_over() {
    let redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 2.0);
    // It finishes some tasks, then holds three forever.
    let stuck = stuck_after(12).await;
    let mut killed = run.start(1, &stuck, &[]);
    wait_until_stuck(&redis, &stuck, 12).await;
    killed.signal(Signal::KILL);
    killed.wait_for_exit(LIMIT).await;
    let finished = run.collected_by(1);
    let mut survivor = run.start(0, &run.quick, &[]);
    assert_success(&mut survivor).await;
    run.assert_all_merged();
    assert_eq!(
        run.quick.count(),
        (TASKS - finished) * REQUESTS_PER_TASK,
        "what the killed rank had finished is not collected again"
    );
    // If Slurm restarts the rank, it must not begin another iteration.
    let mut restarted = run.start(1, &run.quick, &["--resume"]);
    assert_success(&mut restarted).await;
    wait_for_log(&restarted, &["merged without this rank", "nothing left to do"]).await;
    assert!(!run.journal(1).exists() && !run.has_next_iteration(), "no iteration was started");
    wait_for_log(&survivor, &["has no heartbeat"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_rank_delays_no_other() {
    let redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 60.0);
    let slow = SimModel::start_with(Duration::from_secs(4), false, std::sync::Arc::new(reply)).await;
    let mut slow_rank = run.start(1, &slow, &[]);
    eventually("the slow rank has started", LIMIT, async || slow.count() > 0).await;
    let mut quick_rank = run.start(0, &run.quick, &[]);
    assert_success(&mut quick_rank).await;
    assert_success(&mut slow_rank).await;
    run.assert_all_merged();
    let (quick, slow) = (run.quick.count(), slow.count());
    assert_eq!(quick + slow, TASKS * REQUESTS_PER_TASK, "the slow rank is alive, so it keeps its tasks");
    assert!(slow > 0 && slow < quick, "{slow} and {quick}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_results_of_rank_declared_dead_are_ignored() {
    let redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 2.0);
    let slow = SimModel::start_with(Duration::from_secs(1), false, std::sync::Arc::new(reply)).await;
    let mut frozen = run.start(1, &slow, &[]);
    eventually("it has started tasks", LIMIT, async || slow.count() >= 3).await;
    frozen.freeze().await;
    let mut other = run.start(0, &run.quick, &[]);
    assert_success(&mut other).await;
    run.assert_all_merged();
    let before = run.merged();
    frozen.resume();
    assert_success(&mut frozen).await;
    wait_for_log(&frozen, &["another collector had finished their tasks first"]).await;
    assert_eq!(run.merged(), before, "the first result counts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_survives_loss_of_redis_data() {
    let mut redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 2.0);
    let slow = SimModel::start_with(Duration::from_secs(1), false, std::sync::Arc::new(reply)).await;
    let second = run.start(1, &slow, &[]);
    run.wait_until_collected(1, 1).await;
    let mut collectors = [run.start(0, &slow, &[]), second];
    run.wait_until_collected(0, 1).await;
    redis.kill().await;
    // Episodes in progress continue without Redis.
    let before = run.collected_by(0) + run.collected_by(1);
    eventually("an episode in progress is finished", LIMIT, async || {
        run.collected_by(0) + run.collected_by(1) > before
    })
    .await;
    redis.restart().await;
    for collector in &mut collectors {
        assert_success(collector).await;
    }
    run.assert_all_merged();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_rank_continues_its_tasks() {
    let redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 600.0);
    let stuck = stuck_after(12).await;
    let mut killed = run.start(1, &stuck, &[]);
    wait_until_stuck(&redis, &stuck, 12).await;
    killed.signal(Signal::KILL);
    killed.wait_for_exit(LIMIT).await;
    let finished = run.collected_by(1);
    let mut other = run.start(0, &run.quick, &[]);
    run.wait_until_collected(0, TASKS - finished - 3).await;
    // No other rank takes over its tasks, because it is not declared dead for ten minutes.
    let mut resumed = run.start(1, &run.quick, &["--resume"]);
    assert_success(&mut resumed).await;
    assert_success(&mut other).await;
    run.assert_all_merged();
    assert_eq!(run.quick.count(), (TASKS - finished) * REQUESTS_PER_TASK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rank_started_after_merge_does_nothing() {
    let redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 60.0);
    let launch = ["env_config.launch_id=monday"];
    assert_success(&mut run.start(0, &run.quick, &launch)).await;
    run.assert_all_merged();
    let before = run.quick.count();
    let mut late = run.start(1, &run.quick, &launch);
    assert_success(&mut late).await;
    wait_for_log(&late, &["merged without this rank"]).await;
    assert_eq!(run.quick.count(), before, "it did not start another iteration");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collector_with_other_plan_is_refused() {
    let redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 60.0);
    let stuck = stuck_after(0).await;
    let first = run.start(0, &stuck, &[]);
    eventually("it is collecting", LIMIT, async || stuck.count() > 0).await;
    let mut other = run.start(1, &run.quick, &["env_config.train_tasks_rollout_size=5"]);
    assert_eq!(other.wait_for_exit(LIMIT).await.code(), Some(1));
    wait_for_log(&other, &["env_config.train_tasks_rollout_size is 5 here, but 24"]).await;
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_password_is_never_written() {
    let redis = Redis::start().await;
    redis.query(0, &["CONFIG", "SET", "requirepass", "sesame-4711"]).await;
    let address = redis.url().replace("redis://", "redis://:sesame-4711@");
    let run = TestRun::new(1).await.queued(&address, 60.0);
    let mut rank = run.start(0, &run.quick, &["--quiet"]);
    assert_success(&mut rank).await;
    let mut texts = vec![rank.log()];
    let root = run.save_path();
    texts.push(std::fs::read_to_string(root.hyperparameters()).unwrap());
    assert!(texts[1].contains("redis://***@127.0.0.1"), "{}", texts[1]);
    let wrong = redis.url().replace("redis://", "redis://:sesame-4712@");
    let run = TestRun::new(1).await.queued(&wrong, 60.0);
    let mut refused = run.start(0, &run.quick, &[]);
    assert_eq!(refused.wait_for_exit(LIMIT).await.code(), Some(1));
    wait_for_log(&refused, &["the work queue at redis://***@127.0.0.1"]).await;
    texts.push(refused.log());
    assert!(texts.iter().all(|text| !text.contains("sesame")), "{texts:?}");
}

/// Enables TLS on a Redis with a self-signed certificate; returns the URL and the path of the certificate.
async fn with_tls(redis: &Redis, folder: &std::path::Path) -> (String, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (certificate.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned());
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = probe.local_addr().unwrap().port();
    drop(probe);
    let command =
        ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key, "tls-auth-clients", "no"];
    redis.query(0, &command).await;
    redis.query(0, &["CONFIG", "SET", "tls-port", &port.to_string()]).await;
    (format!("rediss://localhost:{port}"), certificate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_works_over_tls() {
    let redis = Redis::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (address, certificate) = with_tls(&redis, folder.path()).await;
    let run = TestRun::new(1).await.queued(&address, 60.0);
    let single_rank = "--num-ranks=1";
    let mut rank = run.start_in(0, &run.quick, &[single_rank], &[("SSL_CERT_FILE", &certificate)]);
    assert_success(&mut rank).await;
    let run = TestRun::new(1).await.queued(&address, 60.0);
    let mut untrusting = run.start(0, &run.quick, &[]);
    assert_eq!(untrusting.wait_for_exit(LIMIT).await.code(), Some(1), "the certificate is not trusted");
    wait_for_log(&untrusting, &[&address]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_without_redis_is_refused() {
    let mut redis = Redis::start().await;
    let run = TestRun::new(2).await.queued(&redis.url(), 60.0);
    redis.kill().await;
    let mut rank = run.start(0, &run.quick, &[]);
    assert_eq!(rank.wait_for_exit(LIMIT).await.code(), Some(1));
    wait_for_log(&rank, &[&redis.url(), "env_config.work_queue"]).await;
    assert_eq!(run.farm.leases_granted(), 0, "no browser was leased");
}
