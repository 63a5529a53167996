//! Writes save paths for the tests of merging and of `store::trajectories`.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    reason = "shared by several test programs, which use different parts of it"
)]

use proto::trajectory::Trajectory;
use store::durable::Existing;
use store::pt::{PtFile, PtWriter};
use store::{IterationId, Journal, RunMetadata, RunRecord, SavePath, Split};

use crate::sample;

pub const SPLIT: Split = Split::Test;

pub fn id() -> IterationId {
    IterationId::new(SPLIT, 0)
}

pub fn temporary_save_path() -> (tempfile::TempDir, SavePath) {
    let directory = tempfile::tempdir().unwrap();
    let save_path = SavePath::new(directory.path());
    save_path.create_directories(SPLIT).unwrap();
    (directory, save_path)
}

/// Writes a `.pt` file of trajectories and their screenshots.
pub fn write(save_path: &SavePath, id: IterationId, indices: impl IntoIterator<Item = i64>) {
    let mut writer = PtWriter::create(&save_path.iteration_file(id)).unwrap();
    for index in indices {
        let trajectory = sample::trajectory(index, 3);
        write_screenshots(save_path, &trajectory);
        writer.push(&trajectory).unwrap();
    }
    let metadata = RunMetadata { server_size: Some(8), seed: Some(3), ..RunMetadata::default() };
    writer.finish(&metadata, Existing::Refuse).unwrap();
}

pub fn write_screenshots(save_path: &SavePath, trajectory: &Trajectory) {
    for step in &trajectory.steps {
        let path = save_path.resolve_image(&step.observation.image_path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"image").unwrap();
    }
}

pub fn begin_journal(save_path: &SavePath, id: IterationId) -> Journal {
    let run = RunRecord {
        split: id.split,
        iteration: id.iteration,
        rank: id.rank,
        seed: 0,
        config_digest: String::new(),
        tasks: 4,
        metadata: RunMetadata::default(),
    };
    Journal::create(&save_path.journal(id), &run).unwrap()
}

pub fn indices(save_path: &SavePath) -> Vec<i64> {
    let file = PtFile::open(&save_path.iteration_file(id())).unwrap();
    file.trajectories().unwrap().map(|trajectory| trajectory.unwrap().task.trajectory_index).collect()
}
