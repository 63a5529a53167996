//! The sections of the benchmark: which drivers are compared, which metrics are reported, and their targets.

use std::{fmt, str::FromStr, sync::Arc};

use practice::Sites;
use proto::{ImageFormat, InteractionMode};

use crate::{
    BenchError, Better, Options, Report,
    bare::BareBrowser,
    farm_process::{FarmProcess, StepCalls},
    master,
    process_tree::{Kind, ProcessTree},
    stats::percentile,
    workers::{Driver, Measurement, WorkerGroup},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Steps per second with all instances busy: bare Chromium, separate calls, `/step`, set-of-marks.
    Steps,
    /// Duration of a step with a single instance.
    One,
    /// Three and six times as many busy instances.
    Load,
    /// Acquiring and releasing leases under load.
    Leases,
    /// Memory of each additional instance.
    Memory,
    /// Time from the start of the process until all instances are ready.
    Start,
    /// 256 instances on one machine.
    Many,
    /// Cost of 1, 4, 16, … instances, and whether it grows faster than their number.
    Growth,
    /// Cost of a master in front of simulated nodes.
    Master,
    /// Recording and replaying network traffic.
    Network,
}

impl Section {
    pub const ALL: [Self; 10] = [
        Self::Steps,
        Self::One,
        Self::Load,
        Self::Leases,
        Self::Memory,
        Self::Start,
        Self::Many,
        Self::Growth,
        Self::Master,
        Self::Network,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::One => "one",
            Self::Load => "load",
            Self::Leases => "leases",
            Self::Memory => "memory",
            Self::Start => "start",
            Self::Many => "many",
            Self::Growth => "growth",
            Self::Master => "master",
            Self::Network => "network",
        }
    }

    pub(crate) async fn measure(
        self,
        options: &Options,
        report: &mut Report,
        progress: &dyn Fn(&str),
    ) -> Result<(), BenchError> {
        let sites = Sites::start(([127, 0, 0, 1], 0).into()).map_err(|error| BenchError::Start {
            what: "the practice sites".into(),
            reason: error.to_string(),
        })?;
        let bench = Bench { options, sites: Arc::new(sites), progress };
        match self {
            Self::Steps => bench.steps(report).await,
            Self::One => bench.one(report).await,
            Self::Load => bench.load(report).await,
            Self::Leases => bench.leases(report).await,
            Self::Memory => bench.memory(report).await,
            Self::Start => bench.start_up(report).await,
            Self::Many => bench.many(report).await,
            Self::Growth => bench.growth(report).await,
            Self::Master => master::measure(options, report, progress).await,
            Self::Network => bench.network(report).await,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Section {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|section| section.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|section| section.name()).collect();
            format!("there is no part {name:?}; the parts are: {}", names.join(", "))
        })
    }
}

pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) sites: Arc<Sites>,
    pub(crate) progress: &'a dyn Fn(&str),
}

/// What a section compares.
#[derive(Clone, Copy)]
enum Subject {
    /// Chromium without a farm, with or without the flags of the farm that only make pages cheaper.
    Bare {
        tuned: bool,
    },
    Farm(StepCalls, InteractionMode),
}

impl Subject {
    const BARE: Self = Self::Bare { tuned: false };
}

pub(crate) const COORDINATES: InteractionMode = InteractionMode::Coordinates;

