//! The Redis keys of a run and the commands on them: a stream with one entry per task and a consumer group over it, a bitmap
//! of finished trajectories, the digest of the plan, and a heartbeat key per collector.

use std::{collections::HashMap, time::Duration};

use net::redis::{Cmd, FromRedisValue, Pipeline, RedisConnection, RedisConnectionError, cmd, pipe};

const GROUP: &str = "collectors";
/// Time to live of a run's keys; every heartbeat renews it.
const RUN_TTL: Duration = Duration::from_secs(14 * 24 * 3600);
/// Time to live after everything is done, so that collectors that join late find out.
const FINISHED_RUN_TTL: Duration = Duration::from_secs(3600);
const PAGE_SIZE: usize = 256;

/// Fills the stream unless another collector did: digest and stream exist together, or the run is over. Arguments: digest,
/// generation, time to live in seconds, number of finished indices, those indices, then the indices to collect in order.
const FILL: &str = r"
if redis.call('HSETNX', KEYS[1], 'digest', ARGV[1]) == 1 or redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('HSET', KEYS[1], 'generation', ARGV[2])
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('XGROUP', 'CREATE', KEYS[2], 'collectors', '0', 'MKSTREAM')
  local done = tonumber(ARGV[4])
  for i = 5, 4 + done do redis.call('SETBIT', KEYS[3], ARGV[i], 1) end
  for i = 5 + done, #ARGV do redis.call('XADD', KEYS[2], '*', 'i', ARGV[i]) end
  for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[3]) end
end
return redis.call('HMGET', KEYS[1], 'digest', 'generation')";

/// An entry of the stream: its id and its trajectory index.
pub(super) type Entry = (String, usize);
type RawEntry = (String, Option<Vec<String>>);

/// Identifies the contents of the stream: the digest of the plan, and a generation that changes when the stream is refilled
/// after the server lost its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) digest: String,
    pub(super) generation: String,
}

/// The response to a heartbeat.
pub(super) struct QueueStatus {
    /// `None` when the server has lost the run's data, or the run is over.
    pub(super) header: Option<Header>,
    /// The bitmap of finished trajectories.
    pub(super) finished: Vec<u8>,
}

/// The commands of one collector on the run's keys.
pub(super) struct RedisQueue {
    connection: RedisConnection,
    plan_key: String,
    stream_key: String,
    finished_key: String,
    heartbeat_prefix: String,
    /// This collector's name in the consumer group.
    consumer: String,
}

fn seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn header((digest, generation): (Option<String>, Option<String>)) -> Option<Header> {
    Some(Header { digest: digest?, generation: generation? })
}

/// Digest and generation of the plan, the bitmap of finished trajectories, whether the stream exists.
type StatusReply = ((Option<String>, Option<String>), Option<Vec<u8>>, bool);

impl RedisQueue {
    pub(super) fn new(connection: RedisConnection, run: &str, consumer: &str) -> Self {
        // The keys share a hash tag, so that a Redis cluster keeps them on one server.
        let key = |name: &str| format!("webgym:work:{{{run}}}:{name}");
        Self {
            connection,
            plan_key: key("plan"),
            stream_key: key("tasks"),
            finished_key: key("done"),
            heartbeat_prefix: key("alive"),
            consumer: consumer.to_owned(),
        }
    }

    async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisConnectionError> {
        self.connection.run(command).await
    }

    async fn run_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, RedisConnectionError> {
        self.connection.run_all(commands).await
    }

    pub(super) async fn header(&self) -> Result<Option<Header>, RedisConnectionError> {
        self.run(cmd("HMGET").arg(&self.plan_key).arg("digest").arg("generation")).await.map(header)
    }

    /// Fills the stream unless it exists, and returns the header that is then in Redis.
    pub(super) async fn fill(
        &self,
        wanted: &Header,
        finished: &[usize],
        pending: &[usize],
    ) -> Result<Option<Header>, RedisConnectionError> {
        let mut command = cmd("EVAL");
        command.arg(FILL).arg(3).arg(&self.plan_key).arg(&self.stream_key).arg(&self.finished_key);
        command.arg(&wanted.digest).arg(&wanted.generation).arg(seconds(RUN_TTL)).arg(finished.len());
        command.arg(finished).arg(pending);
        self.run(&command).await.map(header)
    }

    /// Takes the next entry that no collector has taken yet.
    pub(super) async fn take(&self) -> Result<Option<Entry>, RedisConnectionError> {
        Ok(self.read(">", 1).await?.pop())
    }

    /// Returns the entries that this collector has taken and not acknowledged.
    pub(super) async fn unacknowledged(&self) -> Result<Vec<Entry>, RedisConnectionError> {
        let (mut all, mut after) = (Vec::new(), "0".to_owned());
        loop {
            let page = self.read(&after, PAGE_SIZE).await?;
            let Some((last, _)) = page.last() else { return Ok(all) };
            after.clone_from(last);
            all.extend(page);
        }
    }

