//! The files of screenshots: their format, and screenshots that equal the one before.

use std::{os::unix::fs::MetadataExt, time::Duration};

use proto::{
    ImageFormat, InteractionMode,
    trajectory::{Outcome, Trajectory},
};
use testkit::{
    sim_farm::{Call, Fault, SimFarmOptions},
    sim_model::ModelReply,
};

use crate::harness::{Harness, START, action_keys, clicks_then_answers, ending, observations, outcome, task};

fn file_names(trajectory: &Trajectory) -> Vec<&str> {
    let paths = trajectory.steps.iter().map(|step| step.observation.image_path.as_str());
    paths.map(|path| path.rsplit('/').next().unwrap()).collect()
}

fn inode(trajectory: &Trajectory, step: usize) -> u64 {
    std::fs::metadata(&trajectory.steps[step].observation.image_path).unwrap().ino()
}

#[tokio::test]
async fn jpeg_screenshots_are_saved_and_shown_to_the_policy() {
    for mode in [InteractionMode::Coordinates, InteractionMode::SetOfMarks] {
        let mut harness = Harness::faulty(|_| Fault::None, clicks_then_answers(2)).await;
        (harness.mode, harness.screenshot_format) = (mode, ImageFormat::Jpeg);
        let trajectory = harness.run_one(task(0)).await;
        assert_eq!(file_names(&trajectory), ["step_000.jpg", "step_001.jpg"]);
        if mode == InteractionMode::Coordinates {
            assert_eq!(observations(&trajectory), [format!("The page changed; you are at {START}.")]);
        }
        for step in &trajectory.steps {
            let path = &step.observation.image_path;
            assert_eq!(ImageFormat::of(&std::fs::read(path).unwrap()), Some(ImageFormat::Jpeg));
            assert!(step.response.raw_prompt.contains(&format!("file://{path}")), "{path}");
        }
    }
}

#[tokio::test]
async fn farm_without_step_sends_png_whatever_the_format() {
    let farm = SimFarmOptions { combined_calls: false, ..SimFarmOptions::default() };
    let mut harness = Harness::new(farm, clicks_then_answers(2)).await;
    harness.screenshot_format = ImageFormat::Jpeg;
    let trajectory = harness.run_one(task(0)).await;
    assert_eq!(file_names(&trajectory), ["step_000.png", "step_001.png"]);
}

#[tokio::test]
async fn equal_screenshots_share_a_file() {
    let script = |call: &Call| match call.nth {
        1 if call.runs("click_coords") => Fault::NoEffect,
        _ => Fault::None,
    };
    for format in [ImageFormat::Png, ImageFormat::Jpeg] {
        let mut harness = Harness::faulty(script, clicks_then_answers(4)).await;
        harness.screenshot_format = format;
        let trajectory = harness.run_one(task(0)).await;
        let same: Vec<_> = trajectory.steps.iter().map(|step| step.same_as_next_screenshot).collect();
        assert_eq!(same, [Some(false), Some(true), Some(false), Some(false)], "{format:?}");
        let inodes: Vec<_> = (0..4).map(|step| inode(&trajectory, step)).collect();
        assert_eq!(inodes[1], inodes[2], "{format:?}");
        assert!(inodes[0] != inodes[1] && inodes[2] != inodes[3], "{format:?}");
        let names = ["step_000", "step_001", "step_002", "step_003"];
        assert_eq!(file_names(&trajectory), names.map(|name| format!("{name}.{}", format.extension())));
    }
}

#[tokio::test]
async fn blank_jpeg_is_recognised() {
    let white = |call: &Call| {
        if call.returns_screenshot() && (call.path == "/step" || call.nth > 0) {
            Fault::BlankScreenshot
        } else {
            Fault::None
        }
    };
    let replies = [ModelReply::click(1, 1), ModelReply::navigate("http://nowhere.test/")];
    for (reply, keys) in replies.into_iter().zip([["click", "invalid_step"], ["navigate", "answer"]]) {
        let first = keys[0];
        let policy = move |question: &testkit::sim_model::ModelRequest| {
            if question.step() == 1 { reply.clone() } else { ModelReply::answer("42") }
        };
        let mut harness = Harness::faulty(white, policy).await;
        harness.operation_timeout = Duration::from_millis(400);
        harness.screenshot_format = ImageFormat::Jpeg;
        let trajectory = harness.run_one(task(0)).await;
        assert_eq!(action_keys(&trajectory), keys);
        if first == "click" {
            let end = (outcome(&trajectory), ending(&trajectory));
            assert_eq!(end, (Outcome::Failure, "the page stayed blank".into()));
        } else {
            assert_eq!(inode(&trajectory, 0), inode(&trajectory, 1), "the previous screenshot is used");
        }
    }
}
