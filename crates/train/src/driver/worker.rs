//! The part of one rank in each phase. Every phase can be repeated: it first looks whether its result is there already.

use std::path::{Path, PathBuf};
use std::time::Duration;

use store::loop_state::{IterationState, Phase};
use store::{IterationId, SavePath, Split};

use super::{LoopError, LoopOptions, PhaseError};
use crate::checkpoint::{self, Checkpoints};
use crate::command::Program;
use crate::config::{LoopConfig, TrainRanks, seconds};
use crate::launcher::{Launcher, Limits};
use crate::lock::LoopLock;
use crate::original;
use crate::phases::{self, EXPORT_REPORT, Programs};
use crate::ranks::{Job, Ranks};
use crate::server::{ModelServer, ServeError, Wanted};

/// How long a stopped collector may take to save its episodes.
const COLLECT_GRACE: Duration = Duration::from_secs(150);
const EXPORT_GRACE: Duration = Duration::from_secs(10);

/// The result of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// With a remark for the record.
    Done(Option<String>),
    /// There is nothing to train on, so the iteration ends here.
    NoData(String),
}

pub(super) struct Worker {
    pub(super) config: LoopConfig,
    pub(super) save_path: SavePath,
    pub(super) checkpoints: Checkpoints,
    pub(super) launcher: Launcher,
    pub(super) ranks: Ranks,
    pub(super) server: ModelServer,
    pub(super) resume: bool,
    /// The job that other ranks must do together with this one.
    pub(super) awaited: Option<Job>,
    _lock: LoopLock,
}

impl Worker {
    pub(super) async fn new(
        config: LoopConfig,
        save_path: SavePath,
        options: LoopOptions,
    ) -> Result<Self, LoopError> {
        let folder = save_path.loop_directory();
        let lock = LoopLock::acquire(&folder, options.rank.number).await?;
        // Descendants of a supervisor that is killed become ours, so that they can be ended.
        let own = rustix::process::Pid::from_raw(std::process::id().cast_signed());
        let _ = rustix::process::set_child_subreaper(own);
        let server =
            ModelServer::new(&config.serve, options.server_key.as_deref()).map_err(LoopError::Server)?;
        Ok(Self {
            checkpoints: Checkpoints::new(save_path.clone(), &config.checkpoint.name),
            launcher: Launcher {
                webgym: options.webgym,
                programs_lock: lock.programs.clone(),
                stop: options.stop,
            },
            ranks: Ranks::new(options.rank, save_path.clone(), seconds(config.rank_stale_after)),
            server,
            resume: options.resume,
            awaited: None,
            config,
            save_path,
            _lock: lock,
        })
    }

    fn programs<'a>(&'a self, iteration: u64, model: &'a str) -> Programs<'a> {
        let webgym = &self.launcher.webgym;
        let (config, save_path, rank) = (&self.config, &self.save_path, self.ranks.own);
        Programs { config, save_path, webgym, rank, iteration, model }
    }

    pub(super) fn log(&self, iteration: u64, phase: Phase) -> PathBuf {
        self.save_path.root().join(phases::log_name(iteration, phase, self.ranks.own))
    }

    /// Whether the other ranks have a part in a phase.
    pub(super) fn is_shared(&self, phase: Phase) -> bool {
        let is_shared = match phase {
            Phase::Serve | Phase::Collect | Phase::Evaluate => true,
            Phase::Train => self.config.train.ranks == TrainRanks::All,
            Phase::Export | Phase::Verify | Phase::Switch => false,
        };
        is_shared && self.ranks.own.count > 1
    }

    /// Does the part of this rank in a phase.
    pub(super) async fn execute(
        &mut self,
        phase: Phase,
        iteration: &IterationState,
    ) -> Result<Done, PhaseError> {
        self.check_disk()?;
        let number = iteration.number;
        match phase {
            Phase::Serve => self.serve(number, &iteration.model).await?,
            Phase::Collect => self.rollout(phase, Split::Train, iteration).await?,
            Phase::Evaluate => self.rollout(phase, Split::Test, iteration).await?,
            Phase::Export => return self.export(iteration).await,
            Phase::Train => self.train(iteration).await?,
            Phase::Verify => return self.verify(number).map(|remark| Done::Done(Some(remark))),
            Phase::Switch => self.checkpoints.switch_to(&self.checkpoints.published(number))?,
        }
        Ok(Done::Done(None))
    }

    fn check_disk(&self) -> Result<(), PhaseError> {
        let path = self.save_path.root();
        let disk =
            rustix::fs::statvfs(path).map_err(|error| PhaseError::io("examine", path)(error.into()))?;
        let free_gb = (disk.f_bavail as f64 * disk.f_frsize as f64) / 1e9;
        let min_gb = self.config.min_free_gb;
        if free_gb < min_gb {
            return Err(PhaseError::DiskFull { path: path.to_owned(), free_gb, min_gb });
        }
        Ok(())
    }

    pub(super) async fn serve(&mut self, iteration: u64, model: &str) -> Result<(), ServeError> {
        let programs = self.programs(iteration, model);
        let (program, reload, served) = (programs.serve(), programs.reload(), programs.served_model());
        let log = self.log(iteration, Phase::Serve);
        let wanted = Wanted { model, served: &served, program, reload, log: &log };
        self.server.serve(&wanted, &self.launcher).await
    }

