//! What instances cost by being there: memory, start-up, idleness, and how all of that grows with their number.

use std::{sync::Arc, time::Duration};

use proto::Command;
use tokio::task::JoinSet;

use crate::{
    BenchError, Better, Report,
    farm::{Dialect, Farm},
    meter::Tree,
    sections::{Bench, COORDINATES},
};

/// For about a minute after it was opened a page tidies up its memory by itself; that is not idleness yet.
const HOUSEKEEPING: Duration = Duration::from_secs(75);

impl Bench<'_> {
    pub(crate) async fn memory(&self, report: &mut Report) -> Result<(), BenchError> {
        (self.tell)("memory of further instances");
        let few = self.memory_of(4).await?;
        let many = self.memory_of(12).await?;
        report.add(
            "memory of each further instance, shop page open",
            "MiB",
            Better::Lower,
            (many - few) / 8.0,
        );
        report.aim("memory of each further instance, shop page open", 48.0);
        Ok(())
    }

    async fn memory_of(&self, instances: usize) -> Result<f64, BenchError> {
        let farm = self.farm(instances).await?;
        self.open_everywhere(&farm, instances).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let memory = Tree::of(farm.pid).memory().total();
        stop(farm).await?;
        Ok(memory)
    }

    /// Leases every instance and opens the shop in it, a few at a time. Answers how long that took.
    async fn open_everywhere(&self, farm: &Arc<Farm>, instances: usize) -> Result<f64, BenchError> {
        const AT_ONCE: usize = 16;
        let begun = std::time::Instant::now();
        let (mut opening, mut begun_with) = (JoinSet::new(), 0);
        loop {
            while begun_with < instances && opening.len() < AT_ONCE {
                let (farm, url) = (Arc::clone(farm), self.sites.url("/shop/"));
                opening.spawn(async move {
                    let lease = farm.get().await?;
                    let visit = Command::VisitPage { url };
                    let bytes = farm.step(&lease, &visit, Dialect::OneTrip, COORDINATES).await?;
                    if bytes == 0 { Err(BenchError::Farm("a step without a picture".into())) } else { Ok(()) }
                });
                begun_with += 1;
            }
            match opening.join_next().await {
                Some(opened) => opened.map_err(|error| BenchError::Farm(error.to_string()))??,
                None => return Ok(begun.elapsed().as_secs_f64()),
            }
        }
    }

    pub(crate) async fn start(&self, report: &mut Report) -> Result<(), BenchError> {
        for (instances, target) in [(8, 2.0), (32, 6.0), (128, 20.0)] {
            let name = format!("start until ready, {instances} instances");
            for repeat in 1..=self.options.repeats {
                (self.tell)(&format!("start of {instances} instances, {repeat} of {}", self.options.repeats));
                let farm = self.farm(instances).await?;
                report.add(&name, "s", Better::Lower, farm.ready_after.as_secs_f64());
                stop(farm).await?;
            }
            report.aim(&name, target);
        }
        Ok(())
    }

    pub(crate) async fn many(&self, report: &mut Report) -> Result<(), BenchError> {
        const MANY: usize = 256;
        (self.tell)("256 instances, a page open in each");
        let farm = self.farm(MANY).await?;
        let opened = self.open_everywhere(&farm, MANY).await?;
        report.add("256 instances: a page opened in each after", "s", Better::Neither, opened);
        report.add("256 instances: memory", "MiB", Better::Lower, Tree::of(farm.pid).memory().total());
        (self.tell)("256 instances, left alone");
        tokio::time::sleep(HOUSEKEEPING).await;
        let (cpu, seconds) = (Tree::of(farm.pid).cpu(), self.options.seconds.max(5.0));
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        let idle = Tree::of(farm.pid).cpu().since(cpu).total() / seconds * 100.0;
        report.add("256 instances: idle CPU, of one core", "%", Better::Lower, idle);
        report.aim("256 instances: idle CPU, of one core", 5.0);
        stop(farm).await
    }

    pub(crate) async fn growth(&self, report: &mut Report) -> Result<(), BenchError> {
        const SIZES: [usize; 5] = [1, 4, 16, 64, 256];
        const COSTS: [&str; 3] =
            ["start until ready", "memory, a page open in each", "CPU to open a page in each"];
        let mut costs = Vec::new();
        for instances in SIZES {
            (self.tell)(&format!("growth: {instances} instances"));
            let farm = self.farm(instances).await?;
            let cpu = Tree::of(farm.pid).cpu();
            self.open_everywhere(&farm, instances).await?;
            let values = [
                farm.ready_after.as_secs_f64(),
                Tree::of(farm.pid).memory().total(),
                Tree::of(farm.pid).cpu().since(cpu).total(),
            ];
            stop(farm).await?;
            for ((cost, unit), value) in COSTS.into_iter().zip(["s", "MiB", "s"]).zip(values) {
                report.add(&format!("{cost}: {instances} instances"), unit, Better::Neither, value);
            }
            costs.push((instances as f64, values));
        }
        for (place, cost) in COSTS.into_iter().enumerate() {
            let points: Vec<(f64, f64)> = costs.iter().skip(1).map(|(size, of)| (*size, of[place])).collect();
            let name = format!("{cost}: grows with the instances to the power of");
            report.add(&name, "", Better::Lower, power(&points));
            // What is measured once on a shared machine may be a twentieth off.
            report.aim(&name, 1.05);
        }
        Ok(())
    }
}

/// Ends a farm, once nobody else drives it.
pub(crate) async fn stop(farm: Arc<Farm>) -> Result<(), BenchError> {
    match Arc::try_unwrap(farm) {
        Ok(farm) => farm.stop().await,
        Err(_) => Ok(()),
    }
}

/// The slope of the straight line through the points when both axes are logarithmic: 1 is linear, less is better.
fn power(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, cost)| (size.ln(), cost.ln())).collect();
    let count = logs.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| logs.iter().map(pick).sum::<f64>() / count;
    let (size, cost) = (mean(|point| point.0), mean(|point| point.1));
    let rise: f64 = logs.iter().map(|point| (point.0 - size) * (point.1 - cost)).sum();
    let run: f64 = logs.iter().map(|point| (point.0 - size).powi(2)).sum();
    rise / run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_and_quadratic_growth_are_told_apart() {
        let grown = |exponent: i32| -> Vec<(f64, f64)> {
            [4.0, 16.0, 64.0].iter().map(|size: &f64| (*size, 3.0 * size.powi(exponent))).collect()
        };
        assert!((power(&grown(1)) - 1.0).abs() < 1e-9);
        assert!((power(&grown(2)) - 2.0).abs() < 1e-9);
        assert!(power(&[(4.0, 7.0), (16.0, 7.0)]).abs() < 1e-9, "constant");
    }
}
