//! The parts of the suite: which drivers run side by side, which figures come of them, which targets they have.

use std::{fmt, str::FromStr, sync::Arc};

use practice::Sites;
use proto::InteractionMode;

use crate::{
    BenchError, Better, Options, Report,
    bare::Bare,
    farm::{Dialect, Farm},
    master,
    meter::{Kind, Tree},
    stats::percentile,
    window::{Crew, Driver, Window},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Steps a second with all instances at work: bare, plain calls, `/step`, set-of-marks.
    Steps,
    /// One instance alone: how long a step takes.
    One,
    /// Leasing and giving back under load.
    Leases,
    /// Memory for each further instance.
    Memory,
    /// From the start of the program until all instances are up.
    Start,
    /// Very many instances on one machine.
    Many,
    /// What one, four, sixteen … instances cost: whether anything grows faster than they do.
    Growth,
    /// What a master costs, in front of nodes without browsers.
    Master,
}

impl Section {
    pub const ALL: [Self; 8] = [
        Self::Steps,
        Self::One,
        Self::Leases,
        Self::Memory,
        Self::Start,
        Self::Many,
        Self::Growth,
        Self::Master,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::One => "one",
            Self::Leases => "leases",
            Self::Memory => "memory",
            Self::Start => "start",
            Self::Many => "many",
            Self::Growth => "growth",
            Self::Master => "master",
        }
    }

    pub(crate) async fn measure(
        self,
        options: &Options,
        report: &mut Report,
        tell: &dyn Fn(&str),
    ) -> Result<(), BenchError> {
        let sites = Sites::start(([127, 0, 0, 1], 0).into()).map_err(|error| BenchError::Start {
            what: "the practice sites".into(),
            why: error.to_string(),
        })?;
        let bench = Bench { options, sites: Arc::new(sites), tell };
        match self {
            Self::Steps => bench.steps(report).await,
            Self::One => bench.one(report).await,
            Self::Leases => bench.leases(report).await,
            Self::Memory => bench.memory(report).await,
            Self::Start => bench.start(report).await,
            Self::Many => bench.many(report).await,
            Self::Growth => bench.growth(report).await,
            Self::Master => master::measure(options, report, tell).await,
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
            format!("there is no part {name:?}; there are: {}", names.join(", "))
        })
    }
}

pub(crate) struct Bench<'a> {
    pub(crate) options: &'a Options,
    pub(crate) sites: Arc<Sites>,
    pub(crate) tell: &'a dyn Fn(&str),
}

pub(crate) const COORDINATES: InteractionMode = InteractionMode::Coordinates;

