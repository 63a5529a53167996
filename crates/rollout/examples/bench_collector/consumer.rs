//! A consumer of the run's stream, in the process of the simulated servers, and the delay with which it gets trajectories.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Mutex,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rollout::run::event::{Event, Listener};

/// Items between two acknowledgments.
const BATCH: usize = 32;

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Reads the stream at this address to its end and prints when each trajectory came.
pub(crate) fn consume(address: &str) {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET /stream HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut received = Vec::new();
    for line in BufReader::with_capacity(1 << 20, connection).lines() {
        let line = line.unwrap();
        if line.starts_with("{\"type\":\"end\"") {
            break;
        }
        let Some(cursor) = text_after(&line, "{\"type\":\"trajectory\",\"cursor\":\"") else { continue };
        received.push((
            text_after(&line, "\"trajectory_index\":").unwrap().to_owned(),
            now(),
            cursor.to_owned(),
        ));
        if received.len().is_multiple_of(BATCH) {
            acknowledge(address, cursor);
        }
    }
    // The server may end as soon as its last item is acknowledged.
    if !received.len().is_multiple_of(BATCH) {
        acknowledge(address, &received.last().unwrap().2);
    }
    let times = received.iter().map(|(index, time, _)| format!("{index}:{time:.6}")).collect::<Vec<_>>();
    println!("{}", times.join(" "));
}

fn text_after<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split(['"', ',', '}']).next()
}

fn acknowledge(address: &str, cursor: &str) {
    let mut connection = TcpStream::connect(address).unwrap();
    let head = "content-length: 0\r\nconnection: close";
    write!(connection, "POST /ack?cursor={cursor} HTTP/1.1\r\nhost: {address}\r\n{head}\r\n\r\n").unwrap();
    connection.read_to_string(&mut String::new()).unwrap();
}

/// Records when each trajectory is durable.
#[derive(Default)]
pub(crate) struct FinishTimes(Mutex<HashMap<usize, f64>>);

impl Listener for FinishTimes {
    fn on_event(&self, event: &Event) {
        if let Event::Finished { index, .. } = event {
            self.0.lock().unwrap().insert(*index, now());
        }
    }
}

impl FinishTimes {
    /// Returns the sorted delays of what the consumer printed.
    pub(crate) fn delays(&self, printed: &str) -> Vec<Duration> {
        let finished = self.0.lock().unwrap();
        let delay = |entry: &str| {
            let (index, time) = entry.split_once(':')?;
            let time = time.parse::<f64>().ok()? - finished.get(&index.parse().ok()?)?;
            Some(Duration::from_secs_f64(time.max(0.0)))
        };
        let mut delays: Vec<Duration> = printed.split_whitespace().filter_map(delay).collect();
        delays.sort();
        delays
    }
}