impl Bench<'_> {
    pub(crate) async fn start_farm(&self, instances: usize) -> Result<Arc<FarmProcess>, BenchError> {
        let options = self.options;
        Ok(Arc::new(FarmProcess::start(&options.webgym, &options.executable.path, instances).await?))
    }

    /// Runs the same workload on each driver, in turns of a few seconds, so that other activity on the machine
    /// affects all of them equally.
    async fn measure_in_turns(
        &self,
        instances: usize,
        subjects: &[Subject],
    ) -> Result<Vec<Measurement>, BenchError> {
        let mut drivers = Vec::new();
        for subject in subjects {
            let driver = match *subject {
                Subject::Farm(calls, mode) => Driver::Farm(self.start_farm(instances).await?, calls, mode),
                Subject::Bare { tuned } => {
                    Driver::Bare(Arc::new(BareBrowser::start(&self.options.executable, tuned).await?))
                }
            };
            drivers.push((driver, instances));
        }
        self.run_in_turns(drivers).await
    }

    /// Measures drivers that are already started, each with its number of workers, and stops them.
    pub(crate) async fn run_in_turns(
        &self,
        drivers: Vec<(Driver, usize)>,
    ) -> Result<Vec<Measurement>, BenchError> {
        const TURNS: usize = 4;
        let mut groups: Vec<WorkerGroup> = drivers
            .iter()
            .map(|(driver, workers)| {
                let tree = driver.process_tree(drivers.iter().map(|(driver, _)| driver));
                WorkerGroup::new(driver, *workers, tree, &self.sites)
            })
            .collect();
        for group in &mut groups {
            group.warm_up(self.warm_up_seconds()).await?;
        }
        for turn in 0..TURNS {
            // Rotate the order, so that no group always runs first.
            for position in 0..groups.len() {
                let group = (position + turn) % groups.len();
                groups[group].run_turn(self.options.seconds / TURNS as f64).await?;
            }
        }
        let mut measurements = Vec::new();
        for group in groups {
            measurements.push(group.finish().await);
        }
        for (driver, _) in drivers {
            driver.stop().await?;
        }
        Ok(measurements)
    }

    fn warm_up_seconds(&self) -> f64 {
        (self.options.seconds / 3.0).max(2.0)
    }

    /// Measures a farm with the given number of instances and workers.
    async fn measure_farm(&self, instances: usize, workers: usize) -> Result<Measurement, BenchError> {
        let farm = self.start_farm(instances).await?;
        let tree = ProcessTree::of(farm.pid);
        let driver = Driver::Farm(farm, StepCalls::STEP, COORDINATES);
        let mut group = WorkerGroup::new(&driver, workers, tree, &self.sites);
        group.warm_up(self.warm_up_seconds()).await?;
        group.run_turn(self.options.seconds).await?;
        let measurement = group.finish().await;
        driver.stop().await?;
        Ok(measurement)
    }

    async fn steps(&self, report: &mut Report) -> Result<(), BenchError> {
        let count = self.options.instances;
        for repeat in 1..=self.options.repeats {
            (self.progress)(&format!("steps with {count} instances, {repeat} of {}", self.options.repeats));
            let subjects = [
                ("bare", Subject::BARE),
                ("bare with our flags", Subject::Bare { tuned: true }),
                ("plain calls", Subject::Farm(StepCalls::Separate, COORDINATES)),
                ("/step", Subject::Farm(StepCalls::STEP, COORDINATES)),
                ("/step, JPEG", Subject::Farm(StepCalls::Combined(ImageFormat::Jpeg), COORDINATES)),
                ("/step, set-of-marks", Subject::Farm(StepCalls::STEP, InteractionMode::SetOfMarks)),
            ];
            let measurements = self.measure_in_turns(count, &subjects.map(|(_, subject)| subject)).await?;
            for ((name, _), measurement) in subjects.iter().zip(&measurements) {
                add_steps(report, name, measurement);
            }
        }
        let speed = |name: &str| format!("steps per second, {name}");
        for name in ["plain calls", "/step", "/step, JPEG", "bare with our flags"] {
            report.add_ratio(&format!("{name} ÷ bare"), Better::Higher, &speed(name), &speed("bare"));
        }
        let (marks, plain) = (speed("/step, set-of-marks"), speed("/step"));
        report.add_ratio("set-of-marks ÷ coordinates", Better::Higher, &marks, &plain);
        report.add_ratio(
            "CPU per step, /step ÷ bare",
            Better::Lower,
            "CPU per step, /step",
            "CPU per step, bare",
        );
        report.set_target("plain calls ÷ bare", 0.92);
        report.set_target("/step ÷ bare", 1.15);
        report.set_target("/step, JPEG ÷ bare", 1.15);
        report.set_target("set-of-marks ÷ coordinates", 0.8);
        report.set_target("CPU per step, /step ÷ bare", 1.0);
        report.set_target(&format!("CPU per step of {}, /step", Kind::Ours.name()), 5.0);
        report.set_target("memory under load, /step", 768.0);
        Ok(())
    }

    /// Compares the instances that fill this machine with three and six times as many, all busy.
    async fn load(&self, report: &mut Report) -> Result<(), BenchError> {
        let counts = [1, 3, 6].map(|factor| factor * self.options.instances);
        let [count, .., most] = counts;
        let speed = |count: usize| format!("steps per second, {count} busy instances");
        for repeat in 1..=self.options.repeats {
            (self.progress)(&format!("up to {most} busy instances, {repeat} of {}", self.options.repeats));
            let mut drivers = Vec::new();
            for count in counts {
                let farm = self.start_farm(count).await?;
                drivers.push((Driver::Farm(farm, StepCalls::STEP, COORDINATES), count));
            }
            for (count, measurement) in counts.iter().zip(self.run_in_turns(drivers).await?) {
                let quantile = |share| percentile(&measurement.latencies.step, share);
                let busy = format!("{count} busy instances");
                report.add(&speed(*count), "1/s", Better::Higher, measurement.steps_per_second());
                report.add(&format!("step p50, {busy}"), "ms", Better::Lower, quantile(0.5));
                report.add(&format!("step p99, {busy}"), "ms", Better::Lower, quantile(0.99));
                report.add(
                    &format!("step p99 ÷ p50, {busy}"),
                    "",
                    Better::Lower,
                    quantile(0.99) / quantile(0.5).max(f64::EPSILON),
                );
            }
        }
        let ratio = format!("{most} ÷ {count} busy instances");
        report.add_ratio(&ratio, Better::Higher, &speed(most), &speed(count));
        report.set_target(&ratio, 1.0);
        report.set_target(&format!("step p99 ÷ p50, {most} busy instances"), 3.0);
        Ok(())
    }

    async fn one(&self, report: &mut Report) -> Result<(), BenchError> {
        for repeat in 1..=self.options.repeats {
            (self.progress)(&format!("a single instance, {repeat} of {}", self.options.repeats));
            let measurements = self
                .measure_in_turns(1, &[Subject::BARE, Subject::Farm(StepCalls::STEP, COORDINATES)])
                .await?;
            for (name, measurement) in ["bare", "/step"].iter().zip(&measurements) {
                let p50 = percentile(&measurement.latencies.step, 0.5);
                report.add(&format!("step p50 alone, {name}"), "ms", Better::Lower, p50);
            }
        }
        report.add_ratio(
            "step p50 alone, /step ÷ bare",
            Better::Lower,
            "step p50 alone, /step",
            "step p50 alone, bare",
        );
        report.set_target("step p50 alone, /step ÷ bare", 1.1);
        Ok(())
    }

    async fn leases(&self, report: &mut Report) -> Result<(), BenchError> {
        let count = self.options.instances;
        let free = (count / 4).max(1);
        for repeat in 1..=self.options.repeats {
            (self.progress)(&format!("leases under load, {repeat} of {}", self.options.repeats));
            let some_free = self.measure_farm(count, count - free).await?;
            let none_free = self.measure_farm(count, count).await?;
            let p99 = |sample: &[f64]| percentile(sample, 0.99);
            let lower = Better::Lower;
            report.add("/get p99 with free slots", "ms", lower, p99(&some_free.latencies.acquire));
            report.add("/reset response p99", "ms", lower, p99(&some_free.latencies.release));
            report.add(
                "slot usable again p99, all slots in use",
                "ms",
                lower,
                p99(&none_free.latencies.turnaround),
            );
        }
        report.set_target("/get p99 with free slots", 20.0);
        report.set_target("/reset response p99", 30.0);
        report.set_target("slot usable again p99, all slots in use", 600.0);
        Ok(())
    }
}

