//! The programs and folders of each phase.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use store::SavePath;
use store::loop_state::Phase;

use crate::command::{Program, Template, fill_in};
use crate::config::{CollectConfig, LoopConfig};
use crate::ranks::RankId;
use crate::server::host_and_port;

/// Builds the programs of an iteration.
#[derive(Clone, Debug)]
pub(crate) struct Programs<'a> {
    pub(crate) config: &'a LoopConfig,
    pub(crate) save_path: &'a SavePath,
    pub(crate) webgym: &'a Path,
    pub(crate) rank: RankId,
    pub(crate) iteration: u64,
    pub(crate) model: &'a str,
}

/// The training data of an iteration.
pub(crate) fn data_folder(save_path: &SavePath, iteration: u64) -> PathBuf {
    save_path.loop_directory().join("data").join(format!("iteration_{iteration}"))
}

/// The log of a phase, relative to the save path.
pub(crate) fn log_name(iteration: u64, phase: Phase, rank: RankId) -> PathBuf {
    let rank = if rank.count > 1 { format!("_rank_{}", rank.number) } else { String::new() };
    Path::new("loop/logs").join(format!("iteration_{iteration}_{phase}{rank}.log"))
}

impl Programs<'_> {
    fn serve_values(&self) -> Vec<(&'static str, String)> {
        vec![
            ("model", self.model.to_owned()),
            ("port", host_and_port(&self.config.serve.url).1.to_string()),
            ("iteration", self.iteration.to_string()),
            ("rank", self.rank.number.to_string()),
            ("save_path", self.save_path.root().display().to_string()),
        ]
    }

    /// The name that the server gives the model.
    pub(crate) fn served_model(&self) -> String {
        let served = fill_in(&self.config.serve.served_model, &self.serve_values(), str::to_owned);
        served.unwrap_or_else(|_| self.model.to_owned())
    }

    pub(crate) fn serve(&self) -> Option<Program> {
        let serve = &self.config.serve;
        user_program(serve.command.as_ref()?, &self.serve_values(), &serve.environment, None)
    }

    pub(crate) fn reload(&self) -> Option<Program> {
        let serve = &self.config.serve;
        user_program(serve.reload.as_ref()?, &self.serve_values(), &serve.environment, None)
    }

    /// `webgym rollout` for the train split, or for the test split. It continues what an interrupted one has collected.
    pub(crate) fn rollout(&self, phase: Phase) -> Program {
        let rollout = match phase {
            Phase::Evaluate => &self.config.evaluate.rollout,
            _ => &self.config.collect,
        };
        let mut arguments = self.webgym_arguments("rollout");
        arguments.extend(["--resume".to_owned(), "--config-name".to_owned(), rollout.config_name.clone()]);
        if let Some(path) = &rollout.config_path {
            arguments.extend(["--config-path".to_owned(), path.display().to_string()]);
        }
        arguments.extend(["--first-iteration".to_owned(), self.iteration.to_string()]);
        if self.rank.count > 1 {
            let (rank, count) = (self.rank.number.to_string(), self.rank.count.to_string());
            arguments.extend(["--rank".to_owned(), rank, "--num-ranks".to_owned(), count]);
        }
        arguments.extend(self.rollout_overrides(rollout));
        Program { arguments, variables: Vec::new(), directory: None }
    }

    /// The user's overrides, then those that the loop decides.
    fn rollout_overrides(&self, rollout: &CollectConfig) -> Vec<String> {
        let seed = self.config.seed.wrapping_add(self.iteration).to_string();
        let decided = [
            ("save_path", self.save_path.root().display().to_string()),
            ("seed", seed),
            ("policy_config.base_model", self.served_model()),
            ("policy_config.version", version(self.model)),
            ("env_config.vllm_server_url", self.config.serve.url.clone()),
        ];
        let decided = decided.into_iter().map(|(key, value)| format!("{key}={}", hydra_quoted(&value)));
        // The model is named by base_model, so that an older checkpoint of the same name is not asked for.
        let unset = ["policy_config.checkpoint_path=null".to_owned()];
        rollout.arguments.iter().cloned().chain(decided).chain(unset).collect()
    }

    /// `webgym export` into a folder that gets its final name when it is complete.
    pub(crate) fn export(&self, partial: &Path, output: &Path) -> Program {
        let mut arguments = self.webgym_arguments("export");
        arguments.push(self.save_path.root().display().to_string());
        arguments.extend(["--out".to_owned(), partial.display().to_string(), "--overwrite".to_owned()]);
        let report = partial.join(EXPORT_REPORT).display().to_string();
        arguments.extend(["--report".to_owned(), report]);
        arguments.extend(["--seed".to_owned(), self.config.seed.wrapping_add(self.iteration).to_string()]);
        let values = [
            ("data", data_folder(self.save_path, self.iteration).display().to_string()),
            ("model", self.model.to_owned()),
            ("output", output.display().to_string()),
            ("iteration", self.iteration.to_string()),
            ("save_path", self.save_path.root().display().to_string()),
        ];
        // Placeholders were checked with the configuration.
        let own = Template::Arguments(self.config.export_arguments()).render(&values);
        arguments.extend(own.unwrap_or_default());
        Program { arguments, variables: Vec::new(), directory: None }
    }

    pub(crate) fn train(&self, data: &Path, output: &Path) -> Option<Program> {
        let values = vec![
            ("data", data.display().to_string()),
            ("model", self.model.to_owned()),
            ("output", output.display().to_string()),
            ("iteration", self.iteration.to_string()),
            ("rank", self.rank.number.to_string()),
            ("ranks", self.rank.count.to_string()),
            ("save_path", self.save_path.root().display().to_string()),
        ];
        let train = &self.config.train;
        user_program(&train.command()?, &values, &train.environment, train.directory.clone())
    }

    fn webgym_arguments(&self, subcommand: &str) -> Vec<String> {
        vec![self.webgym.display().to_string(), subcommand.to_owned()]
    }
}

