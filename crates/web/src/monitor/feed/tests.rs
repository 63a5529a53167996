//! What a subscriber receives: first a snapshot or the missed messages, then changes, and the end of the run.

use futures_util::StreamExt;
use rollout::run::{
    event::{Event, Listener, Stage},
    state::{RunState, TaskInfo},
};
use serde_json::json;

use super::*;
use crate::monitor::RunInfo;

fn feed(tasks: usize) -> Arc<Feed> {
    let run = Arc::new(RunState::new(0..tasks));
    Feed::new(
        MonitoredRun {
            run,
            info: RunInfo::default(),
            policy: None,
            judge_slots: 1,
            farm: None,
            save_path: None,
        },
        false,
    )
}

fn step(feed: &Feed, index: usize, step: usize) {
    feed.monitored.run.on_event(&Event::Stage { index, step, stage: Stage::Policy });
}

/// Returns the event name and id of a message, and its body.
fn parse(text: &Bytes) -> (String, Value) {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let line =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    (line("event: ") + " " + &line("id: "), serde_json::from_str(&line("data: ")).unwrap())
}

#[tokio::test(start_paused = true)]
async fn snapshot_comes_first_then_changes() {
    let feed = feed(50);
    let mut stream = Box::pin(feed.subscribe(None).unwrap());
    let (head, body) = parse(&stream.next().await.unwrap().unwrap());
    assert!(
        head.starts_with("snapshot") && body["full"].is_string() && body["statistics"]["tasks"] == 50,
        "{head} {body}"
    );
    step(&feed, 7, 1);
    let body = loop {
        let (_, body) = parse(&stream.next().await.unwrap().unwrap());
        if body.get("at").is_some() {
            break body;
        }
    };
    assert_eq!((&body["at"], &body["to"]), (&json!([7]), &json!([6 | (1 << 7)])));
}

#[tokio::test(start_paused = true)]
async fn reconnecting_page_gets_missed_messages_or_snapshot() {
    let feed = feed(50);
    feed.update(&mut feed.state());
    let seen = feed.message_id(feed.state().history.last_number());
    step(&feed, 3, 2);
    feed.update(&mut feed.state());
    let (first, _receiver) = feed.join(Some(&seen));
    assert_eq!(first.len(), 1);
    assert_eq!(parse(&first[0]).1["at"], json!([3]));
    for round in 0..history::MAX_MESSAGES + 5 {
        step(&feed, 4, round);
        feed.update(&mut feed.state());
    }
    for stale in [seen.as_str(), "other-1", "nonsense", &feed.message_id(999_999)] {
        let (first, _receiver) = feed.join(Some(stale));
        assert!(parse(&first[0]).0.starts_with("snapshot"), "{stale}");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_reader_restarts_from_snapshot() {
    let feed = feed(50);
    let (pending, receiver) = feed.join(None);
    let mut subscriber = Subscriber { feed: Arc::clone(&feed), pending, receiver, has_ended: false };
    subscriber.next().await.unwrap();
    for round in 0..MAX_LAG + 3 {
        step(&feed, 1, round);
        feed.update(&mut feed.state());
    }
    assert!(parse(&subscriber.next().await.unwrap()).0.starts_with("snapshot"));
    assert!(feed.state().history.len() <= history::MAX_MESSAGES);
}

#[tokio::test(start_paused = true)]
async fn updates_stop_without_pages_and_end_is_sent() {
    let feed = feed(2);
    let mut stream = Box::pin(feed.subscribe(None).unwrap());
    stream.next().await.unwrap().unwrap();
    drop(stream);
    tokio::time::sleep(UPDATE_INTERVAL * 3).await;
    assert!(!feed.state().is_updating);
    let mut stream = Box::pin(feed.subscribe(None).unwrap());
    stream.next().await.unwrap().unwrap();
    feed.close();
    let mut events = Vec::new();
    while let Some(Ok(text)) = stream.next().await {
        events.push(parse(&text).0);
    }
    assert!(events.last().unwrap().starts_with("over"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn added_task_is_sent_with_the_whole_grid_and_a_new_revision() {
    let run = Arc::new(RunState::open_ended());
    let info = RunInfo::default();
    let feed = Feed::new(
        MonitoredRun {
            run: Arc::clone(&run),
            info,
            policy: None,
            judge_slots: 1,
            farm: None,
            save_path: None,
        },
        false,
    );
    let add = |index: usize| {
        let task = TaskInfo { index, ..TaskInfo::default() };
        run.on_event(&Event::TaskAdded { task: Box::new(task) });
    };
    (0..50).for_each(add);
    feed.update(&mut feed.state());
    assert_eq!(feed.task_list(|revision| revision.to_string().into()), "50");
    let (_, mut receiver) = feed.join(None);
    add(50);
    feed.update(&mut feed.state());
    let (_, body) = parse(&receiver.try_recv().unwrap().text);
    assert!(body["full"].is_string() && body["statistics"]["revision"] == 51, "{body}");
    assert_eq!(feed.task_list(|revision| revision.to_string().into()), "51");
    assert_eq!(feed.task_list(|_| panic!("this revision is encoded")), "51");
}
