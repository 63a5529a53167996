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

/// The faults are over by then, come what may.
const MOST: Duration = Duration::from_mins(5);
/// After a fault every slot is usable again within this.
const WHOLE: Duration = Duration::from_secs(30);
/// … and another trajectory is finished within this.
const PROGRESS: Duration = Duration::from_mins(1);
/// Whole is what stays whole for so long.
const STAYS: Duration = Duration::from_secs(1);
/// How long the checker may take to see what is on the disk.
const NOTICED: Duration = Duration::from_millis(400);
/// No fault itself lasts longer.
const FAULT: Duration = Duration::from_mins(1);

pub(crate) async fn go_through(
    world: &World,
    checker: &Checker,
    seed: u64,
    faults_for: Duration,
    report: &mut Report,
) {
    let (mut dice, begun) = (Dice::new(seed), Instant::now());
    // Something to lose.
    recovery(world, checker).await;
    let mut bag: Vec<Kind> = Vec::new();
    let mut all_once = false;
    while (!all_once || begun.elapsed() < faults_for) && begun.elapsed() < MOST {
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
        // Whoever was not there to be hit gets another turn.
        let missed = kinds.iter().filter(|kind| !faults.iter().any(|(made, _)| made == *kind));
        missed.for_each(|kind| bag.insert(0, *kind));
        let (whole, progress) = recovery(world, checker).await;
        let round = Round { at, faults, whole, progress };
        tell(&round, checker);
        report.rounds.push(round);
        all_once = all_once || bag.is_empty();
        tokio::time::sleep(Duration::from_millis(dice.below(1500) as u64)).await;
    }
    let made =
        |kind: &Kind| report.rounds.iter().any(|round| round.faults.iter().any(|(made, _)| made == kind));
    for kind in KINDS.iter().filter(|kind| !made(kind)) {
        checker.findings.is_wrong(format!("there was no time for this fault: {}", kind.name()));
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

/// How long until all slots are usable and stay so, and until more is finished than before.
async fn recovery(world: &World, checker: &Checker) -> (Option<Duration>, Option<Duration>) {
    let (since, mut before) = (Instant::now(), checker.finished());
    // Since when every look has found it whole: whoever looks too soon sees what has not been noticed yet.
    let (mut whole, mut progress): (Option<Duration>, Option<Duration>) = (None, None);
    loop {
        let looked = since.elapsed();
        let stays = whole.is_some_and(|whole| looked > whole + STAYS);
        if !stays {
            match world.is_whole().await {
                Ok(()) => whole = whole.or(Some(looked)),
                Err(why) if looked > WHOLE => {
                    checker.findings.is_wrong(format!("not whole within {WHOLE:?}: {why}"));
                    return (None, progress);
                }
                Err(_) => whole = None,
            }
        }
        if since.elapsed() < NOTICED {
            // What was finished before is only now seen on the disk.
            before = checker.finished();
        } else if progress.is_none() && checker.finished() > before {
            progress = Some(since.elapsed());
        }
        if stays && progress.is_some() {
            return (whole, progress);
        }
        if progress.is_none() && since.elapsed() > PROGRESS {
            checker.findings.is_wrong(format!("nothing was finished within {PROGRESS:?}"));
            return (whole, progress);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn tell(round: &Round, checker: &Checker) {
    let faults: Vec<String> =
        round.faults.iter().map(|(kind, whom)| format!("{} ({whom})", kind.name())).collect();
    println!(
        "{:>4.0} s {}: whole after {:.1} s, next trajectory after {:.1} s, {} finished",
        round.at.as_secs_f64(),
        faults.join(" + "),
        round.whole.unwrap_or_default().as_secs_f64(),
        round.progress.unwrap_or_default().as_secs_f64(),
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
