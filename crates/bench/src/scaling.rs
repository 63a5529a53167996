//! Measures what instances cost without load (memory, start-up, idle CPU) and how the cost grows with their number.

use std::{sync::Arc, time::Duration};

use proto::Command;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    BenchError, Better, Report,
    farm_process::{FarmProcess, StepCalls},
    process_tree::ProcessTree,
    sections::{Bench, COORDINATES},
};

const CPU_AT_FIRST: &str = "256 instances: CPU 75 s after the last page, of one core";
const CPU_LATER: &str = "256 instances: CPU 150 s after the last page, of one core";

/// When the CPU of open pages is measured, after the last of them was opened. Chromium collects garbage for one to two
/// minutes; only the second measurement is of pages that have nothing left to do.
const IDLE_AFTER: [(&str, Duration); 2] =
    [(CPU_AT_FIRST, Duration::from_secs(75)), (CPU_LATER, Duration::from_secs(150))];

impl Bench<'_> {
    pub(crate) async fn memory(&self, report: &mut Report) -> Result<(), BenchError> {
        for repeat in 1..=self.options.repeats {
            (self.progress)(&format!("memory of additional instances, {repeat} of {}", self.options.repeats));
            let small = self.memory_of(4).await?;
            let large = self.memory_of(12).await?;
            report.add(
                "memory of each further instance, shop page open",
                "MiB",
                Better::Lower,
                (large - small) / 8.0,
            );
        }
        report.set_target("memory of each further instance, shop page open", 48.0);
        Ok(())
    }

    async fn memory_of(&self, instances: usize) -> Result<f64, BenchError> {
        let farm = self.start_farm(instances).await?;
        self.open_all(&farm, instances).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let memory = ProcessTree::of(farm.pid).memory().total();
        stop(farm).await?;
        Ok(memory)
    }

    /// Leases every instance and opens the shop in it, a few at a time. Returns the duration in seconds.
    async fn open_all(&self, farm: &Arc<FarmProcess>, instances: usize) -> Result<f64, BenchError> {
        const MAX_CONCURRENT: usize = 16;
        let start = Instant::now();
        let (mut opening, mut started) = (JoinSet::new(), 0);
        loop {
            while started < instances && opening.len() < MAX_CONCURRENT {
                let (farm, url) = (Arc::clone(farm), self.sites.url("/shop/"));
                opening.spawn(async move {
                    let lease = farm.acquire().await?;
                    let visit = Command::VisitPage { url };
                    let bytes = farm.step(&lease, &visit, StepCalls::STEP, COORDINATES).await?;
                    if bytes == 0 { Err(BenchError::Farm("a step has no screenshot".into())) } else { Ok(()) }
                });
                started += 1;
            }
            match opening.join_next().await {
                Some(opened) => opened.map_err(|error| BenchError::Farm(error.to_string()))??,
                None => return Ok(start.elapsed().as_secs_f64()),
            }
        }
    }

    pub(crate) async fn start_up(&self, report: &mut Report) -> Result<(), BenchError> {
        for (instances, target) in [(8, 2.0), (32, 6.0), (128, 20.0)] {
            let name = format!("start until ready, {instances} instances");
            for repeat in 1..=self.options.repeats {
                (self.progress)(&format!(
                    "start of {instances} instances, {repeat} of {}",
                    self.options.repeats
                ));
                let farm = self.start_farm(instances).await?;
                report.add(&name, "s", Better::Lower, farm.ready_after.as_secs_f64());
                stop(farm).await?;
            }
            report.set_target(&name, target);
        }
        Ok(())
    }

    pub(crate) async fn many(&self, report: &mut Report) -> Result<(), BenchError> {
        const INSTANCES: usize = 256;
        for repeat in 1..=self.options.repeats {
            let progress = |what| (self.progress)(&format!("{what}, {repeat} of {}", self.options.repeats));
            progress("256 instances, a page open in each");
            let farm = self.start_farm(INSTANCES).await?;
            let opened = self.open_all(&farm, INSTANCES).await?;
            report.add("256 instances: a page opened in each after", "s", Better::Neither, opened);
            let last_opened = Instant::now();
            let memory = ProcessTree::of(farm.pid).memory().total();
            report.add("256 instances: memory", "MiB", Better::Lower, memory);
            progress("256 instances, idle");
            for (name, after) in IDLE_AFTER {
                tokio::time::sleep_until(last_opened + after).await;
                let (cpu, seconds) = (ProcessTree::of(farm.pid).cpu(), self.options.seconds.clamp(5.0, 60.0));
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                let used = ProcessTree::of(farm.pid).cpu().since(cpu).total() / seconds * 100.0;
                report.add(name, "%", Better::Lower, used);
            }
            stop(farm).await?;
        }
        report.set_target(CPU_LATER, 3.0);
        Ok(())
    }

    pub(crate) async fn growth(&self, report: &mut Report) -> Result<(), BenchError> {
        const SIZES: [usize; 5] = [1, 4, 16, 64, 256];
        const COSTS: [&str; 3] =
            ["start until ready", "memory, a page open in each", "CPU to open a page in each"];
        let exponent_name = |cost: &str| format!("{cost}: grows with the instances to the power of");
        // A virtual machine gets memory from its host when it uses it for the first time, which costs CPU.
        (self.progress)("growth: using the memory for the first time");
        self.costs_of(SIZES[SIZES.len() - 1]).await?;
        for repeat in 1..=self.options.repeats {
            let mut costs = Vec::new();
            for instances in SIZES {
                let repeats = self.options.repeats;
                (self.progress)(&format!("growth: {instances} instances, {repeat} of {repeats}"));
                let values = self.costs_of(instances).await?;
                for ((cost, unit), value) in COSTS.into_iter().zip(["s", "MiB", "s"]).zip(values) {
                    report.add(&format!("{cost}: {instances} instances"), unit, Better::Neither, value);
                }
                costs.push((instances as f64, values));
            }
            for (index, cost) in COSTS.into_iter().enumerate() {
                let points: Vec<(f64, f64)> =
                    costs.iter().skip(1).map(|(size, values)| (*size, values[index])).collect();
                report.add(&exponent_name(cost), "", Better::Lower, growth_exponent(&points));
            }
        }
        for cost in COSTS {
            report.set_target(&exponent_name(cost), 1.03);
        }
        Ok(())
    }

    /// Returns the seconds until a farm is ready, and the memory and CPU seconds of a page in each instance.
    async fn costs_of(&self, instances: usize) -> Result<[f64; 3], BenchError> {
        let farm = self.start_farm(instances).await?;
        let cpu = ProcessTree::of(farm.pid).cpu();
        self.open_all(&farm, instances).await?;
        let tree = ProcessTree::of(farm.pid);
        let costs = [farm.ready_after.as_secs_f64(), tree.memory().total(), tree.cpu().since(cpu).total()];
        stop(farm).await?;
        Ok(costs)
    }
}

