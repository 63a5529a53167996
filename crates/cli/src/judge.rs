//! Chooses the judge from the configuration and logs the choice. Also `webgym judge`, which judges saved trajectories
//! again.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use proto::trajectory::Task;
use rollout::{
    config::{Config, JudgeKind, OPENAI_URL, Question},
    judge::{
        Judge, ModelJudge, ProgramJudge,
        rejudge::{RejudgeOptions, rejudge},
    },
    prompts::JudgePrompts,
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
    let mut config = args.config.load()?.config;
    let judge = choose(&mut config)?;
    if matches!(judge, Judge::None) {
        anyhow::bail!("judge=none judges nothing; use judge=openai or judge=reference");
    }
    log_choice(&config, None);
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

/// Builds the judge of the configuration, and replaces `judge=auto` by what it stands for: the model if its key or its own
/// server is configured, otherwise the reference answers. A train run must name them: rewards that are trained on must not
/// depend on whether a variable happens to be set.
pub(crate) fn choose(config: &mut Config) -> anyhow::Result<Judge> {
    let endpoint = config.judge_endpoint(Question::Evaluation);
    let variable = &endpoint.api_key_env_var;
    let key_of = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
    let has_model = key_of(variable).is_some() || endpoint.base_url != OPENAI_URL;
    if config.judge == JudgeKind::Auto {
        config.judge = match config.env_config.split {
            _ if has_model => JudgeKind::Openai,
            rollout::config::Split::Test => JudgeKind::Reference,
            rollout::config::Split::Train => anyhow::bail!(
                "no judge is configured: {variable} is not set. Set it, name a server without a key with \
                 openai_config.base_url=URL, or choose judge=reference (compare with the reference answers), judge=program (the \
                 checks of the tasks) or judge=none (leave them unjudged; webgym judge can judge them later)"
            ),
        };
    }
    Ok(match config.judge {
        JudgeKind::Openai | JudgeKind::Auto => {
            let prompts = config.openai_config.prompt_templates.as_deref().map(JudgePrompts::load);
            let judge = ModelJudge::new(config, key_of)?;
            Judge::Model(Box::new(judge.with_prompts(prompts.transpose()?.unwrap_or_default())))
        }
        JudgeKind::Reference => Judge::Reference,
        JudgeKind::Program => Judge::Program(ProgramJudge::new(&config.program_config)),
        JudgeKind::None => Judge::None,
    })
}

/// Checks that a program judge can judge the tasks, before any browser is leased.
pub(crate) fn check_tasks(judge: &Judge, tasks: &[Task]) -> anyhow::Result<()> {
    let Judge::Program(program) = judge else { return Ok(()) };
    let judged = program.check_tasks(tasks)?;
    if judged < tasks.len() {
        tracing::warn!(
            "{} of {} tasks have no check that can be made here; their trajectories are saved unjudged",
            tasks.len() - judged,
            tasks.len()
        );
    }
    Ok(())
}

/// Logs who judges. `references` is the number of tasks with a reference answer and of all tasks, if known.
pub(crate) fn log_choice(config: &Config, references: Option<(usize, usize)>) {
    match (config.judge, references) {
        (JudgeKind::Openai | JudgeKind::Auto, _) => {
            let endpoint = config.judge_endpoint(Question::Evaluation);
            tracing::info!("judge: {} at {}", endpoint.request.model, endpoint.base_url);
        }
        (JudgeKind::Reference, Some((0, _))) => tracing::warn!(
            "judge: reference answers, but no task has one, so trajectories are saved unjudged; judge them later with webgym \
             judge"
        ),
        (JudgeKind::Reference, Some((with, all))) => {
            tracing::info!("judge: reference answers, without a model ({with} of {all} tasks have one)");
        }
        (JudgeKind::Reference, None) => tracing::info!("judge: reference answers, without a model"),
        (JudgeKind::Program, _) => tracing::info!("judge: the checks of the tasks, without a model"),
        (JudgeKind::None, _) => {
            tracing::info!("judge: none, as configured; trajectories are saved unjudged");
        }
    }
}
