//! What a run keeps in Redis, and the commands that read and change it: a stream with one entry a task and a consumer
//! group over it, a bitmap of what is durable somewhere, the plan's digest, and a sign of life for every collector.

use std::{collections::HashMap, time::Duration};

use net::redis::{Cmd, FromRedisValue, Pipeline, RedisConnection, RedisConnectionError, cmd, pipe};

const GROUP: &str = "collectors";
/// How long an abandoned run is kept; every sign of life begins it anew.
const KEEP: Duration = Duration::from_secs(14 * 24 * 3600);
/// How long latecomers can still learn that everything is done.
const KEEP_FINISHED: Duration = Duration::from_secs(3600);
const PAGE: usize = 256;

/// Fills the stream unless somebody has: digest and stream are there together, or the run is over. Arguments: digest,
/// generation, seconds to keep it, how many are done, their indices, then the indices to collect in order.
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

/// An entry of the stream: its id, and the trajectory index it stands for.
pub(super) type Entry = (String, usize);
type RawEntry = (String, Option<Vec<String>>);

/// What the stream was made from, and which making of it this is: a server that lost its memory is filled again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) digest: String,
    pub(super) generation: String,
}

/// What a sign of life brings back.
pub(super) struct News {
    /// `None` when the server has forgotten the run, or it is over.
    pub(super) header: Option<Header>,
    pub(super) done: Vec<u8>,
}

