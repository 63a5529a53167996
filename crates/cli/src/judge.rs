//! Who scores: chosen from the configuration and the tasks, and said in one line.

use proto::trajectory::Task;
use rollout::{
    config::{Config, Judge as Choice, Question},
    judge::{Judge, ModelJudge},
};

pub(crate) fn choose(config: &Config, tasks: &[Task]) -> anyhow::Result<Judge> {
    let endpoint = config.judge_endpoint(Question::Evaluation);
    let key_of = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
    let has_key = key_of(&endpoint.api_key_env_var).is_some();
    let with_reference = tasks.iter().filter(|task| task.reference_answer.is_some()).count();
    match config.judge {
        Choice::Openai => by_model(config, &endpoint.model),
        Choice::Auto if has_key => by_model(config, &endpoint.model),
        Choice::Reference => Ok(by_reference(with_reference, tasks.len())),
        Choice::Auto if with_reference > 0 => Ok(by_reference(with_reference, tasks.len())),
        Choice::Auto => {
            tracing::warn!(
                "judge: none. {} is not set and no task has a reference answer, so trajectories are kept unjudged; \
                 score them later with webgym judge",
                endpoint.api_key_env_var
            );
            Ok(Judge::None)
        }
        Choice::None => {
            tracing::info!("judge: none, as configured; trajectories are kept unjudged");
            Ok(Judge::None)
        }
    }
}

fn by_model(config: &Config, model: &str) -> anyhow::Result<Judge> {
    tracing::info!("judge: {model} at {}", config.judge_endpoint(Question::Evaluation).base_url);
    let judge = ModelJudge::new(config, |name| std::env::var(name).ok().filter(|key| !key.is_empty()))?;
    Ok(Judge::Model(Box::new(judge)))
}

fn by_reference(with_reference: usize, tasks: usize) -> Judge {
    tracing::info!("judge: reference answers, without a model ({with_reference} of {tasks} tasks have one)");
    Judge::Reference
}
