//! `webgym prompts`: writes the built-in prompt templates to files, and checks and shows templates on a sample.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::Subcommand;
use client::chat::{Message, Part, Role};
use rollout::{
    policy::build_conversation_with,
    prompts::{self, JudgePrompts, sample_turn},
    run::{load_prompts, prompt_options},
};

use crate::config::ConfigArgs;

#[derive(Subcommand)]
pub(crate) enum PromptsCommand {
    /// Write the built-in templates to a folder, as a starting point for your own.
    Export {
        folder: PathBuf,
        /// Replace files that exist.
        #[arg(long)]
        overwrite: bool,
    },
    /// Check the templates of a configuration and print them, rendered on a sample.
    Check {
        #[command(flatten)]
        config: ConfigArgs,
    },
}

pub(crate) fn run(command: &PromptsCommand) -> anyhow::Result<ExitCode> {
    match command {
        PromptsCommand::Export { folder, overwrite } => export(folder, *overwrite)?,
        PromptsCommand::Check { config } => check(config)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn export(folder: &Path, overwrite: bool) -> anyhow::Result<()> {
    let files = prompts::built_in();
    let existing = files.iter().map(|(path, _)| folder.join(path)).find(|path| path.exists());
    if let Some(path) = existing.filter(|_| !overwrite) {
        anyhow::bail!("{} already exists; add --overwrite to replace it", path.display());
    }
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    println!(
        "Change them, check them with: webgym prompts check policy_config.prompt_template={0}/policy.jinja \
         openai_config.prompt_templates={0}/judge",
        folder.display()
    );
    Ok(())
}

fn check(config: &ConfigArgs) -> anyhow::Result<()> {
    let config = config.load()?.config;
    let policy = load_prompts(&config)?;
    let judge = config.openai_config.prompt_templates.as_deref().map(JudgePrompts::load).transpose()?;
    let options = prompt_options(&config);
    let (task, history, current) = sample_turn(options.mode);
    let text = (config.context_config.page_text_lines > 0).then_some("The text of the page.");
    print_messages("policy", &build_conversation_with(&policy, options, &task, &history, &current, text)?);
    for (name, messages) in judge.unwrap_or_default().sample()? {
        print_messages(&format!("judge: {name}"), &messages);
    }
    Ok(())
}

fn print_messages(name: &str, messages: &[Message]) {
    for message in messages {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        println!("===== {name}: {role} =====");
        for part in &message.content {
            match part {
                Part::Text(text) => println!("{text}"),
                Part::Image(path) => println!("[image {}]", path.display()),
            }
        }
    }
}