fn user_program(
    template: &Template,
    values: &[(&'static str, String)],
    environment: &IndexMap<String, String>,
    directory: Option<PathBuf>,
) -> Option<Program> {
    // Placeholders were checked with the configuration.
    let arguments = template.render(values).ok()?;
    let variables = environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Some(Program { arguments, variables, directory })
}

/// The name of the file in the training data that says how much there is.
pub(crate) const EXPORT_REPORT: &str = "export_report.json";

/// The version of the policy that trajectories record: the last part of the model's path or name.
fn version(model: &str) -> String {
    model.trim_end_matches('/').rsplit('/').next().unwrap_or(model).to_owned()
}

/// Quotes a value for Hydra's grammar of overrides.
fn hydra_quoted(value: &str) -> String {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_' | '-' | ':');
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(config: &LoopConfig, rank: RankId, model: &str) -> Vec<String> {
        let save_path = SavePath::new("/runs/a b");
        let webgym = Path::new("webgym");
        let programs = Programs { config, save_path: &save_path, webgym, rank, iteration: 3, model };
        let (data, output) = (data_folder(&save_path, 3), Path::new("/out"));
        [
            programs.serve().unwrap(),
            programs.rollout(Phase::Collect),
            programs.export(&data, output),
            programs.train(&data, output).unwrap(),
        ]
        .map(|program| program.to_string())
        .to_vec()
    }

    #[test]
    fn programs_of_an_iteration_have_its_values() {
        let mut config = LoopConfig { seed: 40, ..LoopConfig::default() };
        let words = |words: &[&str]| Template::Arguments(words.iter().map(|&word| word.to_owned()).collect());
        config.serve.command = Some(words(&["vllm", "serve", "{model}", "--port", "{port}"]));
        config.serve.environment.insert("DEVICES".into(), "0,1".into());
        config.collect.arguments = vec!["env_config.server_size=8".into()];
        config.export.arguments = Some(vec!["--to".into(), "jsonl".into()]);
        config.train.command = Some(words(&["train", "{data}", "{output}", "{iteration}", "{rank}/{ranks}"]));
        let found = shown(&config, RankId { number: 1, count: 2 }, "/runs/a b/checkpoints/iteration_2");
        assert_eq!(found[0], "DEVICES='0,1' vllm serve '/runs/a b/checkpoints/iteration_2' --port 8999");
        for part in [
            "rollout --resume --config-name rollout_train --first-iteration 3 --rank 1 --num-ranks 2 env_config.server_size=8",
            "seed=43",
            "policy_config.version=iteration_2",
            "policy_config.checkpoint_path=null",
        ] {
            assert!(found[1].contains(part), "{part}: {}", found[1]);
        }
        assert!(found[2].contains("--seed 43 --to jsonl"), "{}", found[2]);
        assert_eq!(found[3], "train '/runs/a b/loop/data/iteration_3' /out 3 1/2");
    }
}
