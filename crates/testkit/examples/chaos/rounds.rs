//! The schedule: every kind of fault at least once in an order of the dice's, sometimes two at once, and after each the
//! wait for recovery, which is bounded. Then what must hold when it is quiet.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use testkit::Dice;

use crate::{
    checker::{Checker, Findings},
    faults::{KINDS, Kind, inject},
    report::{Report, Round},
    world::{World, slots_of},
};

/// After a fault every slot is usable again within this.
const WHOLE: Duration = Duration::from_secs(30);
/// … and another trajectory is finished within this.
const PROGRESS: Duration = Duration::from_secs(60);
/// No fault itself lasts longer.
const FAULT: Duration = Duration::from_secs(60);

pub(crate) async fn go_through(
    world: &World,
    checker: &Checker,
    seed: u64,
    faults_for: Duration,
    report: &mut Report,
) {
    let (mut dice, begun) = (Dice::new(seed), Instant::now());
    // Something to lose.
    recovery(world, checker, 0).await;
    let mut bag: Vec<Kind> = Vec::new();
    let mut all_once = false;
    while !all_once || begun.elapsed() < faults_for {
        if bag.is_empty() {
            bag.extend(KINDS);
            dice.shuffle(&mut bag);
        }
        let mut kinds: Vec<Kind> = bag.pop().into_iter().collect();
        if dice.below(3) == 0 {
            kinds.extend(bag.pop());
        }
        let at = begun.elapsed();
        let faults = all_at_once(&kinds, world, &mut dice).await;
        let before = checker.finished();
        let (whole, progress) = recovery(world, checker, before).await;
        let round = Round { at, faults, whole, progress };
        tell(&round, checker);
        report.rounds.push(round);
        all_once = all_once || bag.is_empty();
        tokio::time::sleep(Duration::from_millis(dice.below(1500) as u64)).await;
    }
}

async fn all_at_once(kinds: &[Kind], world: &World, dice: &mut Dice) -> Vec<(Kind, String)> {
    let (mut one, mut other) = (dice.split(), dice.split());
    let (first, second) = (kinds.first().copied(), kinds.get(1).copied());
    let fault = async |kind: Option<Kind>, dice: &mut Dice| {
        let kind = kind?;
        match tokio::time::timeout(FAULT, inject(kind, world, dice)).await {
            Ok(whom) => whom.map(|whom| (kind, whom)),
            Err(_) => Some((kind, format!("could not be made within {FAULT:?}"))),
        }
    };
    let (first, second) = tokio::join!(fault(first, &mut one), fault(second, &mut other));
    first.into_iter().chain(second).collect()
}

/// How long until all slots are usable, and until more is finished than before.
async fn recovery(world: &World, checker: &Checker, before: usize) -> (Option<Duration>, Option<Duration>) {
    let since = Instant::now();
    let (mut whole, mut progress, mut why) = (None, None, String::new());
    while whole.is_none() || progress.is_none() {
        if whole.is_none() {
            match world.is_whole().await {
                Ok(()) => whole = Some(since.elapsed()),
                Err(missing) => why = missing,
            }
        }
        if progress.is_none() && checker.finished() > before {
            progress = Some(since.elapsed());
        }
        if whole.is_none() && since.elapsed() > WHOLE {
            checker.findings.is_wrong(format!("not whole within {WHOLE:?}: {why}"));
            break;
        }
        if progress.is_none() && since.elapsed() > PROGRESS {
            checker.findings.is_wrong(format!("nothing was finished within {PROGRESS:?}"));
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (whole, progress)
}

fn tell(round: &Round, checker: &Checker) {
    let faults: Vec<String> =
        round.faults.iter().map(|(kind, whom)| format!("{} ({whom})", kind.name())).collect();
    println!(
        "{:>5.0?} {}: whole after {:.1?}, next trajectory after {:.1?}, {} finished",
        round.at,
        faults.join(" + "),
        round.whole.unwrap_or_default(),
        round.progress.unwrap_or_default(),
        checker.finished()
    );
}

/// Nobody collects any more: every slot is free.
pub(crate) async fn all_free(world: &World, findings: &Findings, limit: Duration) {
    let end = Instant::now() + limit;
    for url in world.node_urls() {
        loop {
            let slots = slots_of(&url).await;
            if slots.as_ref().is_ok_and(testkit::Slots::all_free) {
                break;
            }
            if Instant::now() > end {
                findings.is_wrong(format!("not all slots of {url} are free after {limit:?}: {slots:?}"));
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The registry holds the two nodes, and whatever else is there runs out.
pub(crate) fn redis_keys(world: &World, findings: &Findings) {
    let ask = |database: &str, words: &[&str]| -> Vec<String> {
        let ip = world.hosts.redis.ip.to_string();
        let output = Command::new("redis-cli").args(["-h", &ip, "-n", database]).args(words).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let nodes = ask("1", &["--scan", "--pattern", "omnibox:nodes:*"]);
    if nodes.len() != 2 {
        findings.is_wrong(format!("Redis knows these nodes: {nodes:?}"));
    }
    for database in ["0", "1"] {
        for key in ask(database, &["--scan"]) {
            let left = ask(database, &["TTL", &key]);
            if left.first().is_some_and(|seconds| seconds.trim() == "-1") {
                findings.is_wrong(format!("the key {key} in Redis' database {database} never runs out"));
            }
        }
    }
}