impl Bench<'_> {
    pub(crate) async fn farm(&self, instances: usize) -> Result<Arc<Farm>, BenchError> {
        let options = self.options;
        Ok(Arc::new(Farm::start(&options.webgym, &options.executable.path, instances).await?))
    }

    /// The same load for each of them, in turns of a few seconds: what the machine does meanwhile befalls all alike. `None` is
    /// bare Chromium.
    async fn side_by_side(
        &self,
        instances: usize,
        whom: &[Option<(Dialect, InteractionMode)>],
    ) -> Result<Vec<Window>, BenchError> {
        const TURNS: usize = 4;
        let mut drivers = Vec::new();
        for who in whom {
            drivers.push(match who {
                Some((dialect, mode)) => Driver::Farm(self.farm(instances).await?, *dialect, *mode),
                None => Driver::Bare(Arc::new(Bare::start(&self.options.executable).await?)),
            });
        }
        let farms: Vec<u32> = drivers.iter().filter_map(Driver::pid).collect();
        let tree = |driver: &Driver| driver.pid().map_or_else(|| Tree::own(farms.clone()), Tree::of);
        let mut crews: Vec<Crew> =
            drivers.iter().map(|driver| Crew::new(driver, instances, tree(driver), &self.sites)).collect();
        for crew in &mut crews {
            crew.warm_up(self.warm_up()).await?;
        }
        for turn in 0..TURNS {
            // Nobody always comes first.
            for place in 0..crews.len() {
                let crew = (place + turn) % crews.len();
                crews[crew].slice(self.options.seconds / TURNS as f64).await?;
            }
        }
        let mut windows = Vec::new();
        for crew in crews {
            windows.push(crew.finish().await);
        }
        for driver in drivers {
            driver.stop().await?;
        }
        Ok(windows)
    }

    fn warm_up(&self) -> f64 {
        (self.options.seconds / 3.0).max(2.0)
    }

    /// A farm alone, some of its instances at work without a pause.
    async fn farm_window(&self, instances: usize, workers: usize) -> Result<Window, BenchError> {
        let farm = self.farm(instances).await?;
        let tree = Tree::of(farm.pid);
        let driver = Driver::Farm(farm, Dialect::OneTrip, COORDINATES);
        let mut crew = Crew::new(&driver, workers, tree, &self.sites);
        crew.warm_up(self.warm_up()).await?;
        crew.slice(self.options.seconds).await?;
        let window = crew.finish().await;
        driver.stop().await?;
        Ok(window)
    }

    async fn steps(&self, report: &mut Report) -> Result<(), BenchError> {
        let count = self.options.instances;
        for repeat in 1..=self.options.repeats {
            (self.tell)(&format!("steps with {count} instances, {repeat} of {}", self.options.repeats));
            let whom = [
                ("bare", None),
                ("plain calls", Some((Dialect::Plain, COORDINATES))),
                ("/step", Some((Dialect::OneTrip, COORDINATES))),
                ("/step, set-of-marks", Some((Dialect::OneTrip, InteractionMode::SetOfMarks))),
            ];
            let windows = self.side_by_side(count, &whom.map(|(_, who)| who)).await?;
            for ((name, _), window) in whom.iter().zip(&windows) {
                note_steps(report, name, window);
            }
        }
        let higher = Better::Higher;
        report.ratio("plain calls ÷ bare", higher, "steps a second, plain calls", "steps a second, bare");
        report.ratio("/step ÷ bare", higher, "steps a second, /step", "steps a second, bare");
        report.ratio(
            "set-of-marks ÷ coordinates",
            higher,
            "steps a second, /step, set-of-marks",
            "steps a second, /step",
        );
        report.ratio("CPU a step, /step ÷ bare", Better::Lower, "CPU a step, /step", "CPU a step, bare");
        report.aim("plain calls ÷ bare", 0.85);
        report.aim("/step ÷ bare", 1.0);
        report.aim("set-of-marks ÷ coordinates", 0.8);
        report.aim("CPU a step, /step ÷ bare", 1.08);
        report.aim(&format!("CPU a step of {}, /step", Kind::Ours.name()), 5.0);
        report.aim("memory under load, /step", 768.0);
        Ok(())
    }

    async fn one(&self, report: &mut Report) -> Result<(), BenchError> {
        for repeat in 1..=self.options.repeats {
            (self.tell)(&format!("one instance alone, {repeat} of {}", self.options.repeats));
            let windows = self.side_by_side(1, &[None, Some((Dialect::OneTrip, COORDINATES))]).await?;
            for (name, window) in ["bare", "/step"].iter().zip(&windows) {
                let p50 = percentile(&window.times.step, 0.5);
                report.add(&format!("step p50 alone, {name}"), "ms", Better::Lower, p50);
            }
        }
        report.ratio(
            "step p50 alone, /step ÷ bare",
            Better::Lower,
            "step p50 alone, /step",
            "step p50 alone, bare",
        );
        report.aim("step p50 alone, /step ÷ bare", 1.1);
        Ok(())
    }

    async fn leases(&self, report: &mut Report) -> Result<(), BenchError> {
        let count = self.options.instances;
        let free = (count / 4).max(1);
        for repeat in 1..=self.options.repeats {
            (self.tell)(&format!("leases under load, {repeat} of {}", self.options.repeats));
            let some_free = self.farm_window(count, count - free).await?;
            let none_free = self.farm_window(count, count).await?;
            let p99 = |sample: &[f64]| percentile(sample, 0.99);
            let lower = Better::Lower;
            report.add("/get p99 with free slots", "ms", lower, p99(&some_free.times.get));
            report.add("/reset answer p99", "ms", lower, p99(&some_free.times.reset));
            report.add("slot usable again p99, all slots in use", "ms", lower, p99(&none_free.times.again));
        }
        report.aim("/get p99 with free slots", 20.0);
        report.aim("/reset answer p99", 30.0);
        report.aim("slot usable again p99, all slots in use", 600.0);
        Ok(())
    }
}

fn note_steps(report: &mut Report, name: &str, window: &Window) {
    let per_second = format!("steps a second, {name}");
    report.add(&per_second, "1/s", Better::Higher, window.steps_per_second());
    report.add(&format!("step p50, {name}"), "ms", Better::Lower, percentile(&window.times.step, 0.5));
    report.add(&format!("CPU a step, {name}"), "s", Better::Lower, window.cpu_a_step());
    report.add(&format!("memory under load, {name}"), "MiB", Better::Lower, window.memory.total());
    for kind in Kind::ALL {
        let ms = window.cpu_a_step_of(kind) * 1000.0;
        report.add(&format!("CPU a step of {}, {name}", kind.name()), "ms", Better::Neither, ms);
    }
    for kind in Kind::ALL {
        let memory = window.memory.of(kind);
        report.add(&format!("memory of {}, {name}", kind.name()), "MiB", Better::Neither, memory);
    }
    let kib = window.times.bytes as f64 / 1024.0 / window.times.step.len().max(1) as f64;
    report.add(&format!("picture, {name}"), "KiB", Better::Neither, kib);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_name() {
        for section in Section::ALL {
            assert_eq!(section.to_string().parse::<Section>(), Ok(section));
        }
        let error = "stesp".parse::<Section>().unwrap_err();
        assert!(error.contains("stesp") && error.contains("steps, one"), "{error}");
    }
}
