//! Checks before a run writes or starts anything that the policy server, its model, the farm and the work queue are
//! reachable. Every error says what is missing and what to do about it.

use std::time::Duration;

use client::{
    chat::{ModelClient, ModelError, ModelOptions},
    farm::{ClientError, FarmClient, FarmClientOptions},
    http::{Deadline, KeepAlive, RetryPolicy},
};

use super::queue::{self, QueueError};
use crate::{
    config::{Config, seconds},
    plan::ranks::{RankProblem, Ranks},
    policy::HISTORY_WINDOW,
};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Limits the check of the model: one token may have to wait for a busy server.
const MODEL_CHECK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    #[error("env_config.{}: {}", .0.0, .0.1)]
    Ranks(RankProblem),
    #[error("{0}")]
    Archive(String),
    #[error("{0}")]
    PolicyClient(ModelError),
    #[error("{0}. Name one of those with policy_config.base_model=NAME")]
    ModelNotServed(ModelError),
    #[error("{0}. Name the one to use with policy_config.base_model=NAME")]
    NoModelNamed(ModelError),
    #[error(
        "{url} is {source}. Name a policy server with env_config.vllm_server_url=URL (vllm serve MODEL …)"
    )]
    NoPolicyServer { url: String, source: ModelError },
    #[error(
        "no policy server answers at {url}: {source}. Start one (vllm serve MODEL …) and name it with \
         env_config.vllm_server_url=URL; to see webgym work without one: webgym demo"
    )]
    PolicyUnreachable { url: String, source: ModelError },
    #[error(
        "the policy server at {url} refuses the key: {source}. The key is read from the environment variable {variable} \
         (policy_config.api_key_env_var)"
    )]
    PolicyKey { url: String, variable: String, source: Box<ModelError> },
    #[error(
        "policy_config.max_new_tokens is {max_new_tokens}, but prompt and reply together may have only {limit} tokens. \
         Lower it, or start the policy server with a larger --max-model-len"
    )]
    ReplyTooLong { max_new_tokens: u32, limit: u64 },
    #[error("{0}")]
    FarmClient(ClientError),
    #[error(
        "{source}. The key is read from the environment variable {variable} (env_config.cpu_cluster_token_env_var)"
    )]
    FarmKey { variable: String, source: ClientError },
    #[error(
        "no farm answers at {url}: {source}. Start one (webgym serve N) and name it with env_config.host_ip and \
         env_config.master_port, or leave host_ip out for browsers inside this process (env_config.host_ip=null)"
    )]
    FarmUnreachable { url: String, source: ClientError },
    #[error("{0}")]
    Queue(#[from] QueueError),
}

/// The keys of the services that a run uses, from the environment.
#[derive(Clone)]
pub struct ServiceKeys {
    pub farm: String,
    pub policy: Option<String>,
}

/// Checks everything that the configuration names. Returns the policy client and the name of the model to use.
pub async fn check(config: &Config, keys: &ServiceKeys) -> Result<(ModelClient, String), PreflightError> {
    config.check_archive().map_err(PreflightError::Archive)?;
    let policy = check_policy(config, keys.policy.as_deref()).await?;
    if let Some(url) = config.farm_url() {
        check_farm(config, &url, &keys.farm).await?;
    }
    if let Some(address) = &config.env_config.work_queue {
        queue::check(address).await?;
    }
    Ok(policy)
}

async fn check_policy(config: &Config, key: Option<&str>) -> Result<(ModelClient, String), PreflightError> {
    let url = config.env_config.vllm_server_url.clone();
    let client = ModelClient::vllm(&url, policy_options(config)?);
    let client = match key {
        Some(key) => client.and_then(|client| client.with_api_key(key)),
        None => client,
    };
    let client = client.map_err(PreflightError::PolicyClient)?;
    let wanted = config.policy_model();
    let chosen = client.choose_model(wanted.as_deref(), RESPONSE_TIMEOUT);
    let chosen = tokio::time::timeout(MODEL_CHECK_TIMEOUT, chosen).await;
    match chosen.unwrap_or(Err(ModelError::Timeout { doing: "asking for its models" })) {
        Ok(model) => {
            if let Some(limit) = client.max_model_len(&model, RESPONSE_TIMEOUT).await {
                check_context(limit, config.policy_config.max_new_tokens)?;
            }
            Ok((client, model))
        }
        Err(source @ ModelError::Refused { status: 401 | 403, .. }) => {
            let variable = config.policy_config.api_key_env_var.clone();
            Err(PreflightError::PolicyKey { url, variable, source: Box::new(source) })
        }
        Err(source @ ModelError::NotServed { .. }) => Err(PreflightError::ModelNotServed(source)),
        Err(source @ ModelError::NoneNamed { .. }) => Err(PreflightError::NoModelNamed(source)),
        Err(source @ ModelError::NoChatServer { .. }) => Err(PreflightError::NoPolicyServer { url, source }),
        Err(source) => Err(PreflightError::PolicyUnreachable { url, source }),
    }
}

