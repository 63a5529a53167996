//! The cost of recording network traffic, and the speed of replays: the same farm live, recording and replaying, in turns.

use std::sync::Arc;

use proto::{InteractionMode, SessionOptions, network::NetworkOptions};

use crate::{
    BenchError, Better, Report,
    farm_process::{FarmProcess, StepCalls},
    process_tree::Kind,
    sections::{Bench, COORDINATES, add_steps},
    workers::Driver,
    workload,
};

const ARCHIVE: &str = "bench";
/// The pages of an episode rotate with its number; this many are all of them.
const ROTATIONS: usize = 6;

fn session(network: NetworkOptions) -> SessionOptions {
    SessionOptions { network: Some(network), ..SessionOptions::default() }
}

impl Bench<'_> {
    pub(crate) async fn network(&self, report: &mut Report) -> Result<(), BenchError> {
        let (count, repeats) = (self.options.instances, self.options.repeats);
        for repeat in 1..=repeats {
            (self.progress)(&format!(
                "recording and replaying with {count} instances, {repeat} of {repeats}"
            ));
            let folder = tempfile::tempdir().map_err(|error| BenchError::Farm(error.to_string()))?;
            let record = NetworkOptions { record: Some(ARCHIVE.into()), ..NetworkOptions::default() };
            self.record_workload(folder.path(), &record).await?;
            let replay = NetworkOptions { replay: Some(ARCHIVE.into()), ..NetworkOptions::default() };
            let elsewhere =
                NetworkOptions { record: Some("bench-record".into()), ..NetworkOptions::default() };
            let kinds = [
                ("live", SessionOptions::default()),
                ("recording", session(elsewhere)),
                ("replaying", session(replay)),
            ];
            let mut drivers = Vec::new();
            for (_, session) in &kinds {
                let farm = self.start_farm_with_archives(folder.path(), count, session.clone()).await?;
                drivers.push((Driver::Farm(Arc::new(farm), StepCalls::STEP, COORDINATES), count));
            }
            let measurements = self.run_in_turns(drivers).await?;
            for ((name, _), measurement) in kinds.iter().zip(&measurements) {
                add_steps(report, name, measurement);
            }
        }
        let higher = Better::Higher;
        for name in ["recording", "replaying"] {
            let metric = format!("{name} ÷ live");
            report.add_ratio(&metric, higher, &format!("steps per second, {name}"), "steps per second, live");
            let cpu = format!("CPU per step, {name} ÷ live");
            report.add_ratio(&cpu, Better::Lower, &format!("CPU per step, {name}"), "CPU per step, live");
        }
        report.set_target("recording ÷ live", 0.85);
        report.set_target("replaying ÷ live", 0.95);
        report.set_target(&format!("CPU per step of {}, replaying", Kind::Ours.name()), 8.0);
        Ok(())
    }

    async fn start_farm_with_archives(
        &self,
        archives: &std::path::Path,
        instances: usize,
        session: SessionOptions,
    ) -> Result<FarmProcess, BenchError> {
        let options = self.options;
        let archives = archives.display().to_string();
        let arguments = ["--archives", archives.as_str()];
        let farm =
            FarmProcess::start_with(&options.webgym, &options.executable.path, instances, &arguments).await?;
        Ok(farm.with_session(session))
    }

    /// Records every episode of the workload once.
    async fn record_workload(
        &self,
        archives: &std::path::Path,
        record: &NetworkOptions,
    ) -> Result<(), BenchError> {
        let farm = self.start_farm_with_archives(archives, 1, session(record.clone())).await?;
        for seed in 0..ROTATIONS {
            let lease = farm.acquire().await?;
            for command in workload::episode(&self.sites, seed) {
                farm.step(&lease, &command, StepCalls::STEP, InteractionMode::Coordinates).await?;
            }
            farm.release(&lease).await?;
        }
        farm.stop().await
    }
}