/// Stops a farm if this is its last reference.
pub(crate) async fn stop(farm: Arc<FarmProcess>) -> Result<(), BenchError> {
    match Arc::try_unwrap(farm) {
        Ok(farm) => farm.stop().await,
        Err(_) => Ok(()),
    }
}

/// The exponent of growth: the slope of a linear fit with logarithmic axes. 1 is linear; less is better.
fn growth_exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, cost)| (size.ln(), cost.ln())).collect();
    let count = logs.len() as f64;
    let mean = |coordinate: fn(&(f64, f64)) -> f64| logs.iter().map(coordinate).sum::<f64>() / count;
    let (size, cost) = (mean(|point| point.0), mean(|point| point.1));
    let rise: f64 = logs.iter().map(|point| (point.0 - size) * (point.1 - cost)).sum();
    let run: f64 = logs.iter().map(|point| (point.0 - size).powi(2)).sum();
    rise / run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_exponent_matches_known_curves() {
        let curve = |exponent: i32| -> Vec<(f64, f64)> {
            [4.0, 16.0, 64.0].iter().map(|size: &f64| (*size, 3.0 * size.powi(exponent))).collect()
        };
        assert!((growth_exponent(&curve(1)) - 1.0).abs() < 1e-9);
        assert!((growth_exponent(&curve(2)) - 2.0).abs() < 1e-9);
        assert!(growth_exponent(&[(4.0, 7.0), (16.0, 7.0)]).abs() < 1e-9, "constant cost");
    }
}