    async fn read(&self, from: &str, count: usize) -> Result<Vec<Entry>, RedisConnectionError> {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(GROUP).arg(&self.consumer).arg("COUNT").arg(count);
        command.arg("STREAMS").arg(&self.stream_key).arg(from);
        let streams: Option<Vec<(String, Vec<RawEntry>)>> = self.run(&command).await?;
        Ok(entries(streams.into_iter().flatten().flat_map(|(_, entries)| entries)))
    }

    /// Claims an entry that has been idle for `idle` and whose collector has no heartbeat. Also returns that collector.
    pub(super) async fn claim(
        &self,
        idle: Duration,
    ) -> Result<Option<(Entry, String)>, RedisConnectionError> {
        let mut alive: HashMap<String, bool> = HashMap::from([(self.consumer.clone(), true)]);
        let mut from = "-".to_owned();
        loop {
            let mut command = cmd("XPENDING");
            command.arg(&self.stream_key).arg(GROUP).arg("IDLE").arg(milliseconds(idle));
            command.arg(&from).arg("+").arg(PAGE_SIZE);
            let page: Vec<(String, String, u64, u64)> = self.run(&command).await?;
            let Some((last, ..)) = page.last() else { return Ok(None) };
            from = format!("({last}");
            for (id, owner, ..) in &page {
                if !alive.contains_key(owner) {
                    let is_alive = self.run(cmd("EXISTS").arg(self.heartbeat_key(owner))).await?;
                    alive.insert(owner.clone(), is_alive);
                }
                if alive[owner] {
                    continue;
                }
                // XCLAIM checks the idle time again, so that only one of two concurrent claims succeeds.
                let mut command = cmd("XCLAIM");
                command.arg(&self.stream_key).arg(GROUP).arg(&self.consumer).arg(milliseconds(idle)).arg(id);
                let claimed: Vec<RawEntry> = self.run(&command).await?;
                if let Some(entry) = entries(claimed).pop() {
                    return Ok(Some((entry, owner.clone())));
                }
            }
        }
    }

    fn heartbeat_key(&self, collector: &str) -> String {
        format!("{}:{collector}", self.heartbeat_prefix)
    }

    /// Sets the heartbeat key for `ttl`, renews the run's keys and returns the progress of all collectors.
    pub(super) async fn heartbeat(&self, ttl: Duration) -> Result<QueueStatus, RedisConnectionError> {
        let mut commands = pipe();
        let key = self.heartbeat_key(&self.consumer);
        commands.cmd("SET").arg(key).arg(1).arg("PX").arg(milliseconds(ttl)).ignore();
        for key in [&self.plan_key, &self.stream_key, &self.finished_key] {
            commands.cmd("EXPIRE").arg(key).arg(seconds(RUN_TTL)).ignore();
        }
        commands.cmd("HMGET").arg(&self.plan_key).arg("digest").arg("generation");
        commands.cmd("GET").arg(&self.finished_key).cmd("EXISTS").arg(&self.stream_key);
        let (found, finished, has_stream) = self.run_all::<StatusReply>(&commands).await?;
        let header = header(found).filter(|_| has_stream);
        Ok(QueueStatus { header, finished: finished.unwrap_or_default() })
    }

    pub(super) async fn is_finished(&self, index: usize) -> Result<bool, RedisConnectionError> {
        self.run(cmd("GETBIT").arg(&self.finished_key).arg(index)).await
    }

    /// Marks trajectories as finished and acknowledges their entries.
    pub(super) async fn report(
        &self,
        finished: &[(usize, Option<String>)],
    ) -> Result<(), RedisConnectionError> {
        let mut commands = pipe();
        for (index, entry) in finished {
            commands.cmd("SETBIT").arg(&self.finished_key).arg(*index).arg(1).ignore();
            if let Some(entry) = entry {
                commands.cmd("XACK").arg(&self.stream_key).arg(GROUP).arg(entry).ignore();
            }
        }
        self.run_all(&commands).await
    }

    /// Removes this collector's heartbeat.
    pub(super) async fn leave(&self) -> Result<(), RedisConnectionError> {
        self.run(cmd("DEL").arg(self.heartbeat_key(&self.consumer))).await
    }

    /// Deletes the stream of a run that is over and lets the other keys expire.
    pub(super) async fn retire(&self) -> Result<(), RedisConnectionError> {
        let mut commands = pipe();
        commands.cmd("DEL").arg(&self.stream_key).ignore();
        for key in [&self.plan_key, &self.finished_key] {
            commands.cmd("EXPIRE").arg(key).arg(seconds(FINISHED_RUN_TTL)).ignore();
        }
        self.run_all(&commands).await
    }
}

/// Parses entries of the stream. Entries without our field are ignored.
fn entries(raw: impl IntoIterator<Item = RawEntry>) -> Vec<Entry> {
    let index = |fields: Vec<String>| match fields.as_slice() {
        [name, index] if name == "i" => index.parse().ok(),
        _ => None,
    };
    raw.into_iter().filter_map(|(id, fields)| Some((id, index(fields?)?))).collect()
}