pub(super) struct Ledger {
    link: RedisConnection,
    plan: String,
    stream: String,
    done: String,
    alive: String,
    me: String,
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

impl Ledger {
    /// The run's keys share a hash tag, so that a cluster keeps them together.
    pub(super) fn new(link: RedisConnection, run: &str, me: &str) -> Self {
        let key = |what: &str| format!("webgym:work:{{{run}}}:{what}");
        let (plan, stream) = (key("plan"), key("tasks"));
        Self { link, plan, stream, done: key("done"), alive: key("alive"), me: me.to_owned() }
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisConnectionError> {
        self.link.run(command).await
    }

    async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, RedisConnectionError> {
        self.link.run_all(commands).await
    }

    pub(super) async fn look(&self) -> Result<Option<Header>, RedisConnectionError> {
        self.ask(cmd("HMGET").arg(&self.plan).arg("digest").arg("generation")).await.map(header)
    }

    pub(super) async fn fill(
        &self,
        wanted: &Header,
        done: &[usize],
        todo: &[usize],
    ) -> Result<Option<Header>, RedisConnectionError> {
        let mut command = cmd("EVAL");
        command.arg(FILL).arg(3).arg(&self.plan).arg(&self.stream).arg(&self.done);
        command.arg(&wanted.digest).arg(&wanted.generation).arg(seconds(KEEP)).arg(done.len());
        command.arg(done).arg(todo);
        self.ask(&command).await.map(header)
    }

    /// The next entry that nobody has had.
    pub(super) async fn take(&self) -> Result<Option<Entry>, RedisConnectionError> {
        Ok(self.read(">", 1).await?.pop())
    }

    /// What this collector had taken and not acknowledged before it was interrupted.
    pub(super) async fn unacknowledged(&self) -> Result<Vec<Entry>, RedisConnectionError> {
        let (mut all, mut after) = (Vec::new(), "0".to_owned());
        loop {
            let page = self.read(&after, PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(all) };
            after.clone_from(last);
            all.extend(page);
        }
    }

    async fn read(&self, from: &str, count: usize) -> Result<Vec<Entry>, RedisConnectionError> {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(GROUP).arg(&self.me).arg("COUNT").arg(count);
        command.arg("STREAMS").arg(&self.stream).arg(from);
        let streams: Option<Vec<(String, Vec<RawEntry>)>> = self.ask(&command).await?;
        Ok(entries(streams.into_iter().flatten().flat_map(|(_, entries)| entries)))
    }

    /// Takes over one entry of a collector that has given no sign of life for so long. Also says whose it was.
    pub(super) async fn claim(
        &self,
        idle: Duration,
    ) -> Result<Option<(Entry, String)>, RedisConnectionError> {
        let mut alive: HashMap<String, bool> = HashMap::from([(self.me.clone(), true)]);
        let mut from = "-".to_owned();
        loop {
            let mut command = cmd("XPENDING");
            command.arg(&self.stream).arg(GROUP).arg("IDLE").arg(milliseconds(idle));
            command.arg(&from).arg("+").arg(PAGE);
            let page: Vec<(String, String, u64, u64)> = self.ask(&command).await?;
            let Some((last, ..)) = page.last() else { return Ok(None) };
            from = format!("({last}");
            for (id, owner, ..) in &page {
                if !alive.contains_key(owner) {
                    let lives = self.ask(cmd("EXISTS").arg(self.sign_of(owner))).await?;
                    alive.insert(owner.clone(), lives);
                }
                if alive[owner] {
                    continue;
                }
                // Idle time is looked at again: of two that claim it at once, one gets it.
                let mut command = cmd("XCLAIM");
                command.arg(&self.stream).arg(GROUP).arg(&self.me).arg(milliseconds(idle)).arg(id);
                let claimed: Vec<RawEntry> = self.ask(&command).await?;
                if let Some(entry) = entries(claimed).pop() {
                    return Ok(Some((entry, owner.clone())));
                }
            }
        }
    }

    fn sign_of(&self, collector: &str) -> String {
        format!("{}:{collector}", self.alive)
    }

    /// Gives a sign of life that lasts so long, and hears how far everyone is.
    pub(super) async fn beat(&self, lasting: Duration) -> Result<News, RedisConnectionError> {
        let mut commands = pipe();
        let sign = self.sign_of(&self.me);
        commands.cmd("SET").arg(sign).arg(1).arg("PX").arg(milliseconds(lasting)).ignore();
        for key in [&self.plan, &self.stream, &self.done] {
            commands.cmd("EXPIRE").arg(key).arg(seconds(KEEP)).ignore();
        }
        commands.cmd("HMGET").arg(&self.plan).arg("digest").arg("generation");
        commands.cmd("GET").arg(&self.done).cmd("EXISTS").arg(&self.stream);
        let (found, done, stands): ((Option<String>, Option<String>), Option<Vec<u8>>, bool) =
            self.ask_all(&commands).await?;
        Ok(News { header: header(found).filter(|_| stands), done: done.unwrap_or_default() })
    }

    pub(super) async fn is_done(&self, index: usize) -> Result<bool, RedisConnectionError> {
        self.ask(cmd("GETBIT").arg(&self.done).arg(index)).await
    }

    /// Notes that these are durable, and acknowledges the entries that stood for them.
    pub(super) async fn report(
        &self,
        finished: &[(usize, Option<String>)],
    ) -> Result<(), RedisConnectionError> {
        let mut commands = pipe();
        for (index, entry) in finished {
            commands.cmd("SETBIT").arg(&self.done).arg(*index).arg(1).ignore();
            if let Some(entry) = entry {
                commands.cmd("XACK").arg(&self.stream).arg(GROUP).arg(entry).ignore();
            }
        }
        self.ask_all(&commands).await
    }

    pub(super) async fn leave(&self) -> Result<(), RedisConnectionError> {
        self.ask(cmd("DEL").arg(self.sign_of(&self.me))).await
    }

    /// The run is over: the stream goes, the rest runs out.
    pub(super) async fn retire(&self) -> Result<(), RedisConnectionError> {
        let mut commands = pipe();
        commands.cmd("DEL").arg(&self.stream).ignore();
        for key in [&self.plan, &self.done] {
            commands.cmd("EXPIRE").arg(key).arg(seconds(KEEP_FINISHED)).ignore();
        }
        self.ask_all(&commands).await
    }
}

/// Entries without our field are not ours; there are none unless somebody put them there by hand.
fn entries(raw: impl IntoIterator<Item = RawEntry>) -> Vec<Entry> {
    let index = |fields: Vec<String>| match fields.as_slice() {
        [name, index] if name == "i" => index.parse().ok(),
        _ => None,
    };
    raw.into_iter().filter_map(|(id, fields)| Some((id, index(fields?)?))).collect()
}
