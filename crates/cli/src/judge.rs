//! Chooses the judge from the configuration and logs the choice. Also `webgym judge`, which judges saved trajectories
//! again.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use rollout::{
    config::{Config, JudgeKind, Question},
    judge::{
        Judge, ModelJudge,
        rejudge::{RejudgeOptions, rejudge},
    },
};
use store::{SavePath, Split};

use crate::config::ConfigArgs;

#[derive(Args)]
pub(crate) struct JudgeArgs {
    /// The folder to which a run saved its trajectories.
    save_path: PathBuf,
    /// Only trajectories without a verdict.
    #[arg(long)]
    only_unjudged: bool,
    /// Only this iteration.
    #[arg(long, value_name = "N")]
    iteration: Option<u64>,
    /// Only this split.
    #[arg(long, value_name = "train|test")]
    split: Option<Split>,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Judges saved trajectories again, with the judge of the configuration (`judge=…`, `openai_config.…`).
pub(crate) async fn run(args: &JudgeArgs) -> anyhow::Result<ExitCode> {
    let config = args.config.load()?.config;
    let judge = choose(&config, None)?;
    if matches!(judge, Judge::None) {
        anyhow::bail!(
            "no judge is configured: set {}, or use judge=reference",
            config.openai_config.openai_api_key_env_var
        );
    }
    let options = RejudgeOptions {
        only_unjudged: args.only_unjudged,
        iteration: args.iteration,
        split: args.split,
        concurrency: config.env_config.evaluation_workers,
    };
    let report = rejudge(&SavePath::new(&args.save_path), &judge, &options).await?;
    for note in &report.notes {
        eprintln!("{}", net::escape::escape_terminal(note));
    }
    println!(
        "{} judged ({} changed, {} kept their earlier verdict, {} still unjudged), {} skipped",
        report.judged, report.changed, report.kept, report.still_unjudged, report.skipped
    );
    Ok(if report.still_unjudged == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// Chooses the judge. `references` is the number of tasks with a reference answer and of all tasks, if known.
pub(crate) fn choose(config: &Config, references: Option<(usize, usize)>) -> anyhow::Result<Judge> {
    let endpoint = config.judge_endpoint(Question::Evaluation);
    let key_of = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
    let has_key = key_of(&endpoint.api_key_env_var).is_some();
    let any_reference = references.is_none_or(|(with, _)| with > 0);
    match config.judge {
        JudgeKind::Openai => model_judge(config, &endpoint.model),
        JudgeKind::Auto if has_key => model_judge(config, &endpoint.model),
        JudgeKind::Reference => Ok(reference_judge(references)),
        JudgeKind::Auto if any_reference => Ok(reference_judge(references)),
        JudgeKind::Auto => {
            tracing::warn!(
                "judge: none. {} is not set and no task has a reference answer, so trajectories are saved unjudged; \
                 judge them later with webgym judge",
                endpoint.api_key_env_var
            );
            Ok(Judge::None)
        }
        JudgeKind::None => {
            tracing::info!("judge: none, as configured; trajectories are saved unjudged");
            Ok(Judge::None)
        }
    }
}

fn model_judge(config: &Config, model: &str) -> anyhow::Result<Judge> {
    tracing::info!("judge: {model} at {}", config.judge_endpoint(Question::Evaluation).base_url);
    let judge = ModelJudge::new(config, |name| std::env::var(name).ok().filter(|key| !key.is_empty()))?;
    Ok(Judge::Model(Box::new(judge)))
}

fn reference_judge(references: Option<(usize, usize)>) -> Judge {
    let share =
        references.map(|(with, all)| format!(" ({with} of {all} tasks have one)")).unwrap_or_default();
    tracing::info!("judge: reference answers, without a model{share}");
    Judge::Reference
}
