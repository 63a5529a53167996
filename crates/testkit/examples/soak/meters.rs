//! Takes samples from outside, and decides whether a series of them stays flat.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use testkit::{Process, descendants, processes};

/// Name of what is measured → value.
pub(crate) type Sample = BTreeMap<&'static str, f64>;

/// The processes and folders to sample.
pub(crate) struct Meters {
    pub(crate) farm: u32,
    pub(crate) collector: u32,
    pub(crate) redis: u32,
    pub(crate) redis_port: u16,
    /// Folders in which no files may accumulate.
    pub(crate) temporary: Vec<PathBuf>,
}

impl Meters {
    pub(crate) fn read(&self) -> Sample {
        let below = descendants(self.farm);
        let browsers = below.iter().filter(|one| !is_reaper(one));
        let mut sample = Sample::from([
            ("farm: memory, MiB", memory(self.farm)),
            ("farm: descriptors", descriptors(self.farm)),
            ("farm: threads", threads(self.farm)),
            ("collector: memory, MiB", memory(self.collector)),
            ("collector: descriptors", descriptors(self.collector)),
            ("collector: threads", threads(self.collector)),
            ("browsers: memory, MiB", browsers.clone().map(|one| memory(one.pid)).sum()),
            ("browsers: descriptors", browsers.clone().map(|one| descriptors(one.pid)).sum()),
            ("browsers: processes", browsers.filter(|one| !one.zombie).count() as f64),
            ("zombies", processes().iter().filter(|one| one.zombie).count() as f64),
            ("Redis: memory, MiB", memory(self.redis)),
            ("Redis: keys", self.keys()),
        ]);
        let files: usize = self.temporary.iter().map(|folder| count_entries(folder)).sum();
        sample.insert("temporary files", files as f64);
        sample
    }

    fn keys(&self) -> f64 {
        let port = self.redis_port.to_string();
        let size = |database: &str| {
            let output = Command::new("redis-cli").args(["-p", &port, "-n", database, "DBSIZE"]).output();
            let text =
                output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            text.trim().trim_start_matches("(integer) ").parse::<f64>().unwrap_or(f64::NAN)
        };
        size("0") + size("1")
    }
}

fn is_reaper(process: &Process) -> bool {
    process.command.iter().any(|word| word.contains("webgym-reaper"))
}

fn process(pid: u32) -> Option<procfs::process::Process> {
    procfs::process::Process::new(pid.cast_signed()).ok()
}

/// Returns the proportional set size in MiB: shared pages are divided among the processes that share them.
fn memory(pid: u32) -> f64 {
    let rollup = process(pid).and_then(|process| process.smaps_rollup().ok());
    let maps = rollup.into_iter().flat_map(|rollup| rollup.memory_map_rollup);
    let bytes: u64 = maps.filter_map(|map| map.extension.map.get("Pss").copied()).sum();
    bytes as f64 / f64::from(1 << 20)
}

fn descriptors(pid: u32) -> f64 {
    process(pid).and_then(|process| process.fd_count().ok()).unwrap_or(0) as f64
}

fn threads(pid: u32) -> f64 {
    process(pid).and_then(|process| process.stat().ok()).map_or(0, |stat| stat.num_threads) as f64
}

/// Counts the entries of a folder; a browser profile counts as one.
fn count_entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Returns the allowed growth of the linear fit from 25 % to 100 % of the run: a share of the mean or an absolute value,
/// whichever is larger. Memory varies with the pages; the other values do not.
pub(crate) fn tolerance(name: &str, mean: f64) -> f64 {
    match name {
        "browsers: memory, MiB" => mean * 0.15,
        name if name.ends_with("MiB") => (mean * 0.10).max(6.0),
        // The number of connections and helper processes varies with the load.
        "browsers: descriptors" => mean * 0.10,
        name if name.ends_with("descriptors") || name.ends_with("threads") => (mean * 0.10).max(4.0),
        "browsers: processes" => (mean * 0.10).max(2.0),
        _ => 2.0,
    }
}

/// The linear fit of a series.
pub(crate) struct Line {
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Change over a thousand episodes.
    pub(crate) per_thousand: f64,
    /// Change over the measured part.
    pub(crate) growth: f64,
}

/// Fits a line through values over episodes by least squares.
pub(crate) fn fit_line(points: &[(f64, f64)]) -> Line {
    let count = points.len().max(1) as f64;
    let mean_of = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle, mean) = (mean_of(|point| point.0), mean_of(|point| point.1));
    let above: f64 = points.iter().map(|(x, y)| (x - middle) * (y - mean)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - middle).powi(2)).sum();
    let slope = if below > 0.0 { above / below } else { 0.0 };
    let span = points.last().map_or(0.0, |last| last.0) - points.first().map_or(0.0, |first| first.0);
    let values = points.iter().map(|point| point.1);
    Line {
        mean,
        min: values.clone().fold(f64::INFINITY, f64::min),
        max: values.fold(f64::NEG_INFINITY, f64::max),
        per_thousand: slope * 1000.0,
        growth: slope * span,
    }
}
