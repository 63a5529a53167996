//! Runs that the original's scripts began: the loop finds its place in their files and leaves the training data where they
//! have it.

use std::path::Path;

use store::loop_state::Phase;

use crate::harness::TestLoop;

/// Trains nothing: the checkpoint is the model.
const COPYING_TRAINER: &str = "train.command='cp {model}/* {output}'";
const EXPORT: &str =
    "export.arguments=[--to,llamafactory,--only-successful,--train-config,--train-data,'{data}']";

/// Turns the files of a loop with one iteration into those that the original's scripts leave when they are killed between the
/// end of a training and the copy of its checkpoint, while another run of them has begun to collect.
fn make_original(root: &Path) {
    let output = root.join("checkpoints/model_20250115_143022");
    std::fs::create_dir(&output).unwrap();
    std::fs::rename(root.join("checkpoints/iteration_1"), output.join("checkpoint-7")).unwrap();
    std::fs::remove_file(root.join("model.pt")).unwrap();
    std::fs::create_dir(root.join("model.pt")).unwrap();
    std::fs::write(root.join("model.pt/config.json"), "{}").unwrap();
    std::fs::remove_dir_all(root.join("loop")).unwrap();
    std::fs::create_dir(root.join("llamafactory_data")).unwrap();
    std::fs::write(root.join("llamafactory_data/finetune.json"), "[]").unwrap();
    let collecting = root.join("train_trajectories/train_trajectories.pt.iteration2.checkpoint");
    std::fs::write(collecting, b"PK\x03\x04 of PyTorch").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_run_of_the_original_is_continued() {
    let test = TestLoop::new().await;
    let (code, log) = test.run("run", &["--first-iteration", "1", "iterations=1"]).await;
    assert_eq!(code, Some(0), "{log}");
    let root = test.save_path("run").root().to_owned();
    make_original(&root);
    let weights =
        std::fs::read(root.join("checkpoints/model_20250115_143022/checkpoint-7/model.safetensors")).unwrap();

    let (code, log) =
        test.run("run", &["--first-iteration", "1", "iterations=2", COPYING_TRAINER, EXPORT]).await;

    assert_eq!(code, Some(0), "{log}");
    let state = test.state("run");
    assert_eq!(state.iterations[0].number, 2, "iteration 1 was collected and trained by the original");
    assert!(state.iterations[0].model.ends_with("checkpoints/model_20250115_143022/checkpoint-7"), "{log}");
    assert_eq!(test.current_checkpoint("run").unwrap().to_str(), Some("checkpoints/iteration_2"));
    assert_eq!(std::fs::read(root.join("model.pt/model.safetensors")).unwrap(), weights);
    assert!(state.iterations[0].phase(Phase::Collect).is_some());
    let set_aside = "train_trajectories/set_aside_train_trajectories.pt.iteration2.checkpoint.original";
    assert!(root.join(set_aside).exists() && log.contains("is collected again"), "{log}");
    assert!(root.join("checkpoints/before_loop/config.json").exists(), "the half copy is kept");

    let data = root.join("llamafactory_data");
    assert_eq!(std::fs::read_link(&data).unwrap(), Path::new("loop/data/iteration_2"));
    let config = std::fs::read_to_string(data.join("train_config.yaml")).unwrap();
    let folder = root.join("loop/data/iteration_2");
    assert!(config.contains(&format!("dataset_dir: {:?}", folder.display().to_string())), "{config}");
    assert!(
        std::fs::metadata(data.join("finetune.json")).unwrap().len() > 2,
        "as the original's scripts expect it"
    );
    assert_eq!(std::fs::read_to_string(root.join("loop/data/before_loop/finetune.json")).unwrap(), "[]");
}