pub(crate) fn add_steps(report: &mut Report, name: &str, measurement: &Measurement) {
    let per_second = format!("steps per second, {name}");
    report.add(&per_second, "1/s", Better::Higher, measurement.steps_per_second());
    report.add(
        &format!("step p50, {name}"),
        "ms",
        Better::Lower,
        percentile(&measurement.latencies.step, 0.5),
    );
    report.add(&format!("CPU per step, {name}"), "s", Better::Lower, measurement.cpu_per_step());
    report.add(&format!("memory under load, {name}"), "MiB", Better::Lower, measurement.memory.total());
    for kind in Kind::ALL {
        let ms = measurement.cpu_per_step_of(kind) * 1000.0;
        report.add(&format!("CPU per step of {}, {name}", kind.name()), "ms", Better::Neither, ms);
    }
    for kind in Kind::ALL {
        let memory = measurement.memory.of(kind);
        report.add(&format!("memory of {}, {name}", kind.name()), "MiB", Better::Neither, memory);
    }
    let kib = measurement.latencies.bytes as f64 / 1024.0 / measurement.latencies.step.len().max(1) as f64;
    report.add(&format!("screenshot, {name}"), "KiB", Better::Neither, kib);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_parse_by_name() {
        for section in Section::ALL {
            assert_eq!(section.to_string().parse::<Section>(), Ok(section));
        }
        let error = "stesp".parse::<Section>().unwrap_err();
        assert!(error.contains("stesp") && error.contains("steps, one"), "{error}");
    }
}