    /// Collects a split. If the model server ends meanwhile, the collector is stopped at once.
    async fn rollout(
        &mut self,
        phase: Phase,
        split: Split,
        iteration: &IterationState,
    ) -> Result<(), PhaseError> {
        let number = iteration.number;
        let result = self.save_path.iteration_file(IterationId::new(split, number));
        if result.exists() {
            return Ok(());
        }
        let program = self.programs(number, &iteration.model).rollout(phase);
        let minutes = match phase {
            Phase::Evaluate => self.config.evaluate.rollout.timeout_minutes,
            _ => self.config.collect.timeout_minutes,
        };
        let limits = Limits { timeout: seconds(minutes * 60.0), grace: COLLECT_GRACE };
        let log = self.log(number, phase);
        let launcher = self.launcher.clone();
        // What the collector has saved is continued by the next attempt.
        let server_lost = async { PhaseError::ServerLost(self.server.ended().await) };
        launcher.run_unless(&program, &log, limits, server_lost).await?;
        if self.ranks.own.is_first() && !result.exists() {
            return Err(PhaseError::NotCollected(result));
        }
        Ok(())
    }

    async fn export(&mut self, iteration: &IterationState) -> Result<Done, PhaseError> {
        if self.config.serve.stop_while_training {
            self.server.stop().await;
        }
        let number = iteration.number;
        let data = phases::data_folder(&self.save_path, number);
        if !data.exists() {
            let partial = data.with_extension("partial");
            remove_folder(&partial)?;
            let program =
                self.programs(number, &iteration.model).export(&partial, &self.checkpoints.partial(number));
            let minutes = self.config.export.timeout_minutes;
            let limits = Limits { timeout: seconds(minutes * 60.0), grace: EXPORT_GRACE };
            self.launcher.run(&program, &self.log(number, Phase::Export), limits).await?;
            original::add_names(&partial).map_err(PhaseError::io("add links to", &partial))?;
            std::fs::rename(&partial, &data).map_err(PhaseError::io("rename", partial))?;
        }
        original::link_data(&self.save_path, &data).map_err(PhaseError::io("link", &data))?;
        Ok(exported(&data.join(EXPORT_REPORT)))
    }

    /// Trains. The output stays unfinished until it is verified.
    async fn train(&mut self, iteration: &IterationState) -> Result<(), PhaseError> {
        let (number, is_first) = (iteration.number, self.ranks.own.is_first());
        if self.config.serve.stop_while_training {
            self.server.stop().await;
        }
        let output = if is_first {
            if self.checkpoints.published(number).exists() {
                self.checkpoints.set_aside(number)?;
            }
            self.checkpoints.prepare_output(number, self.config.train.keep_partial)?
        } else {
            self.checkpoints.partial(number)
        };
        let data = phases::data_folder(&self.save_path, number);
        let Some(program) = self.programs(number, &iteration.model).train(&data, &output) else {
            return Ok(());
        };
        self.run_trainer(&program, number).await
    }

    async fn run_trainer(&self, program: &Program, number: u64) -> Result<(), PhaseError> {
        let train = &self.config.train;
        let limits =
            Limits { timeout: seconds(train.timeout_minutes * 60.0), grace: seconds(train.stop_seconds) };
        let log = self.log(number, Phase::Train);
        let report = self.launcher.run_unless(program, &log, limits, self.rank_failed()).await?;
        if !report.left_behind.is_empty() {
            tracing::warn!(
                "the trainer left processes behind, which were ended: {}",
                report.left_behind.join(", ")
            );
        }
        Ok(())
    }

    /// Returns when a rank cannot do its part: the own trainer would wait for it until its timeout.
    async fn rank_failed(&self) -> PhaseError {
        if let Some(job) = &self.awaited
            && let Err(error) = self.ranks.others_done(job).await
        {
            return error.into();
        }
        std::future::pending().await
    }

    /// Verifies the checkpoint and gives it its final name.
    fn verify(&self, number: u64) -> Result<String, PhaseError> {
        let published = self.checkpoints.published(number);
        if published.exists() {
            let remark = checkpoint::verify(&published)?;
            remove_folder(&self.checkpoints.partial(number))?;
            return Ok(remark);
        }
        let output = self.checkpoints.partial(number);
        let found = checkpoint::locate(&output, self.config.train.checkpoint())?;
        let remark = checkpoint::verify(&found)?;
        self.checkpoints.publish(&found, number)?;
        Ok(remark)
    }
}

/// Reads how much was exported.
fn exported(report: &Path) -> Done {
    let report: Option<serde_json::Value> =
        std::fs::read(report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let count =
        |key: &str| report.as_ref().and_then(|report| report.get(key)).and_then(serde_json::Value::as_u64);
    let (examples, read) = (count("train_examples"), count("trajectories_read"));
    match examples {
        Some(0) => Done::NoData(format!(
            "none of {} trajectories was selected for training; the model stays as it is",
            read.unwrap_or(0)
        )),
        Some(examples) => Done::Done(Some(format!("{examples} examples"))),
        None => Done::Done(None),
    }
}

fn remove_folder(path: &Path) -> Result<(), PhaseError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PhaseError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
