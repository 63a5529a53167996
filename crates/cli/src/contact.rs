//! First contact of a run with those it depends on, before it writes or starts anything: the policy server, the model
//! it serves, and the farm if one is configured. Whoever is not there is named, with what to do about it.

use std::time::Duration;

use client::{
    chat::{Images, ModelClient, ModelError, ModelOptions},
    farm::{ClientError, FarmClient, FarmOptions},
    http::{Deadline, RetryPolicy},
};
use rollout::{
    config::{Config, ImageTransport},
    plan::shares::Ranks,
};

use crate::rollout::seconds;

/// How long each gets to show that it is there.
const LIMIT: Duration = Duration::from_secs(5);
/// One token may wait behind others' thousands.
const FIRST_TOKEN: Duration = Duration::from_secs(30);

/// What the policy client keeps to. The sessions are shared by all ranks.
fn policy_options(config: &Config) -> anyhow::Result<ModelOptions> {
    let env = &config.env_config;
    let ranks = Ranks::of(env).map_err(|(key, why)| anyhow::anyhow!("{key}: {why}"))?;
    let images = match env.image_transport {
        ImageTransport::Auto => Images::Auto,
        ImageTransport::File => Images::File,
        ImageTransport::Data => Images::Data,
    };
    Ok(ModelOptions {
        sessions: ranks.share(env.max_vllm_sessions),
        attempt_timeout: seconds(env.vllm_timeout),
        retry: RetryPolicy { max_retries: env.max_retries, ..RetryPolicy::default() },
        images,
        ..ModelOptions::default()
    })
}

/// The policy server, and the name of the model to ask it for.
pub(crate) async fn policy(config: &Config) -> anyhow::Result<(ModelClient, String)> {
    let url = &config.env_config.vllm_server_url;
    let client = ModelClient::vllm(url, policy_options(config)?)?;
    let wanted = config.policy_model();
    let chosen = tokio::time::timeout(FIRST_TOKEN, client.choose_model(wanted.as_deref(), LIMIT)).await;
    match chosen.unwrap_or(Err(ModelError::Timeout { doing: "asking for its models" })) {
        Ok(model) => Ok((client, model)),
        Err(error @ ModelError::NotServed { .. }) => {
            anyhow::bail!("{error}. Name one of those with policy_config.base_model=NAME")
        }
        Err(error @ ModelError::NoneNamed { .. }) => {
            anyhow::bail!("{error}. Name the one to use with policy_config.base_model=NAME")
        }
        Err(error @ ModelError::NoChatServer { .. }) => anyhow::bail!(
            "{url} is no policy server: {error}. Name one with env_config.vllm_server_url=URL (vllm serve MODEL …)"
        ),
        Err(error) => anyhow::bail!(
            "no policy server answers at {url}: {error}. Start one (vllm serve MODEL …) and name it with \
             env_config.vllm_server_url=URL; to see webgym work without one: webgym demo"
        ),
    }
}

/// Asks a configured farm for its state.
pub(crate) async fn farm(config: &Config, url: &str) -> anyhow::Result<()> {
    let variable = &config.env_config.cpu_cluster_token_env_var;
    match farm_client(config, url)?.info(Deadline::after(LIMIT)).await {
        Ok(info) => {
            if info.nodes.iter().all(|node| node.capacity == 0) {
                tracing::warn!("the farm at {url} has no browsers yet; episodes wait until it has");
            }
            Ok(())
        }
        Err(error @ ClientError::Auth(_)) => anyhow::bail!(
            "{error}. The key is read from the environment variable {variable} \
             (env_config.cpu_cluster_token_env_var)"
        ),
        Err(error) => anyhow::bail!(
            "no farm answers at {url}: {error}. Start one (webgym serve N) and name it with env_config.host_ip and \
             env_config.master_port, or leave host_ip out for browsers inside this process (env_config.host_ip=null)"
        ),
    }
}

pub(crate) fn farm_client(config: &Config, url: &str) -> anyhow::Result<FarmClient> {
    let env = &config.env_config;
    let key = std::env::var(&env.cpu_cluster_token_env_var).unwrap_or_else(|_| farm::DEFAULT_KEY.to_owned());
    let options = FarmOptions {
        operation_timeout: seconds(env.operation_timeout),
        retry: RetryPolicy { max_retries: env.max_retries, ..RetryPolicy::default() },
        ..FarmOptions::default()
    };
    Ok(FarmClient::new(url, &key, options)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigArgs;

    #[test]
    fn ranks_share_the_policy_sessions_by_weight() {
        let overrides = [
            "save_path=a",
            "data_path=b",
            "env_config.max_vllm_sessions=64",
            "env_config.multinode_rank=1",
            "env_config.multinode_total_workers=3",
            "env_config.all_rank_weights='2,1,1'",
        ];
        let args = ConfigArgs {
            config_name: "rollout_train".into(),
            config_path: None,
            overrides: overrides.map(str::to_owned).to_vec(),
        };
        let sessions = policy_options(&args.load().unwrap().config).unwrap().sessions;
        assert_eq!(sessions, 16);
    }
}
