//! Prints the commands of a loop without running them.

use std::path::Path;

use store::SavePath;
use store::loop_state::Phase;

use super::{PlaceError, RankId};
use crate::checkpoint::Checkpoints;
use crate::config::LoopConfig;
use crate::original;
use crate::phases::{self, Programs};
use crate::schedule;

/// Returns the commands of all iterations, as they would run one after the other.
pub fn commands(config: &LoopConfig, webgym: &Path, rank: RankId) -> Result<Vec<String>, PlaceError> {
    let save_path = SavePath::new(config.save_path.clone().unwrap_or_default());
    let checkpoints = Checkpoints::new(save_path.clone(), &config.checkpoint.name);
    let current = || checkpoints.current().map(|(path, _)| path);
    let trained = original::uncopied_checkpoint(&save_path, &checkpoints).or_else(current);
    let model = trained.map(|path| path.display().to_string()).or_else(|| config.model.clone());
    let mut model = model.ok_or_else(|| PlaceError::NoModel { checkpoint: checkpoints.link() })?;
    let mut lines = Vec::new();
    for iteration in config.first_iteration..=config.first_iteration + config.iterations {
        lines.push(format!("# iteration {iteration}"));
        let programs = Programs { config, save_path: &save_path, webgym, rank, iteration, model: &model };
        for phase in schedule::phases(config, iteration) {
            lines.push(line(phase, &programs, &checkpoints));
        }
        model = checkpoints.published(iteration).display().to_string();
    }
    Ok(lines)
}

fn line(phase: Phase, programs: &Programs<'_>, checkpoints: &Checkpoints) -> String {
    let iteration = programs.iteration;
    let data = phases::data_folder(programs.save_path, iteration);
    let (output, published) = (checkpoints.partial(iteration), checkpoints.published(iteration));
    let text = match phase {
        Phase::Serve => {
            let program = programs.serve().or_else(|| programs.reload()).map(|program| program.to_string());
            let check =
                format!("check that {} serves {}", programs.config.serve.url, programs.served_model());
            program.map_or_else(|| format!("({check})"), |program| format!("{program}   ({check})"))
        }
        Phase::Collect | Phase::Evaluate => programs.rollout(phase).to_string(),
        Phase::Export => programs.export(&data, &output).to_string(),
        Phase::Train => programs.train(&data, &output).map(|program| program.to_string()).unwrap_or_default(),
        Phase::Verify => format!("(verify {}, then rename it to {})", output.display(), published.display()),
        Phase::Switch => format!("(link {} to {})", checkpoints.link().display(), published.display()),
    };
    format!("{:<9} {text}", format!("{phase}:"))
}