/// Refuses a context that cannot hold a reply, and warns if prompt and reply of a late step will not fit.
fn check_context(limit: u64, max_new_tokens: u32) -> Result<(), PreflightError> {
    // One token per 32 by 32 pixels of a screenshot of 1280 by 768, as Qwen3-VL counts them.
    const SCREENSHOT_TOKENS: u64 = 960;
    const TEXT_TOKENS: u64 = 3000;
    if limit <= u64::from(max_new_tokens) {
        return Err(PreflightError::ReplyTooLong { max_new_tokens, limit });
    }
    let screenshots = HISTORY_WINDOW as u64 + 1;
    let wanted = screenshots * SCREENSHOT_TOKENS + TEXT_TOKENS + u64::from(max_new_tokens);
    if limit < wanted {
        tracing::warn!(
            "the model's context has {limit} tokens; a prompt with {screenshots} screenshots and a reply of \
             {max_new_tokens} need about {wanted}. Prompts that do not fit are sent with fewer screenshots. To avoid \
             that, start the server with a larger --max-model-len or lower policy_config.max_new_tokens"
        );
    }
    Ok(())
}

/// Returns the options of the policy client. The sessions are shared by all ranks.
fn policy_options(config: &Config) -> Result<ModelOptions, PreflightError> {
    let env = &config.env_config;
    let ranks = Ranks::from_config(env).map_err(PreflightError::Ranks)?;
    Ok(ModelOptions {
        sessions: ranks.share(env.max_vllm_sessions),
        attempt_timeout: seconds(env.vllm_timeout),
        retry: RetryPolicy { max_retries: env.max_retries, ..RetryPolicy::default() },
        images: env.image_transport.into(),
        ..ModelOptions::default()
    })
}

async fn check_farm(config: &Config, url: &str, key: &str) -> Result<(), PreflightError> {
    let farm = farm_client(config, url, key, KeepAlive::Short).map_err(PreflightError::FarmClient)?;
    match farm.info(Deadline::after(RESPONSE_TIMEOUT)).await {
        Ok(info) => {
            if info.nodes.iter().all(|node| node.capacity == 0) {
                tracing::warn!("the farm at {url} has no browsers yet; episodes wait until it has some");
            }
            Ok(())
        }
        Err(source @ ClientError::Auth(_)) => {
            let variable = config.env_config.cpu_cluster_token_env_var.clone();
            Err(PreflightError::FarmKey { variable, source })
        }
        Err(source) => Err(PreflightError::FarmUnreachable { url: url.to_owned(), source }),
    }
}

/// Creates a client of the farm at `url` with the limits of the configuration.
pub fn farm_client(
    config: &Config,
    url: &str,
    key: &str,
    keep_alive: KeepAlive,
) -> Result<FarmClient, ClientError> {
    let env = &config.env_config;
    let options = FarmClientOptions {
        operation_timeout: seconds(env.operation_timeout),
        retry: RetryPolicy { max_retries: env.max_retries, ..RetryPolicy::default() },
        keep_alive,
        ..FarmClientOptions::default()
    };
    FarmClient::new(url, key, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RankWeights;

    #[test]
    fn ranks_share_policy_sessions_by_weight() {
        let mut config = Config::default();
        config.env_config.max_vllm_sessions = 64;
        config.env_config.multinode_rank = Some(1);
        config.env_config.multinode_total_workers = Some(3);
        config.env_config.all_rank_weights = Some(RankWeights(vec![2.0, 1.0, 1.0]));
        assert_eq!(policy_options(&config).unwrap().sessions, 16);
    }
}
