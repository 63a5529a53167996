//! Measures recording, opening and lookups:
//! `cargo run --release -p webgym-replay --example bench_archive [responses] [sessions] [bytes of a body]`.

#![allow(clippy::unwrap_used, reason = "a failure in a benchmark should panic")]

use std::{
    path::Path,
    process::Command,
    sync::{Arc, Barrier},
    thread,
    time::Instant,
};

use jiff::{Timestamp, ToSpan};
use replay::{
    Answer, Archive, ArchiveOptions, Cursor, Exchange, Outcome, Recorder, RecorderOptions, Request, Response,
};

const THREADS: usize = 2;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, directory, responses, size] = arguments.as_slice()
        && mode == "record"
    {
        return record(directory.as_ref(), responses.parse().unwrap(), size.parse().unwrap());
    }
    let number = |index: usize, default| arguments.get(index).map_or(default, |text| text.parse().unwrap());
    let (responses, sessions, size) = (number(0, 10_000), number(1, 1_000), number(2, 20_000));
    let directory = tempfile::tempdir().unwrap();
    println!("{responses} responses of {size} bytes, {sessions} sessions, {THREADS} threads");
    // In a process of its own, so that its memory is not counted below.
    let program = std::env::current_exe().unwrap();
    let numbers = [responses.to_string(), size.to_string()];
    let status = Command::new(program).arg("record").arg(directory.path()).args(numbers).status().unwrap();
    assert!(status.success());
    replay(directory.path(), responses, sessions);
}

fn record(directory: &Path, responses: usize, size: usize) {
    let shares = split((0..responses).map(|index| exchange(index, size)).collect());
    let recorder = Arc::new(Recorder::open(directory, RecorderOptions::default()).unwrap());
    let clock = Clock::start();
    let writers: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let recorder = Arc::clone(&recorder);
            thread::spawn(move || share.into_iter().for_each(|exchange| recorder.append(exchange).unwrap()))
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let stored = recorder.statistics().bytes / 1_000_000;
    let payload = responses * size / 1_000_000;
    clock.report(&format!("record: {payload} MB of bodies, {stored} MB on disk"), responses);
    let clock = Clock::start();
    Arc::into_inner(recorder).unwrap().finish().unwrap();
    clock.report("sync and index", responses);
}

fn replay(directory: &Path, responses: usize, sessions: usize) {
    let (clock, before) = (Clock::start(), resident());
    let archive = Archive::open(directory, ArchiveOptions::default()).unwrap();
    clock.report(&format!("open: {} KiB", resident() - before), responses);
    let clock = Clock::start();
    for index in 0..responses {
        drop(archive.body(index).unwrap());
    }
    clock.report(&format!("read all bodies: {} KiB in memory", resident() - before), responses);
    let before = resident();
    let mut cursors: Vec<Cursor> = (0..sessions).map(|_| Cursor::new(Arc::clone(&archive))).collect();
    for (kind, suffix) in
        [("exact", ""), ("normalised", "&_=77"), ("scored", "&other=1"), ("missed", "&a=1&b=2&c=3")]
    {
        let lookups = 200_000;
        let clock = Clock::start();
        look_up(&mut cursors, responses, lookups, suffix, kind);
        clock.report(kind, lookups);
    }
    let bytes = (resident() - before) * 1024 / sessions;
    println!("memory of a cursor after {} lookups: {bytes} bytes", 4 * 200_000 / sessions);
}

/// Time and processor time: on a busy machine only the second says what something costs.
struct Clock {
    start: Instant,
    ticks: u64,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now(), ticks: processor_ticks() }
    }

    fn report(&self, what: &str, count: usize) {
        let wall = self.start.elapsed().as_secs_f64();
        // A tick is 10 ms.
        let processor = ((processor_ticks() - self.ticks) as f64 / 100.0).max(0.01);
        let (per_second, per_processor) = (count as f64 / wall, count as f64 / processor);
        println!(
            "{what}: {wall:.2} s, processor {processor:.2} s; {per_second:.0}/s, {per_processor:.0} per processor second"
        );
    }
}

fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Every tenth request is recorded twice.
fn url(index: usize) -> String {
    let index = if index % 10 == 1 { index - 1 } else { index };
    format!("https://site.test/path/{}/item?id={index}&page=2&lang=en", index % 1000)
}

fn exchange(index: usize, size: usize) -> Exchange {
    // Text that compresses about as well as a page does.
    let words = ["<div class=\"item\">", "price", "add to cart", "</div>\n", "function", "return"];
    let mut state = index as u64 + 1;
    let mut body = String::with_capacity(size + 20);
    while body.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        body.push_str(words[(state >> 33) as usize % words.len()]);
        body.push_str(&((state >> 40) % 10_000).to_string());
    }
    let headers = [("Content-Type", "text/html"), ("Cache-Control", "max-age=60"), ("Server", "bench")];
    let response = Response {
        status: 200,
        reason: "OK".into(),
        headers: headers.into_iter().collect(),
        body: body.into(),
    };
    let started = Timestamp::UNIX_EPOCH + i64::try_from(index).unwrap().milliseconds();
    Exchange::new(started, Request::get(url(index)), Outcome::Response(response))
}

fn split(mut exchanges: Vec<Exchange>) -> Vec<Vec<Exchange>> {
    let half = exchanges.split_off(exchanges.len() / THREADS);
    vec![exchanges, half]
}

/// All sessions look up requests in turns, on two threads, and read the bodies that they find.
fn look_up(cursors: &mut [Cursor], responses: usize, lookups: usize, suffix: &str, kind: &str) {
    let barrier = Barrier::new(THREADS);
    let middle = cursors.len() / THREADS;
    let (one, other) = cursors.split_at_mut(middle);
    thread::scope(|scope| {
        for cursors in [one, other] {
            scope.spawn(|| {
                barrier.wait();
                for number in 0..lookups / THREADS {
                    let (session, index) = (number % cursors.len(), (number * 7919) % responses);
                    match cursors[session].find(&Request::get(url(index) + suffix)) {
                        Answer::Found(found) => drop(found.response().unwrap()),
                        Answer::Miss(_) => assert_eq!(kind, "missed"),
                    }
                }
            });
        }
    });
}

/// Resident memory in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
