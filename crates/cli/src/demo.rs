//! `webgym demo`: a complete example. Farm, practice sites and baseline policy run in this process, the collector works as
//! with a real model, and nothing leaves the machine.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Args;
use practice::Sites;

use crate::{
    browser_args::BrowserArgs,
    config::ConfigArgs,
    report::ReportFormat,
    rollout::{RolloutArgs, rollout},
};

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// The folder for the trajectories.
    #[arg(long, default_value = "demo", value_name = "DIR")]
    out: PathBuf,
    /// The number of browser instances.
    #[arg(long, default_value_t = 6, value_name = "N")]
    instances: usize,
    /// The number of practice tasks. Default: all.
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// The seed for the order of the tasks.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    #[command(flatten)]
    browser: BrowserArgs,
}

pub(crate) async fn demo(args: DemoArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let sites = Sites::start(free)?;
    let policy = baseline::Server::start(free)?;
    let out = std::path::absolute(&args.out)?;
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let tasks = practice::task_file(&sites.url("/"))?;
    let count = args.tasks.unwrap_or(usize::MAX).min(tasks.lines().count());
    let task_file = out.join("tasks.jsonl");
    std::fs::write(&task_file, &tasks).with_context(|| format!("cannot write {}", task_file.display()))?;
    println!(
        "{count} tasks on the practice sites, with the built-in baseline policy: no GPU, no network, no keys."
    );
    println!("  sites   {}", sites.url("/"));
    println!("  policy  {}  (with the API of vLLM)", policy.url());
    println!("  tasks   {}\n", relative(&task_file));
    let config = ConfigArgs {
        config_name: "rollout_train".into(),
        config_path: None,
        overrides: overrides(&args, &out, &policy.url(), count),
    };
    let run = RolloutArgs {
        config,
        resume: false,
        fresh: true,
        first_iteration: None,
        allow_private_network: true,
        allow_host: Vec::new(),
        stall_secs: 60,
        ranks: crate::ranks::RankArgs::single(),
        format: ReportFormat::Text,
        monitor: crate::monitor::RunMonitorArgs::default(),
        stream: crate::stream::StreamArgs::default(),
        exit_with_parent: None,
        browser: args.browser,
    };
    let code = Box::pin(rollout(run, quiet)).await?;
    println!("{}", next_steps(&relative(&out)));
    Ok(code)
}

/// Returns the path relative to the current folder if it is below it.
fn relative(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}

/// Returns commands for the next steps, ready to be copied.
fn next_steps(out: &str) -> String {
    let webgym = std::env::args().next().unwrap_or_else(|| "webgym".into());
    format!(
        "Everything is in {out}/. Next:\n\
         \n  {webgym} view {out}\
         \n  {webgym} trajectories show {out} 0\
         \n  {webgym} export {out} --to parquet --out {out}/parquet\n\
         \nWith your own model (vllm serve MODEL) and your own tasks (JSON lines):\n\
         \n  {webgym} rollout --config-name rollout_train save_path=runs/first data_path=DIRECTORY \\\
         \n      env_config.train_tasks=TASKS.jsonl env_config.vllm_server_url=http://HOST:8000 policy_config.base_model=MODEL \\\n      judge=reference"
    )
}

fn overrides(args: &DemoArgs, out: &Path, policy: &str, count: usize) -> Vec<String> {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "\\'"));
    vec![
        format!("save_path={}", quoted(out)),
        format!("data_path={}", quoted(out)),
        format!("seed={}", args.seed),
        "judge=reference".into(),
        "context_config.interaction_mode=set_of_marks".into(),
        // The baseline policy cannot read images, so it also gets the text of the page.
        "context_config.page_text_lines=300".into(),
        "policy_config.base_model=baseline".into(),
        format!("env_config.vllm_server_url={policy}"),
        "env_config.train_tasks=tasks.jsonl".into(),
        format!("env_config.train_tasks_rollout_size={count}"),
        "env_config.deduplicate_across_iterations=false".into(),
        format!("env_config.server_size={}", args.instances),
        "env_config.completion_threshold=1".into(),
    ]
}
